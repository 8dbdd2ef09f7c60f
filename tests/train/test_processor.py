"""What a training process asks of the CPU, checked in processes of their own: it would outlast the test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def printed(code: str, project: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_tiny_numbers_are_flushed_in_every_thread(project: Path) -> None:
    code = """
from train.launch import flush_denormals, share_processor
share_processor()
flush_denormals()
import torch
torch.set_num_threads(2)
tiny = torch.full((1 << 20,), 1e-40)
print(int((tiny * 1.0 != 0).sum()))
"""
    assert printed(code, project) == "0"


def test_settings_of_the_user_stay(project: Path) -> None:
    code = """
import os
os.environ["THP_MEM_ALLOC_ENABLE"] = "0"
from train.launch import share_processor
share_processor()
print(os.environ["THP_MEM_ALLOC_ENABLE"], os.environ["OMP_WAIT_POLICY"])
"""
    assert printed(code, project) == "0 PASSIVE"
