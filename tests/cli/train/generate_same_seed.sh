leanstep train demo --data $TEXT --batch 4 --seq 64 --steps 30 --out run > log.txt || exit
leanstep generate run --prompt 'The quick ' --tokens 60 --threads 1 > one.txt || exit
leanstep generate run --prompt 'The quick ' --tokens 60 --threads 2 > two.txt || exit
cmp one.txt two.txt && echo "the same text"
leanstep generate run --prompt 'The quick ' --tokens 60 --seed 2 > three.txt || exit
cmp -s one.txt three.txt || echo "another seed, another text"
