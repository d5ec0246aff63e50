# Root reads everything: as root, the refusal is what the user nobody meets, with a copy of the program it can reach.
mkdir text
printf 'Some text.' > text/a.txt
chmod 000 text
if [ "$(id -u)" -eq 0 ]; then
    chmod 755 . ..
    cp "$(command -v leanstep)" program
    setpriv --reuid 65534 --regid 65534 --clear-groups ./program train demo --data text --out /nowhere/run > /dev/null
else
    leanstep train demo --data text --out run > /dev/null
fi
