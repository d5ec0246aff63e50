leanstep measure demo --gradients --seq 64 --threads 2
