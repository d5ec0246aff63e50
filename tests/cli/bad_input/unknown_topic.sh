leanstep explain lion
