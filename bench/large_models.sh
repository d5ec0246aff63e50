#!/bin/sh
# SPDX-License-Identifier: MIT
# A step of Qwen2.5-1.5B's exact shape with random weights, fully fine-tuned, 1 x 512 tokens: bench/large_models.md.
# Usage: bench/large_models.sh [PROGRAM]; needs 18 GiB of free memory and about ten minutes.
set -eu
leanstep=${1:-build/leanstep}

echo "== float32 moments and master in 20 GiB: refused, with the numbers"
"$leanstep" plan qwen2.5-1.5b --weights bf16+master --state f32 --grads keep --memory 20GiB | grep "not fit in" || true

echo "== b: split24, moments in q8, gradients released"
"$leanstep" measure qwen2.5-1.5b --weights split24 --state q8 --grads release --activations inputs

echo "== a: bf16 weights, float32 master, moments in q8, bf16 gradients kept, exact clipping"
"$leanstep" measure qwen2.5-1.5b --weights bf16+master --state q8 --grad-dtype bf16 --clip 1 --activations pointwise
