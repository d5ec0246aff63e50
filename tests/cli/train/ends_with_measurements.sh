leanstep train demo --data $TEXT --batch 2 --seq 64 --steps 3 --threads 2 --memory 256MiB --out run
