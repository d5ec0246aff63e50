leanstep plan $SOURCE/tests/golden/bad/config_unknown_family.json
