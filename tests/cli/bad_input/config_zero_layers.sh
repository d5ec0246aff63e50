leanstep plan $SOURCE/tests/golden/bad/config_zero_layers.json
