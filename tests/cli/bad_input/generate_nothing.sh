leanstep generate no/such/run --prompt hello
