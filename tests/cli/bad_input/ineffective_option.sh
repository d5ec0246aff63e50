leanstep plan --params 7e9 --optimizer sgd --beta2 0.95
