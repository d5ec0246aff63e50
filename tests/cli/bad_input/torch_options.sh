leanstep plan gpt2 --lora all
leanstep plan gpt2 --for torch --optimizer sgd
leanstep plan gpt2 --for torch --base nf4
leanstep plan gpt2 --for torch --zero 2
leanstep plan gpt2 --for torch --explain nothing
leanstep plan gpt2 --for torch --card gtx-0
leanstep plan gpt2 --for torch --lora q,x
leanstep plan gpt2 --table ranks
leanstep plan no-such-model --for torch
leanstep plan gpt2 --for torch --compile
leanstep plan gpt2 --for torch --form fused --torch-optimizer lion
