# Options that have no effect, a vocabulary without a tokenizer, and one whose tokenizer is broken.
leanstep init demo --out bytes > log.txt || exit
leanstep generate bytes --chat chatml --prompt hi
leanstep generate bytes --system 'Be brief.'
leanstep init $MODELS/llama_gqa/config.json --out other >> log.txt || exit
leanstep generate other --prompt hi
echo '{"model": {"type": "Unigram"}}' > other/tokenizer.json
leanstep generate other --prompt hi
