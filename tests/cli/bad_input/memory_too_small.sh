leanstep train demo --data $TEXT --memory 1MiB --out run > plan.txt
status=$?
test ! -e run || echo "a run folder was left behind"
exit $status
