"""What the drop-in has beyond sysbench: reports for programs, several percentiles, statistics on Ctrl-C."""

from __future__ import annotations

import csv
import json
import os
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.end_to_end.differential import drop_in

# Every test runs without a server: the statements are answered from memory, or there are none.
DRY = ["--mysql-dry-run", "oltp_read_only", "run"]
SLEEPING = "ffi.cdef[[int usleep(unsigned int);]]\nfunction event() ffi.C.usleep({us}) end\n"
WAIT_S = 30.0


@pytest.fixture(scope="module")
def sysbench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drop_in(tmp_path_factory.mktemp("shims")).folder / "sysbench"


def ran(*command: object, **more: object) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S, check=False, **more)  # type: ignore[call-overload, no-any-return]


def test_reports_as_json_have_standard_output_for_themselves(sysbench: Path) -> None:
    done = ran(
        sysbench, *DRY, "--time=2", "--report-interval=1", "--report-format=json", "--percentile=50,99.9"
    )
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [report["report"] for report in reports] == ["interval", "interval", "final"]
    final = reports[-1]
    assert final["ended"] == "time-limit"
    assert final["events"] >= sum(report["events"] for report in reports[:-1]) > 0
    assert final["queries"]["other"] == final["queries"]["total"] == 16 * final["events"]
    assert set(final["latency_ms"]) == {"min", "avg", "max", "sum", "p50", "p99.9"}
    assert done.stderr.startswith("sysbench 1.0.20 ")
    assert done.returncode == 0


def test_reports_as_csv_have_a_value_for_every_name(sysbench: Path) -> None:
    done = ran(sysbench, *DRY, "--events=7", "--report-format=csv", "--threads=2")
    (final,) = csv.DictReader(done.stdout.splitlines())
    assert (final["report"], final["events"], final["other"]) == ("final", "7", "112")
    assert float(final["latency_p95"]) > 0.0
    assert None not in final.values()


@pytest.mark.parametrize("test", ["oltp_point_select", "query.lua"])
def test_event_loops_without_threads_lose_no_arrivals(sysbench: Path, tmp_path: Path, test: str) -> None:
    (tmp_path / "query.lua").write_text(
        "function thread_init() con = sysbench.sql.driver():connect() end\n"
        'function event() con:query("SELECT 1") end\n'
    )
    load = ["--mysql-dry-run", "--threads=1", "--workers=2", "--rate=200", "--time=2", "--report-format=json"]
    done = ran(sysbench, test, *load, "run", cwd=tmp_path)
    final = json.loads(done.stdout.splitlines()[-1])
    # 400 arrivals on average, with a standard deviation of 20; with an event loop that serves none, 200.
    assert 300 < final["events"] < 500


# What a script writes by every way there is, and a program that it starts.
TALKING = """
function event()
   print("printed")
   io.write("written\\n")
   io.flush()
   os.execute("echo executed")
end
"""


@pytest.mark.parametrize("form", ["json", "csv"])
def test_the_usual_text_goes_to_standard_error(sysbench: Path, tmp_path: Path, form: str) -> None:
    (tmp_path / "talks.lua").write_text(TALKING)
    options = ["--rate=20", "--time=2", "--report-interval=1", "--histogram", f"--report-format={form}"]
    done = ran(sysbench, "talks.lua", "run", *options, cwd=tmp_path)
    if form == "json":
        kinds = [json.loads(line)["report"] for line in done.stdout.splitlines()]
    else:
        kinds = [row["report"] for row in csv.DictReader(done.stdout.splitlines())]
    assert (kinds[0], kinds[-1]) == ("interval", "final")
    for line in ["[ 1s ] thds: 1 eps: ", "Latency histogram", "General statistics:", "Threads fairness:"]:
        assert line in done.stderr, line
    for word in ["printed", "written", "executed"]:
        assert f"{word}\n" in done.stderr
    assert done.returncode == 0


def test_the_threads_are_refused_on_standard_error(sysbench: Path) -> None:
    done = ran(sysbench, *DRY, "--threads=0", "--report-format=json")
    assert (done.stdout, done.stderr) == ("", "FATAL: Invalid value for --threads: 0.\n\n")


