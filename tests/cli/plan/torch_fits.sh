leanstep plan Qwen2.5-0.5B --for torch --lora q,k,v,o --base nf4-dq --checkpointing --seq 2048 --card rtx-4090
