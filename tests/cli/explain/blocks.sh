leanstep explain blocks
