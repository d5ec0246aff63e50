leanstep plan $SOURCE/tests/golden/bad/config_heads_do_not_divide.json
