leanstep explain decay
