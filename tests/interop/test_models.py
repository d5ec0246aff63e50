# SPDX-License-Identifier: MIT
"""transformers loads what `leanstep train` saved: every family, the same greedy text."""
import json
import math
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM, TrainerState

ROOT = Path(__file__).resolve().parent.parent.parent
LEANSTEP = ROOT / "build/leanstep"
TEXT = ROOT / "docs/architecture.md"
END = 256  # the token between documents; a text begins after one
SEQ = 64

DECODER = dict(vocab_size=257, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
               max_position_embeddings=256, tie_word_embeddings=False)
FAMILIES = {
    "llama": dict(DECODER, num_key_value_heads=2, rms_norm_eps=1e-6),
    "mistral": dict(DECODER, num_key_value_heads=2, sliding_window=None),
    "qwen2": dict(DECODER, num_key_value_heads=1, tie_word_embeddings=True),
    "qwen3": dict(DECODER, num_key_value_heads=2, head_dim=16),
    "gpt2": dict(vocab_size=257, n_embd=32, n_layer=2, n_head=4, n_positions=256),
}


def leanstep(*words):
    done = subprocess.run([LEANSTEP, *map(str, words)], capture_output=True)
    if done.returncode:
        raise AssertionError(f"leanstep {' '.join(map(str, words))}: {done.stderr.decode()}")
    return done.stdout


class Models(unittest.TestCase):
    def train(self, family, folder, *more):
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(dict(FAMILIES[family], model_type=family)))
        run = Path(folder) / "run"
        leanstep("train", config, "--data", TEXT, "--seq", SEQ, "--batch", 4, "--steps", 30, "--lr", 0.01, "--seed", 3,
                 "--sample-tokens", 0, "--progress", "none", "--out", run, *more)
        return run, next(run.glob("checkpoint-*"))

    def check_text(self, run, model):
        """Greedy bytes, while the best logit leads by more than rounding."""
        prompt = "The rooms"
        ours = leanstep("generate", run, "--prompt", prompt, "--temperature", 0, "--tokens", 80).removesuffix(b"\n")
        ids = torch.tensor([[END, *prompt.encode()]])
        compared = 0
        for byte in ours[len(prompt):]:
            with torch.no_grad():
                best = model(ids).logits[0, -1].topk(2)
            if best.values[0] - best.values[1] < 1e-4:
                break
            self.assertEqual(byte, best.indices[0].item(), f"byte {compared} of the text")
            ids = torch.cat([ids, best.indices[:1].view(1, 1)], dim=1)
            compared += 1
        self.assertGreater(compared, 20)
        return compared


class Families(Models):
    def check(self, family):
        with tempfile.TemporaryDirectory() as folder:
            run, checkpoint = self.train(family, folder)
            model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
            self.assertEqual(model.config.model_type, family)
            compared = self.check_text(run, model)
            print(f"{family}: {compared} bytes of greedy text are the same")


class Folders(Models):
    """A folder that transformers wrote, trained at rate 0, exported: the same weights, so the same logits."""

    def check(self, family):
        with tempfile.TemporaryDirectory() as folder:
            config = AutoConfig.for_model(family, **FAMILIES[family])
            torch.manual_seed(1)
            made = AutoModelForCausalLM.from_config(config).eval()
            made.save_pretrained(f"{folder}/in")
            before = (Path(folder) / "in/config.json").read_bytes()
            leanstep("train", f"{folder}/in", "--data", TEXT, "--seq", SEQ, "--steps", 1, "--lr", 0, "--sample-tokens", 0,
                     "--progress", "none", "--out", f"{folder}/run")
            leanstep("export", f"{folder}/run", "--out", f"{folder}/out", "--shard-size", 20000)
            self.assertEqual((Path(folder) / "out/config.json").read_bytes(), before)
            back, report = AutoModelForCausalLM.from_pretrained(f"{folder}/out", output_loading_info=True)
            self.assertFalse(any(report.values()), report)
            ids = torch.arange(256).view(4, 64)
            with torch.no_grad():
                self.assertTrue(torch.equal(made(ids).logits, back.eval()(ids).logits))
            state = TrainerState.load_from_json(f"{folder}/out/trainer_state.json")
            self.assertEqual(state.global_step, 1)
            self.assertEqual([sorted(line) for line in state.log_history],
                             [["epoch", "eval_loss", "step"], ["epoch", "grad_norm", "learning_rate", "loss", "step"],
                              ["epoch", "eval_loss", "step"]])


class Files(Models):
    def test_optimizer_state_is_readable(self):
        """optimizer.safetensors: a moment beside every weight, of its shape, as float32."""
        with tempfile.TemporaryDirectory() as folder:
            _, checkpoint = self.train("llama", folder)
            with safe_open(checkpoint / "model.safetensors", "pt") as weights, \
                    safe_open(checkpoint / "optimizer.safetensors", "pt") as state:
                names = set(state.keys())
                for name in weights.keys():
                    for slot in ("exp_avg", "exp_avg_sq"):
                        self.assertIn(f"state.{name}.{slot}", names)
                        moment = state.get_tensor(f"state.{name}.{slot}")
                        self.assertEqual(moment.numel(), math.prod(weights.get_slice(name).get_shape()))
                        self.assertEqual(moment.dtype, torch.float32)
                        self.assertTrue(torch.isfinite(moment).all())

    def test_bf16_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            run, checkpoint = self.train("qwen2", folder, "--precision", "bf16")
            with safe_open(checkpoint / "model.safetensors", "pt") as weights:
                self.assertEqual({weights.get_tensor(name).dtype for name in weights.keys()}, {torch.bfloat16})
            # The same bf16 weights, computed with in float32, as Leanstep does.
            self.check_text(run, AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval())


def add(name):
    for tests in (Families, Folders):
        setattr(tests, f"test_{name}", lambda self: self.check(name))


for family_name in FAMILIES:
    add(family_name)

if __name__ == "__main__":
    unittest.main()
