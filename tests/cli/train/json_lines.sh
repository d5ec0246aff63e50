# Chats: what counts, what is cut, a run in two is a run in one; broken lines and examples without an answer leave nothing behind.
python3 - <<'END'
import json
config = {"model_type": "qwen2", "vocab_size": 1024, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "tie_word_embeddings": True}
json.dump(config, open("shape.json", "w"))
with open("chats.jsonl", "w") as out:
    for i in range(1, 41):
        turns = [{"role": "user", "content": f"Count to {i}."}, {"role": "assistant", "content": " ".join(map(str, range(1, i + 1)))}]
        out.write(json.dumps({"messages": turns}) + "\n")
    out.write(json.dumps({"text": "a text of its own, longer than a row " * 12}) + "\n")
END
leanstep init shape.json --out model > log.txt || exit
cp $MODELS/../tokens/qwen2/tokenizer*.json model/
leanstep train model --data chats.jsonl --pack --seq 96 --steps 6 --out one > log.txt || exit
sed -n '/^Examples/,/^Run/p' log.txt
leanstep train model --data chats.jsonl --pack --seq 96 --steps 3 --schedule constant --warmup 0 --out two > log.txt || exit
leanstep resume two --steps 6 > log.txt || exit
leanstep train model --data chats.jsonl --pack --seq 96 --steps 6 --schedule constant --warmup 0 --out three > log.txt || exit
cmp two/checkpoint-00000006/model.safetensors three/checkpoint-00000006/model.safetensors && echo "the same weights"
echo '{"messages": [{"role": "user", "content": "?"}]}' >> chats.jsonl
leanstep train model --data chats.jsonl --steps 3 --seq 96 --out refused > log.txt
sed -i '$s/.*/{"messages": 5}/' chats.jsonl
leanstep train model --data chats.jsonl --steps 3 --seq 96 --out refused > log.txt
leanstep resume one --steps 9 > log.txt
[ -e refused ] || echo "nothing written"
