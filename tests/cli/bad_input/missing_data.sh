leanstep train demo --data no/such/text --out run > /dev/null
