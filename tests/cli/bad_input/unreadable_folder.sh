# Root reads everything: the refusal is shown as the user nobody where that can be done.
mkdir text
printf 'Some text.' > text/a.txt
chmod 000 text
if [ "$(id -u)" -eq 0 ]; then
    chmod 755 . ..
    program=$(command -v leanstep)
    setpriv --reuid 65534 --regid 65534 --clear-groups "$program" train demo --data text --out /nowhere/run > plan.txt
else
    leanstep train demo --data text --out run > plan.txt
fi
