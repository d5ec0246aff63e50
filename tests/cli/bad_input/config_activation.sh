leanstep plan $SOURCE/tests/golden/bad/config_activation.json
