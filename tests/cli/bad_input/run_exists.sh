mkdir run
echo mine > run/settings.json
leanstep train demo --data $TEXT --out run > /dev/null
status=$?
cat run/settings.json
exit $status
