leanstep plan $SOURCE/tests/golden/bad/config_string.json
