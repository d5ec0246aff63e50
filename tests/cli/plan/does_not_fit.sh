leanstep plan gpt2 --threads 2 --precision fp32 --state f32 --grads keep --activations keep --loss-chunk 128 --memory 1GiB
