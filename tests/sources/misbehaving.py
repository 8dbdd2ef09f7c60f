"""Functions for a child process to suffer from."""

from __future__ import annotations

import ctypes
import os
import re
import time
from typing import Any


def misbehave(data: bytes, options: dict[str, Any]) -> dict[str, Any]:
    """Do what `options["do"]` says."""
    match options["do"]:
        case "echo":
            return {"text": data.decode(), "process": os.getpid()}
        case "hang":
            re.match(rb"(a+)+b", b"a" * 60)
        case "crash":
            ctypes.string_at(0)
        case "exit":
            os._exit(3)
        case "raise":
            raise ValueError("no \x1b[2J good")
        case "eat":
            bytearray(1 << 31)
        case "print":
            print("noise on standard output", flush=True)
            os.write(1, b"more noise")
        case "sleep":
            time.sleep(0.5)
    return {"text": "done"}
