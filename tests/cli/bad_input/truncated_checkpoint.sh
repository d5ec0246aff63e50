leanstep train demo --data $TEXT --batch 1 --seq 64 --steps 1 --out run > log.txt || exit
truncate -s -100 run/checkpoint-*/model.safetensors
leanstep resume run --steps 2 >> log.txt
