"""A headless Chromium, driven through a pipe by its DevTools protocol; no further package is needed.

Notes every request, console message and uncaught error of a page, so that tests can say there were none.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
          "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe")


class Page:
    """One tab. `requests` are the URLs it asked for, `trouble` what went to the console or was not caught."""

    def __init__(self, process: subprocess.Popen[bytes], write: int, read: int) -> None:
        self._process, self._write, self._read = process, write, read
        self._number, self._waiting, self._session = 0, b"", None
        self.requests: list[str] = []
        self.trouble: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events that arrive meanwhile are noted."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(60)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result

    def run(self, script: str) -> Any:
        """The value of an expression, awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, url: str, ready: str = "document.readyState === 'complete'") -> None:
        """Load a page and wait until an expression is true."""
        self.call("Page.navigate", url=url)
        self.wait(ready)

    def wait(self, condition: str, seconds: float = 60) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < until, f"never true: {condition}; {self.trouble}"
            time.sleep(0.05)

    def enter(self, control: str, value: str, event: str = "change") -> None:
        """Set the value of a control as a user would."""
        self.run(f"(() => {{ const it = document.getElementById({json.dumps(control)}); "
                 f"it.value = {json.dumps(value)}; it.dispatchEvent(new Event({json.dumps(event)})); }})()")

    def click(self, control: str) -> None:
        """Press a button."""
        self.run(f"document.getElementById({json.dumps(control)}).click()")

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """Show the page as a screen of that size does."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def screen(self, path: Path, width: int, height: int, *, dark: bool = False) -> None:
        """A picture of the page as a screen of that size shows it."""
        self.size(width, height, dark=dark)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def _next(self, seconds: float) -> dict[str, Any]:
        while b"\0" not in self._waiting:
            ready, _, _ = select.select([self._read], [], [], seconds)
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 16)
            assert part, f"the browser ended ({self._process.poll()})"
            self._waiting += part
        first, _, self._waiting = self._waiting.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, parameters: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.trouble.append(str([entry.get("value") for entry in parameters["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.trouble.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.trouble.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A tab of a browser of its own."""
    assert CHROMIUM is not None
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()

    def connect() -> None:  # Chromium reads commands from descriptor 3 and answers on 4
        held = os.dup(answer_write)
        os.dup2(command_read, 3)
        os.dup2(held, 4)
        for number in (3, 4):  # a descriptor that had this number already was not to be inherited
            os.set_inheritable(number, True)

    process = subprocess.Popen(
        [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"], preexec_fn=connect, close_fds=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    os.close(command_read)
    os.close(answer_write)
    try:
        yield Page(process, command_write, answer_read)
    finally:
        process.kill()
        process.wait()
        os.close(command_write)
        os.close(answer_read)