def test_what_fails_is_told_on_standard_error(sysbench: Path, tmp_path: Path) -> None:
    (tmp_path / "fails.lua").write_text('function event() error("at once") end')
    done = ran(sysbench, "fails.lua", "run", "--report-format=csv", cwd=tmp_path)
    assert "FATAL: `thread_run' function failed: fails.lua:1: at once" in done.stderr
    assert "FATAL" not in done.stdout
    assert done.returncode == 1


def test_several_percentiles(sysbench: Path) -> None:
    done = ran(sysbench, *DRY, "--events=9", "--percentile=50,99,99.9")
    rows = [line.split(":")[0].strip() for line in done.stdout.splitlines() if "th percentile:" in line]
    assert rows == ["50th percentile", "99th percentile", "99.9th percentile"]


def test_a_script_knows_a_whole_percentile(sysbench: Path, tmp_path: Path) -> None:
    script = (
        SLEEPING.format(us=50_000)
        + """
function thread_init() print("known", sysbench.opt.percentile, type(sysbench.opt.percentile)) end
sysbench.hooks.report_intermediate = sysbench.report_default
"""
    )
    (tmp_path / "told.lua").write_text(script)
    options = ["--time=1", "--report-interval=1", "--percentile=99.9,50"]
    done = ran(sysbench, "told.lua", "run", *options, cwd=tmp_path)
    assert "known\t99\tnumber\n" in done.stdout, done.stdout + done.stderr
    assert " lat (ms,99.9%): " in done.stdout
    assert "    99.9th percentile: " in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("compat", ["1.0", "1.1"])
def test_the_forms_of_both_versions(sysbench: Path, compat: str) -> None:
    done = ran(sysbench, *DRY, "--events=5", f"--compat={compat}")
    newer = "Throughput:\n    events/s (eps): " in done.stdout
    assert newer == (compat == "1.1")
    assert ("General statistics:\n" in done.stdout) == (compat == "1.0")
    assert done.returncode == 0
    refused = ran(sysbench, *DRY, "--events=5", f"--compat={compat}", "--rand-type=special")
    assert ("Invalid random numbers distribution: special." in refused.stdout) == (compat == "1.1")


def started(
    sysbench: Path, folder: Path, script: str, *options: str, until: bytes = b"Threads started!"
) -> subprocess.Popen[bytes]:
    (folder / "sleeps.lua").write_text(script)
    command = [str(sysbench), "sleeps.lua", "run", "--time=600", *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    read_until(process, until)
    return process


def read_until(process: subprocess.Popen[bytes], words: bytes) -> None:
    """Read what it prints up to `words`, and whatever came with them."""
    seen = b""
    deadline = time.monotonic() + WAIT_S
    assert process.stdout is not None
    while words not in seen:
        assert select.select([process.stdout], [], [], deadline - time.monotonic())[0], seen
        seen += os.read(process.stdout.fileno(), 1 << 16)


# A user that is held for an hour must not hold the report.
@pytest.mark.parametrize("us", [1000, 3_600_000_000])
def test_ctrl_c_prints_what_was_measured(sysbench: Path, tmp_path: Path, us: int) -> None:
    process = started(sysbench, tmp_path, SLEEPING.format(us=us), "--threads=2")
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=WAIT_S)[0].decode()
    assert "Threads fairness:" in said
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_other_signals_end_it_without_a_word(sysbench: Path, tmp_path: Path, name: str) -> None:
    process = started(sysbench, tmp_path, SLEEPING.format(us=1000))
    process.send_signal(signal.Signals[name])
    assert b"fairness" not in process.communicate(timeout=WAIT_S)[0]
    assert process.returncode == -signal.Signals[name]


# What a script does before and after its users' events; none of it can be stopped but by the signal itself.
AROUND = """
ffi.cdef[[int usleep(unsigned int);]]
function {where}()
   print("there")
   ffi.C.usleep(3600000000)
end
function event() end
"""


