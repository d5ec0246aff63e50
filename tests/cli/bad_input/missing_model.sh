leanstep plan no/such/config.json
