"""What commands print: one JSON value for programs, plain text into pipes, colours on terminals only."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import orjson
import pytest

from roots_pipeline.core.output import Output, closing_table, table

SCRIPT = """
from roots_pipeline.core.output import Output, closing_table
Output().result({}, closing_table("made", {"where": "runs/[red]x[/red]", "tokens": 1234567}), "done [bold]")
"""


def test_json_is_the_only_thing_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(json=True)
    output.result({"n": np.int64(3), 7: "ü"}, "a sentence", table("t", ("a",), ("b",)))
    output.remark("beside it")
    output.progress.say("under way")
    printed = capsys.readouterr()
    assert orjson.loads(printed.out) == {"n": 3, "7": "ü"}
    assert "under way" in printed.err


def test_quiet_leaves_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(quiet=True)
    output.progress.say("under way")
    output.remark("beside it")
    output.result({}, "the result")
    printed = capsys.readouterr()
    assert printed.out == "the result\n" and printed.err == ""


def test_names_are_not_markup_and_numbers_have_separators(capsys: pytest.CaptureFixture[str]) -> None:
    Output().result({}, closing_table("t", {"folder": "[red]x[/red]", "tokens": 1234567}))
    printed = capsys.readouterr().out
    assert "[red]x[/red]" in printed and "1,234,567" in printed


def test_a_pipe_gets_no_colours_and_a_terminal_does(project: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"PYTHONPATH": str(project), "TERM": "xterm-256color"}
    command = [sys.executable, "-c", SCRIPT]
    piped = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    assert b"\x1b" not in piped and b"done [bold]" in piped
    assert b"\x1b[" in on_a_terminal(command, environment)
    assert b"\x1b[1m" not in on_a_terminal(command, {**environment, "TERM": "dumb"})


@pytest.mark.parametrize("words", [["explain"], ["card", "--name", "a/b", "--description"], ["report", "--run"]])
def test_bytes_that_are_no_text_get_a_sentence(project: Path, words: list[str]) -> None:
    command = [sys.executable, "-m", "roots_pipeline", *words, b"a\xffb"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == ("error: command line: 'a\\udcffb' is no text: character 2 is not valid UTF-8. "
                           "Give it in UTF-8.\n")


def on_a_terminal(command: list[str], environment: dict[str, str]) -> bytes:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, env=environment, stdout=theirs)
    os.close(theirs)
    written = b""
    try:
        while more := os.read(ours, 65536):
            written += more
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0
    return written


def test_more_memory_than_there_is_ends_with_a_sentence() -> None:
    script = """
import numpy as np
from roots_pipeline.core.cli import new_app, run_app
app = new_app("")
@app.command()
def much() -> None:
    np.zeros(1 << 59)
run_app(app)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("error: this needs more memory than there is (Unable to allocate 4.00 EiB")
    assert "Traceback" not in done.stderr
