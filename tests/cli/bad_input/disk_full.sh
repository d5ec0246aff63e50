# A limit on the size of a file stands in for a full disk: the checkpoint cannot be saved, and nothing half-written stays.
leanstep train demo --data $TEXT --batch 1 --seq 64 --steps 2 --save-every 1 --out run > log.txt || exit
ls run | grep checkpoint
ulimit -f 1000
trap '' XFSZ
leanstep resume run --steps 4 >> log.txt
status=$?
ls run | grep -E 'checkpoint|tmp'
exit $status
