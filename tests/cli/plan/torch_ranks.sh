leanstep plan Llama-3.1-8B --for torch --table ranks
