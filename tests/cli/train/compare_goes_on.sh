# A comparison that was killed goes on: finished trials stay, half a line is dropped, and the losses are the same.
compare() {
    leanstep compare demo --data $TEXT --recipes adamw/q8,adamw/split24+q4 --steps 3 --batch 1 --seq 32 --seeds 2 \
        --eval-sequences 2 --lrs 1e-3,2e-3,4e-3 --threads 1 --out out > log.txt || exit
}
losses() { grep -o '"recipe.*"valid_loss":[^,]*' "$1" | sort; }
compare
losses out/compare.jsonl > whole.txt
head -n 4 out/compare.jsonl > some && echo -n '{"recipe":"adamw q8","lr":0.0' >> some && mv some out/compare.jsonl
compare
head -n 1 log.txt | sed 's/at least [0-9]* trials to make/some trials to make/'
losses out/compare.jsonl | cmp - whole.txt && echo "the same losses"
grep -c '"as_planned":true' out/compare.jsonl | cmp - <(wc -l < whole.txt) && echo "all as planned"
grep -c '<svg' out/compare.html
leanstep compare demo --data $TEXT --recipes adamw/q8 --steps 4 --batch 1 --seq 32 --seeds 2 --eval-sequences 2 \
    --lrs 1e-3,2e-3,4e-3 --threads 1 --out out
