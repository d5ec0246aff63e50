leanstep plan gpt2 --for torch --device cpu --torch-dtype float32 --form loop --explain activations
