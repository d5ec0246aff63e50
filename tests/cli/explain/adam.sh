leanstep explain adam
