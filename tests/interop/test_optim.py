# SPDX-License-Identifier: MIT
"""torch.optim and libleanstep, the same gradients, the same weights."""
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
N_ELEMS, N_STEPS = 10_000, 50
# A few float32 roundings a step, relative to the largest weight.
TOLERANCE = 2e-6

CASES = {
    "sgd": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.01), "sgd lr=0.1 weight_decay=0.01"),
    "momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9), "momentum lr=0.1 momentum=0.9"),
    "nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True), "nesterov lr=0.1 momentum=0.9"),
    "adam": (torch.optim.Adam, dict(lr=0.01, weight_decay=0.1), "adam lr=0.01 weight_decay=0.1"),
    "adamw": (torch.optim.AdamW, dict(lr=0.01, weight_decay=0.1), "adamw lr=0.01 weight_decay=0.1"),
}


class Optimizers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.program = Path(cls.folder.name) / "optim_steps"
        subprocess.run(["cc", "-std=c11", "-O1", HERE / "optim_steps.c", "-o", cls.program, f"-I{ROOT / 'include'}",
                        f"-L{ROOT / 'build'}", "-lleanstep", f"-Wl,-rpath,{ROOT / 'build'}"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ours(self, words, weights, grads):
        rule, *fields = words.split()
        done = subprocess.run([self.program, rule, str(N_ELEMS), str(N_STEPS), *fields], check=True, capture_output=True,
                              input=torch.cat([weights, grads.flatten()]).numpy().tobytes())
        return torch.frombuffer(bytearray(done.stdout), dtype=torch.float32)

    def check(self, name):
        make, options, words = CASES[name]
        torch.manual_seed(1)
        start, grads = torch.randn(N_ELEMS), torch.randn(N_STEPS, N_ELEMS)
        weights = start.clone().requires_grad_()
        optimizer = make([weights], **options)
        for grad in grads:
            weights.grad = grad.clone()
            optimizer.step()
        worst = (self.ours(words, start, grads) - weights.detach()).abs().max() / weights.detach().abs().max()
        print(f"{name}: largest difference {worst:.2e} of the largest weight (tolerance {TOLERANCE:.0e})")
        self.assertLess(worst.item(), TOLERANCE)


def add(name):
    setattr(Optimizers, f"test_{name}", lambda self: self.check(name))


for case in CASES:
    add(case)

if __name__ == "__main__":
    unittest.main()
