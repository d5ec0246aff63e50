leanstep --version
