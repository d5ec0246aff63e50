leanstep plan $SOURCE/tests/golden/bad/config_truncated.json
