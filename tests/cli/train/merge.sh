# A LoRA adapter merged into its model; what cannot be merged, named.
leanstep merge $MODELS/llama_gqa $MODELS/lora_llama_rs --out merged || exit
cmp $MODELS/llama_gqa/config.json merged/config.json && echo "the same config.json"
leanstep merge $MODELS/gpt2 $MODELS/lora_gpt2 --out half --dtype bf16 || exit
ls merged half
leanstep merge $MODELS/llama_gqa $MODELS/lora_llama_rs --out merged
leanstep merge $MODELS/llama_gqa $MODELS/lora_llama_rs
cp $MODELS/lora_llama_rs/* .
sed -i 's/"use_dora": false/"use_dora": true/' adapter_config.json
leanstep merge $MODELS/llama_gqa . --out other
ls -d other
