leanstep plan --help
