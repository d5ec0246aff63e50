: > empty.txt
leanstep train demo --data empty.txt --out run > plan.txt
status=$?
test ! -e run || echo "a run folder was left behind"
exit $status
