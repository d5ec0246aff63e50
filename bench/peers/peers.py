#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rates of other libraries' optimizers on the CPU, to set beside `leanstep bench` in the same sitting.

    python3 -m venv venv && venv/bin/pip install torch bitsandbytes torchao    # any of them may be missing
    venv/bin/python bench/peers/peers.py --size 67108864 --threads 2
    build/leanstep bench --size 64Mi --threads 2

One tensor, one step per timing, best and median of --repeats after one step to warm up. Torch builds without CUDA are
smaller: add --index-url https://download.pytorch.org/whl/cpu to pip for them. torchao compiles at its first step (minutes).
"""
import argparse
import importlib.metadata
import json
import os
import statistics
import time


def peers(torch):
    """(name, bytes moved a parameter, make(param) -> optimizer, largest size that is worth the wait)."""
    adamw, sgd = torch.optim.AdamW, torch.optim.SGD
    bf16 = torch.bfloat16
    rows = [
        ("torch adamw fused f32", 28, torch.float32, lambda p: adamw([p], fused=True), None),
        ("torch adamw foreach f32", 28, torch.float32, lambda p: adamw([p], foreach=True), None),
        ("torch adamw single f32", 28, torch.float32, lambda p: adamw([p], foreach=False, fused=False), None),
        ("torch adamw fused bf16", 14, bf16, lambda p: adamw([p], fused=True), None),
        ("torch sgd momentum fused f32", 20, torch.float32, lambda p: sgd([p], lr=1e-3, momentum=0.9, fused=True), None),
        ("torch adafactor f32", 12, torch.float32, lambda p: torch.optim.Adafactor([p]), None),
    ]
    try:
        import bitsandbytes as bnb

        rows.append(("bitsandbytes adamw8bit f32", 16.06, torch.float32, lambda p: bnb.optim.AdamW8bit([p]), 1 << 23))
    except Exception as error:  # a peer that cannot be imported here is reported, not fatal
        print(f"# bitsandbytes: not measured ({type(error).__name__}: {error})")
    try:
        from torchao.optim import AdamW8bit

        rows.append(("torchao adamw8bit f32", 16.06, torch.float32, lambda p: AdamW8bit([p]), 1 << 24))
    except Exception as error:
        print(f"# torchao: not measured ({type(error).__name__}: {error})")
    try:
        from deepspeed.ops.adam import DeepSpeedCPUAdam

        rows.append(("deepspeed cpuadam f32", 28, torch.float32, lambda p: DeepSpeedCPUAdam([p]), None))
    except Exception as error:
        print(f"# deepspeed: not measured ({type(error).__name__}: {error})")
    return rows


def measure(torch, size, dtype, make, repeats):
    generator = torch.Generator().manual_seed(1)
    side = 1024 if size % 1024 == 0 else size
    shape = (size // side, side)
    param = torch.nn.Parameter(torch.randn(shape, generator=generator).to(dtype))
    param.grad = (torch.randn(shape, generator=generator) * 0.01).to(dtype)
    optimizer = make(param)
    optimizer.step()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return size / min(times), size / statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1 << 26)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", help="names that contain this")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(args.threads)
    rows = []
    for name, bytes_per_param, dtype, make, most in peers(torch):
        if args.only and args.only not in name:
            continue
        size = min(args.size, most or args.size)
        try:
            best, median = measure(torch, size, dtype, make, args.repeats)
        except Exception as error:
            print(f"# {name}: failed ({type(error).__name__}: {error})")
            continue
        rows.append({"recipe": name, "params": size, "bytes_per_param": bytes_per_param, "params_per_s": best,
                     "median_params_per_s": median, "gb_per_s": best * bytes_per_param / 1e9})
        if not args.json:
            print(f"{name:30s} {best / 1e6:9.1f} Mparam/s  median {median / 1e6:9.1f}  "
                  f"{best * bytes_per_param / 1e9:6.2f} GB/s  ({size} parameters)", flush=True)
    if args.json:
        versions = {}
        for package in ("torch", "bitsandbytes", "torchao", "deepspeed"):
            try:
                versions[package] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                pass
        print(json.dumps({"threads": args.threads, "versions": versions, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
