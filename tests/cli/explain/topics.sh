leanstep explain
