# SPDX-License-Identifier: MIT
"""`leanstep generate` on folders of transformers with their tokenizers: the same greedy text, ended by the same token."""
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM

ROOT = Path(__file__).resolve().parent.parent.parent
LEANSTEP = ROOT / "build/leanstep"
TOKENS = ROOT / "tests/golden/tokens"
PROMPT = "Hello, w\u00f6rld! 12"
LENGTH = 30

DECODER = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
               max_position_embeddings=256, tie_word_embeddings=False)
CASES = {
    "smollm": ("llama", DECODER),
    "llama3": ("llama", DECODER),
    "qwen2": ("qwen2", DECODER),
    "gpt2": ("gpt2", dict(n_embd=32, n_layer=2, n_head=4, n_positions=256)),
}


class Generate(unittest.TestCase):
    def check(self, name):
        family, shape = CASES[name]
        tokenizer = Tokenizer.from_file(str(TOKENS / name / "tokenizer.json"))
        known = tokenizer.get_vocab_size()
        torch.manual_seed(3)
        config = AutoConfig.for_model(family, **shape, vocab_size=known + 7, initializer_range=0.5, eos_token_id=None,
                                      bos_token_id=None)
        model = AutoModelForCausalLM.from_config(config).eval()
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            shutil.copy(TOKENS / name / "tokenizer.json", folder)
            ids = tokenizer.encode(PROMPT).ids
            written = []
            for _ in range(LENGTH):
                with torch.no_grad():
                    written.append(model(torch.tensor([ids + written])).logits[0, -1].argmax().item())
            self.same(folder, tokenizer, written)
            stop = written[5]
            (Path(folder) / "generation_config.json").write_text(json.dumps({"eos_token_id": [10**9, stop]}))
            self.same(folder, tokenizer, written[:written.index(stop)])

    def same(self, folder, tokenizer, written):
        done = subprocess.run([LEANSTEP, "generate", folder, "--prompt", PROMPT, "--temperature", "0", "--tokens",
                               str(LENGTH)], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = tokenizer.decode([token for token in written if token < tokenizer.get_vocab_size()])
        shown = "".join("?" if ord(c) < 32 and c not in "\n\t" or ord(c) == 127 else c for c in text)
        self.assertEqual(done.stdout.decode(), PROMPT + shown + "\n")


def add(name):
    setattr(Generate, f"test_{name}", lambda self: self.check(name))


for case in CASES:
    add(case)

if __name__ == "__main__":
    unittest.main()
