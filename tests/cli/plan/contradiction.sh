leanstep plan gpt2 --grads release --clip 1.0 --memory 8GiB
