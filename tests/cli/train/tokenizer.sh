# A folder with a tokenizer: trained on its tokens, carried into run, checkpoint and export; refused where it does not fit.
python3 - <<'END'
import json, os
ids = json.load(open(os.environ["MODELS"] + "/../tokens/gpt2/tokenizer.json"))
vocab = 1 + max(list(ids["model"]["vocab"].values()) + [t["id"] for t in ids["added_tokens"]])
config = {"model_type": "llama", "vocab_size": vocab + 3, "hidden_size": 32, "intermediate_size": 64,
          "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128,
          "tie_word_embeddings": True}
json.dump(config, open("fits.json", "w"))
json.dump({**config, "vocab_size": 300}, open("small.json", "w"))
END
for shape in fits small; do
    leanstep init $shape.json --out $shape > $shape.txt || exit
    cp $MODELS/../tokens/gpt2/tokenizer.json $shape/
done
leanstep train fits --data $TEXT --seq 64 --steps 3 --out run > log.txt || exit
grep -c "perplexity of the validation data" log.txt
ls run run/checkpoint-*
cat run/generation_config.json
leanstep resume run --steps 5 > log.txt || exit
leanstep export run --out out > log.txt || exit
cmp out/tokenizer.json fits/tokenizer.json && echo "the same tokenizer.json"
leanstep generate out --prompt "the plan" --tokens 5 > a.txt
leanstep generate run --prompt "the plan" --tokens 5 | cmp - a.txt && echo "the same text"
leanstep train small --data $TEXT --seq 64 --steps 3 --out refused > log.txt
[ -e refused ] || echo "nothing written"
