leanstep --help
