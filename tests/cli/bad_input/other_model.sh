# A checkpoint of another model: the optimizer's state does not fit the weights that stand beside it.
leanstep train demo --data $TEXT --batch 1 --seq 64 --steps 1 --out run > log.txt || exit
cp $MODELS/llama_gqa/config.json $MODELS/llama_gqa/model.safetensors run/checkpoint-*/
leanstep resume run --steps 2 >> log.txt
