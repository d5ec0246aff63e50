leanstep measure --linear 4096x4096 --threads 2
