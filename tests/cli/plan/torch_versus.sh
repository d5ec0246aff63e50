leanstep plan Llama-3.2-1B --for torch --versus="--torch-optimizer adamw8bit-bnb --checkpointing"
