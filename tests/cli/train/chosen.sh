# --memory alone, in a run.
leanstep train demo --data $TEXT --threads 2 --batch 4 --seq 256 --memory 30MiB --steps 2 --sample-tokens 0 --out run > log.txt || exit
sed -n '/^Chosen/,/^$/p' log.txt
