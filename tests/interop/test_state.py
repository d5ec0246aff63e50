# SPDX-License-Identifier: MIT
"""PyTorch's AdamW and bitsandbytes' AdamW8bit go on from Leanstep's state, and Leanstep from theirs."""
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

try:
    import bitsandbytes
except ImportError:
    bitsandbytes = None

ROOT = Path(__file__).resolve().parent.parent.parent
LEANSTEP = ROOT / "build/leanstep"
TEXT = ROOT / "docs/architecture.md"
STEPS = 6
MOMENTS = ("exp_avg", "exp_avg_sq")
NUMBERED = ("state1", "absmax1", "qmap1", "state2", "absmax2", "qmap2")


def leanstep(*words):
    done = subprocess.run([LEANSTEP, *map(str, words)], capture_output=True)
    if done.returncode:
        raise AssertionError(f"leanstep {' '.join(map(str, words))}: {done.stderr.decode()}")


def read(path):
    """(tensors by parameter and name, metadata) of a converted file."""
    state = {}
    with safe_open(path, "pt") as file:
        for name in file.keys():
            param, slot = name.removeprefix("state.").rsplit(".", 1)
            state.setdefault(param, {})[slot] = file.get_tensor(name)
        return state, file.metadata()


def load(make, path, weights):
    """An optimizer of these weights with the file's state: param_groups as they stand there, by name."""
    state, metadata = read(path)
    groups = json.loads(metadata["param_groups"])
    names = [name for group in groups for name in group["params"]]
    optimizer = make([{**group, "params": [weights[name] for name in group["params"]]} for group in groups])
    held = optimizer.state_dict()
    held["state"] = {names.index(name): slots for name, slots in state.items()}
    optimizer.load_state_dict(held)
    return optimizer, names, metadata


class State(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = Path(cls.folder.name)
        cls.run_folder = cls.at / "run"
        leanstep("train", "demo", "--data", TEXT, "--seq", 64, "--batch", 2, "--steps", STEPS, "--lr", 0.01,
                 "--sample-tokens", 0, "--state", "q8-dynamic", "--progress", "none", "--out", cls.run_folder)
        cls.checkpoint = next(cls.run_folder.glob("checkpoint-*"))
        for layout in ("torch", "bitsandbytes"):
            leanstep("convert-state", cls.run_folder, "--to", layout, "--out", cls.at / layout)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def weights(self):
        held = load_file(self.checkpoint / "model.safetensors")
        return {name: tensor.clone().requires_grad_() for name, tensor in held.items()}

    def step(self, optimizer, weights):
        torch.manual_seed(1)
        for name in sorted(weights):
            weights[name].grad = torch.randn(weights[name].shape) * 1e-3
        optimizer.step()

    def torch_step(self):
        weights = self.weights()
        optimizer, names, _ = load(torch.optim.AdamW, self.at / "torch", weights)
        self.step(optimizer, weights)
        return weights, optimizer, names

    def test_torch_steps_on(self):
        before, state = self.weights(), read(self.at / "torch")[0]
        weights, optimizer, _ = self.torch_step()
        torch.manual_seed(1)
        for group in optimizer.param_groups:
            self.assertEqual(group["betas"], [0.9, 0.999])
        lr = {id(w): group["lr"] for group in optimizer.param_groups for w in group["params"]}
        decay = {id(w): group["weight_decay"] for group in optimizer.param_groups for w in group["params"]}
        for name in sorted(weights):
            w, g = weights[name], weights[name].grad.double()
            m, v = (state[name][slot].double() for slot in MOMENTS)
            m, v, t = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g, STEPS + 1
            want = before[name].detach().double() * (1 - lr[id(w)] * decay[id(w)])
            want -= lr[id(w)] * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
            self.assertLess((w.detach() - want).abs().max().item(), 1e-6, name)

    @unittest.skipIf(bitsandbytes is None, "bitsandbytes is not installed")
    def test_bitsandbytes_steps_on_and_leanstep_takes_it_back(self):
        weights = self.weights()
        optimizer, names, metadata = load(bitsandbytes.optim.AdamW8bit, self.at / "bitsandbytes", weights)
        self.step(optimizer, weights)
        reference, _, _ = self.torch_step()
        for name in weights:  # the moments were the same numbers; only what is stored afterwards is rounded
            worst = (weights[name] - reference[name]).abs().max().item()
            self.assertLess(worst, 1e-6, name)
        out = {}
        for at, slots in optimizer.state_dict()["state"].items():
            self.assertEqual(int(slots["step"]), STEPS + 1)
            slots = {**slots, **slots.get("__bnb_optimizer_quant_state__", {})}  # where newer versions put them
            for slot in NUMBERED:
                if slot in slots and slots[slot] is not None:
                    out[f"state.{names[at]}.{slot}"] = slots[slot].contiguous().clone()
            out[f"state.{names[at]}.step"] = torch.tensor(int(slots["step"]))
        save_file(out, self.at / "theirs", metadata)
        again = self.at / "again"
        shutil.copytree(self.run_folder, again)
        checkpoint = next(again.glob("checkpoint-*"))
        (checkpoint / "optimizer.safetensors").unlink()
        leanstep("convert-state", self.at / "theirs", "--to", "leanstep", "--out", checkpoint / "optimizer.safetensors")
        save_file({name: w.detach() for name, w in weights.items()}, checkpoint / "model.safetensors", {"format": "pt"})
        leanstep("resume", again, "--steps", STEPS + 4, "--progress", "none")
        losses = [json.loads(line) for line in (again / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(max(line["step"] for line in losses), STEPS + 4)
        back, _ = read(next(again.glob(f"checkpoint-*{STEPS + 4}")) / "optimizer.safetensors")
        self.assertEqual(set(back), set(weights))


if __name__ == "__main__":
    unittest.main()
