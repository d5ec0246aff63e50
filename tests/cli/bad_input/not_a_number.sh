leanstep plan --params seven
