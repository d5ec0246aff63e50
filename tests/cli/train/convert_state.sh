# The state of a run under bitsandbytes' names and back is the same file; PyTorch's is float32.
leanstep train demo --data $TEXT --seq 64 --steps 3 --threads 1 --seed 7 --state q8-dynamic --out run > log.txt || exit
leanstep convert-state run --to bitsandbytes --out bnb.safetensors || exit
leanstep convert-state bnb.safetensors --to leanstep --out back.safetensors || exit
cmp back.safetensors run/checkpoint-00000003/optimizer.safetensors && echo "the same file"
leanstep convert-state bnb.safetensors --to torch --out torch.safetensors || exit
leanstep convert-state bnb.safetensors --to leanstep --state q4 --out q4.safetensors || exit
leanstep convert-state q4.safetensors --to bitsandbytes --out no.safetensors
leanstep convert-state run --to torch --out back.safetensors
ls
