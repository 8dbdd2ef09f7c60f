"""A worker process that fails in the way its argument says; the other one waits."""

from __future__ import annotations

import os
import signal
import sys
import time

if __name__ == "__main__":
    if os.environ["RANK"] == "0":
        time.sleep(60)
    elif sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        print("error: explained", file=sys.stderr)
        sys.exit(2)
