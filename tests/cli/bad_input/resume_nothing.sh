leanstep resume no/such/run
