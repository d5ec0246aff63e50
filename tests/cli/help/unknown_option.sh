leanstep plan --params 7e9 --memry 2GiB
