leanstep train demo --data no/such/text --out run > plan.txt
