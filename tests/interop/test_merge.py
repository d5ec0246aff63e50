# SPDX-License-Identifier: MIT
"""What `leanstep merge` writes computes what peft computes with the adapter beside the model."""
import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

ROOT = Path(__file__).resolve().parent.parent.parent
LEANSTEP = ROOT / "build/leanstep"
MODELS = ROOT / "tests/golden/models"


class Merge(unittest.TestCase):
    def test_same_logits_as_peft(self):
        adapters = sorted(path.parent for path in MODELS.glob("*/adapter_config.json"))
        self.assertTrue(adapters)
        for adapter in adapters:
            expected = json.loads((adapter / "expected.json").read_text())
            base = MODELS / expected["base"]
            ids = load_file(adapter / "expected.safetensors")["input_ids"]
            with self.subTest(adapter.name), tempfile.TemporaryDirectory() as folder, torch.no_grad():
                out = Path(folder) / "merged"
                subprocess.run([LEANSTEP, "merge", base, adapter, "--out", out], check=True, stdout=subprocess.DEVNULL)
                ours = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)(ids).logits
                model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
                theirs = PeftModel.from_pretrained(model, adapter)(ids).logits
                self.assertLessEqual((ours - theirs).abs().max().item(), expected["tolerance"]["logits"] * 10)


if __name__ == "__main__":
    unittest.main()
