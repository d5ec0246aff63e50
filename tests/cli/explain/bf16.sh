leanstep explain bf16
