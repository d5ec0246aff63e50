printf 'Too short.' > short.txt
leanstep train demo --data short.txt --out run > /dev/null
status=$?
test ! -e run || echo "a run folder was left behind"
exit $status
