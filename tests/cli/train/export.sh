# Random weights of a shape, trained, exported: the config as it came but for the dtype.
leanstep init demo --out model --seed 3 --shard-size 500000 || exit
leanstep train model --data $TEXT --seq 64 --steps 2 --weights split24 --state q8 --out run > log.txt || exit
leanstep export run --out out || exit
leanstep export run --out exact --dtype f32 || exit
cmp model/config.json out/config.json && echo "the same config.json"
diff model/config.json exact/config.json
ls model out
leanstep export run --out out
leanstep export . --out other
leanstep init demo
ls
