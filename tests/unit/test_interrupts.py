"""Signals that end a command: those of one burst are one request. A real process sends them to itself."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import os, signal, time
from dbdyno.terminal.interrupts import handle_interrupts, interruptible

def send(name):
    os.kill(os.getpid(), getattr(signal, name))
    # The handler runs before the next line.
    time.sleep(0.001)

with handle_interrupts():
{body}
"""
# Longer than a burst.
LATER = "time.sleep(0.6)"
INTERRUPTED = "dbdyno: interrupted\n"


def ran(body: str, *, ignore: signal.Signals | None = None) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a program."""

    def ignores() -> None:
        if ignore is not None:
            signal.signal(ignore, signal.SIG_IGN)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=textwrap.indent(textwrap.dedent(body), "    "))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=ignores,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("second", ["SIGINT", "SIGTERM"])
def test_a_burst_ends_a_command_once(second: str) -> None:
    """In all phases: while things are stopped, and once nothing is left to stop."""
    body = f"""
    try:
        with interruptible("stopping the servers"):
            try:
                send({second!r})
            finally:
                send("SIGINT")
                print("stopped")
    finally:
        send({second!r})
        send("SIGHUP")
        send("SIGINT")
        print("3 trials are kept")
    """
    assert ran(body) == (130, "stopped\n3 trials are kept\n", INTERRUPTED)


def test_a_burst_before_and_after_what_can_be_stopped_ends_it_once() -> None:
    body = """
    try:
        {inside}
        send("SIGINT")
    finally:
        send("SIGINT")
        print("report")
    """
    for inside in ("pass", "\n        with interruptible('stopping'): pass"):
        assert ran(body.replace("{inside}", inside)) == (130, "report\n", INTERRUPTED), inside


def test_the_third_request_leaves_at_once() -> None:
    body = f"""
    with interruptible("stopping the servers"):
        try:
            send("SIGINT")
        finally:
            {LATER}
            send("SIGINT")
            send("SIGINT")
            print("still stopping")
            {LATER}
            send("SIGTERM")
            print("never printed")
    """
    told = "dbdyno: stopping the servers; interrupt once more to end at once\n"
    assert ran(body) == (130, "still stopping\n", told + INTERRUPTED)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_where_nothing_is_to_be_stopped_other_signals_end_the_process(name: str) -> None:
    end = -signal.Signals[name]
    assert ran(f"send({name!r})") == (end, "", "")
    assert ran(f"with interruptible('stopping'): pass\nsend({name!r})") == (end, "", "")
    late = f"""
    try:
        with interruptible("stopping"):
            send("SIGINT")
    finally:
        {LATER}
        send({name!r})
        print("never printed")
    """
    assert ran(late) == (end, "", "")


# A compiled library that is interrupted while it loads may raise an error of its own, or none.
SWALLOWED = """
try:
    send("SIGINT")
except BaseException:
    pass
"""


def test_an_interrupt_that_a_library_swallows_ends_the_command() -> None:
    assert ran(f"{SWALLOWED}\ntime.sleep(60)") == (130, "", INTERRUPTED)
    stopped = """
with interruptible("stopping the servers"):
    try:
        time.sleep(60)
    finally:
        time.sleep(0.5)
        print("stopped")
"""
    assert ran(SWALLOWED + stopped) == (130, "stopped\n", INTERRUPTED)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_request_in_a_callback_of_a_fork_stops_what_runs(name: str) -> None:
    body = f"""
    os.register_at_fork(after_in_parent=lambda: sent or (sent.append(1), send({name!r})))
    sent = []
    with interruptible("stopping the servers"):
        try:
            if os.fork() == 0:
                os._exit(0)
            time.sleep(60)
        finally:
            time.sleep(0.5)
            print("stopped")
    """
    code, printed, errors = ran(body)
    assert (code, printed) == (130, "stopped\n")
    assert errors.endswith(INTERRUPTED)


def test_an_interrupt_that_is_being_handled_is_not_repeated() -> None:
    body = """
    try:
        send("SIGINT")
    finally:
        try:
            open("/nowhere")
        except OSError:
            time.sleep(0.5)
        time.sleep(0.5)
        print("report")
    """
    assert ran(body) == (130, "report\n", INTERRUPTED)


def test_an_interrupt_that_a_library_turns_into_an_error_is_no_failure() -> None:
    body = """
    import sys
    from dbdyno import commands

    def load(*_):
        try:
            send("SIGINT")
        except BaseException:
            pass
        raise ImportError("initialization failed")

    commands.app = load
    commands.main()
    """
    assert ran(body) == (130, "", INTERRUPTED)


def test_a_command_that_is_interrupted_says_so() -> None:
    body = """
    import sys
    from dbdyno import commands
    from dbdyno.commands import report

    def interrupted(path: str) -> None:
        send("SIGINT")

    report.report = interrupted
    sys.argv = ["dbdyno", "report", "results"]
    commands.main()
    """
    assert ran(body) == (130, "", INTERRUPTED)


def test_under_nohup_a_hangup_ends_nothing() -> None:
    body = """
    with interruptible("stopping"):
        send("SIGHUP")
        print("goes on")
    """
    assert ran(body, ignore=signal.SIGHUP) == (0, "goes on\n", "")
    assert ran(body) == (130, "", INTERRUPTED)


def test_in_the_background_of_a_shell_ctrl_c_ends_what_can_be_stopped_alone() -> None:
    assert ran("send('SIGINT')\nprint('goes on')", ignore=signal.SIGINT) == (0, "goes on\n", "")
    body = """
    with interruptible("stopping"):
        send("SIGINT")
    """
    assert ran(body, ignore=signal.SIGINT) == (130, "", INTERRUPTED)
