# --memory alone: what is chosen, and what the next better would need; and options that leave nothing to choose.
for memory in 24GiB 20GiB 9GiB; do
    leanstep plan qwen2.5-1.5b --threads 2 --memory $memory | sed -n '/^Chosen/,$p'
done
leanstep plan qwen2.5-1.5b --threads 2 --weights bf16+master --state f32 --grads keep --memory 20GiB | grep -A3 'not fit'
leanstep train qwen2.5-1.5b --data $TEXT --threads 2 --weights bf16+master --state f32 --grads keep --memory 20GiB --out run 2>&1 | tail -n 1
ls
