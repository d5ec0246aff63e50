leanstep pln