@pytest.mark.parametrize("where", ["init", "thread_init", "done"])
def test_ctrl_c_ends_what_is_no_load_at_once(sysbench: Path, tmp_path: Path, where: str) -> None:
    # Lines of a script are printed at once; those of `event` would be too many.
    script = AROUND.replace("{where}", where)
    process = started(sysbench, tmp_path, script, "--events=1", until=b"there\n")
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=WAIT_S)[0]
    assert b"fairness" not in said
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize(
    "command",
    [
        "cpu --time=600 --threads=2 run",
        "oltp_point_select --mysql-dry-run --time=600 --threads=4 --rate=50 run",
        "memory --time=600 --threads=2 run",
    ],
)
def test_the_signals_of_gnu_timeout_are_one_ctrl_c(sysbench: Path, command: str) -> None:
    # The second one must find the process before its report ends, which takes a millisecond or two.
    for _ in range(10):
        with subprocess.Popen([sysbench, *command.split()], stdout=subprocess.PIPE) as process:
            read_until(process, b"Threads started!")
            process.send_signal(signal.SIGINT)
            time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=WAIT_S)[0]
        assert b"Threads fairness:" in said
        assert process.returncode == -signal.SIGINT


def test_a_second_ctrl_c_waits_for_nothing(sysbench: Path, tmp_path: Path) -> None:
    script = SLEEPING.format(us=3_600_000_000) + "function done() while true do end end\n"
    process = started(sysbench, tmp_path, script)
    process.send_signal(signal.SIGINT)
    read_until(process, b"fairness")
    # Signals within half a second are one; the rest is the margin.
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=WAIT_S) == -signal.SIGINT


def test_users_that_are_not_ready_in_time_end_it(sysbench: Path, tmp_path: Path) -> None:
    (tmp_path / "waits.lua").write_text(AROUND.replace("{where}", "thread_init"))
    done = ran(sysbench, "waits.lua", "run", "--compat=1.1", "--thread-init-timeout=1", cwd=tmp_path)
    assert done.stdout.endswith("\nFATAL: Worker threads failed to initialize within 1 seconds!\n")
    assert done.returncode == 2
    refused = ran(sysbench, *DRY, "--compat=1.1", "--thread-init-timeout=0")
    assert (refused.stdout, refused.returncode) == (
        "FATAL: Invalid value for --thread-init-timeout: 0.\n\n",
        1,
    )


# Nothing that a script would declare, so that its users share a loop.
BLOCKING = """
function event() os.execute("sleep 0.15") end
sysbench.cmdline.commands = { fill = { event, sysbench.cmdline.PARALLEL_COMMAND } }
"""


def test_a_script_that_holds_its_thread_is_told_in_a_pipe_too(sysbench: Path, tmp_path: Path) -> None:
    (tmp_path / "blocks.lua").write_text(BLOCKING)
    told = re.compile(r"the script blocked its thread for \d+ ms in one call")

    def said(*options: str) -> subprocess.CompletedProcess[str]:
        done = ran(sysbench, "blocks.lua", *options, cwd=tmp_path)
        assert done.returncode == 0, done
        return done

    shared = said("run", "--threads=2", "--workers=1", "--events=2")
    assert len(told.findall(shared.stderr)) == 1
    assert "--lua-threads" in shared.stderr
    apart = said("run", "--threads=2", "--workers=1", "--events=2", "--report-format=json")
    warnings = json.loads(apart.stdout.splitlines()[-1])["warnings"]
    assert [warning["code"] for warning in warnings].count("script-blocks") == 1
    assert told.search(apart.stderr)
    assert not said("run", "--threads=2", "--workers=1", "--events=2", "--verbosity=1").stderr
    assert not said("run", "--threads=2", "--events=2", "--lua-threads").stderr
    users = 2 * len(os.sched_getaffinity(0))
    assert len(told.findall(said("fill", f"--threads={users}").stderr)) == 1
    assert not said("fill", f"--threads={users}", "--lua-threads").stderr


def test_a_forced_shutdown_waits_for_nobody(sysbench: Path, tmp_path: Path) -> None:
    (tmp_path / "sleeps.lua").write_text(SLEEPING.format(us=3_600_000_000))
    options = ["--time=1", "--forced-shutdown=0", "--threads=3"]
    done = ran(sysbench, "sleeps.lua", "run", *options, cwd=tmp_path)
    assert "FATAL: The --max-time limit has expired, forcing shutdown...\n" in done.stdout
    assert "\nNumber of unfinished transactions on forced shutdown: 3\n" in done.stdout
    assert done.returncode == 2


def test_what_the_engine_does_not_take_the_script_does(sysbench: Path) -> None:
    # No table at all: the engine's plan refuses it, the bundled script has nothing to do.
    done = ran(sysbench, "--mysql-dry-run", "--tables=0", "oltp_read_write", "prepare")
    assert (done.returncode, done.stderr) == (0, "")
