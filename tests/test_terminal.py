#!/usr/bin/env python3
"""What muc shows on a terminal: progress with what is left of a long step, colours where they are wanted. Prints TAP.

    tests/test_terminal.py MUC
"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

from cli import WORK, compiled_code, has, muc
from files import MUC, USAGE, Skip, run_tests

LONG = ["synth", "--shape", "tinyllama-1.1b", "-t", "1", "-o", str(WORK / "never")]  # ended by the test
BAR = re.compile(r"weights (\S*?)\[(\S*?)#* *(\S*?)\] +\d+ %, (\d+ s|\d+ min \d+ s), (\d+ s|\d+ min \d+ s|\d+ h \d+ min) left")


def shown(command, wanted=None, **environment):
    """What the command writes to a terminal, until that has what is wanted; then it is told to end."""
    try:
        leader, follower = pty.openpty()
    except OSError as problem:  # a root without /dev/pts
        raise Skip(f"no terminal is to be had here: {problem}") from None
    variables = {**{name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}, **environment}
    child = subprocess.Popen([MUC, *command], stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, env=variables)
    os.close(follower)
    text, end = "", time.monotonic() + 120
    while time.monotonic() < end and not (wanted and wanted.search(text)):
        if not select.select([leader], [], [], 1)[0]:
            continue
        try:
            text += os.read(leader, 4096).decode(errors="replace")
        except OSError:  # the child has ended
            break
    child.send_signal(signal.SIGTERM)
    child.wait(timeout=60)
    os.close(leader)
    return text


def test_a_long_step_tells_how_far_it_is_and_what_is_left():
    text = shown(LONG, BAR, TERM="xterm", NO_COLOR="")
    bar = BAR.search(text)
    assert bar and "\033[32m" in bar[0] and "\033[0m" in bar[0], text[-500:]
    assert not (WORK / "never").exists()


def test_bars_are_rarely_drawn():
    started = time.monotonic()
    text = shown(LONG, re.compile("(left.*?){3}", re.S), TERM="xterm")
    assert len(BAR.findall(text)) <= 10 * (time.monotonic() - started), text[-500:]


def test_no_color_leaves_the_bar_without_colours():
    text = shown(LONG, BAR, TERM="xterm", NO_COLOR="1")
    assert BAR.search(text) and "\033[3" not in text and "\033[0m" not in text, text[-500:]


def test_who_waits_for_another_program_sees_for_which_and_how_long():
    compiler = WORK / "slow-cc"
    compiler.write_text("#!/bin/sh\nsleep 2.5\nexec cc \"$@\"\n")
    compiler.chmod(0o755)
    run = ["run", compiled_code(), "--prompt", "go home"]
    text = shown(run, TERM="xterm", CC=str(compiler))
    assert re.search(r"building the code with \S*slow-cc [12] s\r", text), text
    assert re.search(r"\r\033\[Kreturn\r\n", text), text  # the answer is where the line was
    logged = subprocess.run([MUC, *run], capture_output=True, text=True, check=True, env={**os.environ, "CC": str(compiler)})
    assert logged.stdout == "return\n" and "building" not in logged.stderr, logged


def test_reports_and_failures_have_colours_where_the_terminal_has_them():
    has(shown(["targets"], TERM="xterm"), "\033[1mtargets:\033[0m", "\033[1mname")
    has(shown(["inspect", "/nowhere"], TERM="xterm"), "\033[1;31mmuc\033[0m: /nowhere: cannot open")
    has(shown(["nothing"], TERM="xterm"), "\033[1;31mmuc\033[0m: there is no verb 'nothing'")
    for variables in ({"TERM": "dumb"}, {}, {"TERM": "xterm", "NO_COLOR": "1"}):
        assert "\033" not in shown(["targets"], **variables) + shown(["inspect", "/nowhere"], **variables), variables
    assert "\033" not in shown(["targets", "--color=never"], TERM="xterm")


def test_what_is_no_terminal_gets_neither():
    out, err = muc("targets")
    assert "\033" not in out + err
    has(muc("targets", "--color=always")[0], "\033[1mtargets:\033[0m")
    assert "\033" not in muc("targets", "--color=always", "--json")[0]
    has(muc("targets", "--color", "blue", status=USAGE)[1], "--color is auto, always or never, not 'blue'")
    done = subprocess.Popen([MUC, *LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TERM": "xterm"})
    time.sleep(2.5)
    done.send_signal(signal.SIGTERM)
    assert done.communicate(timeout=60) == (b"", b"")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
