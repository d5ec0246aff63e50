leanstep train demo --data $TEXT --memory 1MiB --out run > /dev/null
status=$?
test ! -e run || echo "a run folder was left behind"
exit $status
