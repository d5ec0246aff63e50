leanstep plan --params 7e9 --memory 200GB
