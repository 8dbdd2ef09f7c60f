#!/usr/bin/env bash
# Everything that needs a GPU: each kernel against the reference, small training runs, and the utilisation of one GPU.
#   bash tests/gpu/run.sh [folder for results]        PYTHON=... for another interpreter than .venv's
# The last lines say what ran. Exit code 1: something failed; 3: nothing failed, but training was not run (no DeepSpeed);
# 4: no GPU.
set -u
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-.venv/bin/python}
RESULTS=${1:-runs/gpu}
mkdir -p "$RESULTS"
if ! "$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
    echo "GPU CHECKS NOT RUN: no GPU here"
    exit 4
fi
"$PYTHON" -c 'import torch; p = torch.cuda.get_device_properties(0); print(torch.__version__, p.name, p.total_memory >> 30, "GiB")'
rm -f "$RESULTS/distances.jsonl"
failed=0 skipped=0
ROOTBLOOM_DISTANCES="$RESULTS/distances.jsonl" "$PYTHON" -m pytest tests/gpu/test_kernels.py ${PYTEST_OPTIONS:-} 2>&1 | tee "$RESULTS/kernels.log"
[ "${PIPESTATUS[0]}" -eq 0 ] && kernels="KERNELS passed" || { kernels="KERNELS FAILED"; failed=1; }
if "$PYTHON" -c 'import deepspeed' > "$RESULTS/deepspeed.log" 2>&1; then
    "$PYTHON" -m pytest tests/gpu/test_training.py 2>&1 | tee "$RESULTS/training.log"
    [ "${PIPESTATUS[0]}" -eq 0 ] && training="TRAINING passed" || { training="TRAINING FAILED"; failed=1; }
    "$PYTHON" -m tests.gpu.utilisation --json "$RESULTS/utilisation.json" --profile "$RESULTS/profile.txt" 2>&1 | tee "$RESULTS/utilisation.log"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
    speed=$(grep '^UTILISATION' "$RESULTS/utilisation.log" || echo "UTILISATION FAILED")
else
    training="TRAINING NOT RUN: DeepSpeed cannot be imported"
    speed="UTILISATION NOT MEASURED: DeepSpeed cannot be imported"
    skipped=1
fi
printf '%s\n' "$kernels" "$training" "$speed"
[ "$failed" -eq 0 ] || exit 1
[ "$skipped" -eq 0 ] || exit 3
