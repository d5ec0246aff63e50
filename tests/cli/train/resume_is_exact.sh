# Ten steps at once, and the last five of them again from the checkpoint, with another number of threads: the same bytes.
leanstep train demo --data $TEXT --seq 64 --steps 10 --save-every 5 --threads 1 --seed 7 --out run > whole.txt || exit
mv run/checkpoint-00000010 whole
leanstep resume run --threads 2 > rest.txt || exit
for name in model.safetensors optimizer.safetensors; do
    cmp whole/$name run/checkpoint-00000010/$name && echo "the same $name"
done
ls run
wc -l < run/metrics.jsonl
