mkdir run
echo mine > run/settings.json
leanstep train demo --data $TEXT --out run > plan.txt
status=$?
cat run/settings.json
exit $status
