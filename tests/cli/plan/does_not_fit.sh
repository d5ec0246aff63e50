leanstep plan gpt2 --threads 2 --memory 1GiB
