: > empty.txt
leanstep train demo --data empty.txt --out run > /dev/null
status=$?
test ! -e run || echo "a run folder was left behind"
exit $status
