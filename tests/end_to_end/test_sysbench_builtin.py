"""sysbench's built-in tests as sysbench 1.0.20 has them: help, options, modes, reports; no server."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.end_to_end.differential import ORIGINAL, Case, Side, difference, drop_in, original

FILES = "--file-num=3 --file-total-size=192K"

# By events and not by the clock: every count is the same on both sides.
RUNS = [
    "cpu run --events=20 --cpu-max-prime=500",
    "cpu run --events=20 --cpu-max-prime=1 --percentile=0",
    "cpu run --events=20 --cpu-max-prime=500 --histogram --percentile=99",
    "cpu run --events=7 --verbosity=4",
    "cpu run --events=20 --rate=2000 --cpu-max-prime=500",
    "cpu run --events=3 --cpu-max-prime=500 --debug --verbosity=3 --rand-seed=5",
    "memory run --memory-total-size=4M",
    "memory run --memory-total-size=4M --threads=4 --events=3 --percentile=0",
    "memory run --memory-total-size=4M --memory-oper=read --memory-scope=local --memory-access-mode=rnd",
    "memory run --memory-total-size=4M --memory-oper=none --histogram --verbosity=4",
    "memory run --memory-total-size=4M --memory-block-size=1M --threads=4 --memory-access-mode=rnd",
    "memory run --memory-total-size=1M --memory-block-size=1M --threads=2",
    "memory run --memory-total-size=1K --memory-block-size=8",
    "threads run --events=5 --verbosity=4",
    "threads run --events=9 --thread-yields=3 --thread-locks=1 --percentile=0",
    "mutex run --mutex-locks=50 --mutex-loops=100 --verbosity=4",
    "mutex run --mutex-locks=50 --mutex-num=1 --events=7 --time=1 --percentile=0",
]

# Several threads share the events by luck: how evenly is a matter of the machine.
SHARED = [
    "cpu run --events=200 --cpu-max-prime=500 --threads=4 --percentile=0",
    "threads run --events=200 --thread-yields=3 --threads=4",
    "mutex run --mutex-locks=50 --mutex-num=2 --threads=4",
]

# Some intervals, in which the figures are the machine's.
TIMED = [
    "cpu run --time=2 --report-interval=1 --threads=4 --histogram",
    "memory run --time=2 --report-interval=1 --memory-total-size=0",
    "memory run --time=2 --report-checkpoints=1 --memory-total-size=0",
]

VALUES = [
    "cpu",
    "fileio",
    "cpu bogus",
    "memory prepare",
    "mutex cleanup",
    "cpu run --bogus=1",
    "cpu run --cpu-max-prime=0",
    "cpu run --cpu-max-prime=-5",
    "cpu run --cpu-max-prime=abc",
    "memory run --memory-block-size=3K",
    "memory run --memory-block-size=4",
    "memory run --memory-block-size=",
    "memory run --memory-oper=bogus",
    "memory run --memory-scope=bogus",
    "memory run --memory-access-mode=bogus",
    "threads run --thread-yields=x",
    "mutex run --mutex-locks=x",
    "fileio run",
    "fileio run --file-test-mode=bogus",
    "fileio run --file-test-mode=rndrd",
    "fileio run --file-test-mode=rndrd --file-num=0",
    "fileio run --file-test-mode=rndrd --file-total-size=0",
    "fileio run --file-test-mode=rndrd --file-block-size=0",
    "fileio run --file-test-mode=rndrd --file-io-mode=bogus",
    "fileio run --file-test-mode=rndrd --file-io-mode=async --file-async-backlog=0",
    "fileio run --file-test-mode=rndrd --file-extra-flags=bogus",
    "fileio run --file-test-mode=rndrd --file-fsync-mode=bogus",
    "fileio run --file-test-mode=rndrd --file-fsync-freq=-1",
    "fileio run --file-test-mode=rndrd --file-merged-requests=-1",
    "fileio run --file-test-mode=rndrw --file-rw-ratio=-1",
    "fileio prepare --file-num=abc",
    "fileio prepare --file-extra-flags=bogus",
    "fileio cleanup --file-num=0",
    "fileio cleanup --file-num=2",
]

# Each between a prepare and a cleanup.
FILE_RUNS = [
    "--file-test-mode=seqwr --events=50",
    "--file-test-mode=seqrewr --events=50 --file-fsync-freq=7",
    "--file-test-mode=seqrd --events=50 --histogram",
    "--file-test-mode=rndrd --events=50 --percentile=0",
    "--file-test-mode=rndwr --events=50 --file-fsync-freq=5 --file-fsync-end=off",
    "--file-test-mode=rndrw --events=50 --file-fsync-freq=5 --file-rw-ratio=3",
    "--file-test-mode=rndrw --events=50 --file-fsync-freq=0 --file-fsync-mode=fdatasync",
    "--file-test-mode=rndwr --events=20 --file-fsync-all",
    "--file-test-mode=seqrewr --events=30 --file-merged-requests=3",
    "--file-test-mode=seqrd --events=30 --file-block-size=20K --file-merged-requests=2",
    "--file-test-mode=rndrd --events=30 --file-block-size=5000",
    "--file-test-mode=rndrw --events=30 --file-io-mode=mmap --file-fsync-freq=5",
    "--file-test-mode=seqwr --events=30 --file-io-mode=mmap --file-fsync-freq=5",
    "--file-test-mode=rndrw --events=30 --file-io-mode=async --file-async-backlog=4 --file-fsync-freq=5",
    "--file-test-mode=seqrd --events=30 --file-io-mode=async",
    "--file-test-mode=rndwr --events=10 --file-extra-flags=sync",
    "--file-test-mode=rndwr --events=10 --file-extra-flags=dsync",
    "--file-test-mode=rndrw --events=10 --file-extra-flags=direct",
    "--file-test-mode=seqrd --events=10 --file-total-size=1M",
    "--file-test-mode=seqrd --events=10 --file-num=4",
]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    folder = tmp_path_factory.mktemp("shims")
    return original(folder), drop_in(folder)


def same(sides: tuple[Side, Side], case: Case) -> None:
    found = difference(case, *sides)
    assert not found, found


@pytest.mark.parametrize("arguments", RUNS)
def test_runs_of_a_number_of_events(sides: tuple[Side, Side], arguments: str) -> None:
    same(sides, Case("run", f"sysbench {arguments}"))


@pytest.mark.parametrize("arguments", SHARED)
def test_runs_of_several_threads(sides: tuple[Side, Side], arguments: str) -> None:
    same(sides, Case("shared", f"sysbench {arguments}"))


@pytest.mark.parametrize("arguments", TIMED)
def test_runs_by_the_clock(sides: tuple[Side, Side], arguments: str) -> None:
    # An interval that ends with the run is told or not, as it happens.
    same(sides, Case("timed", f"sysbench {arguments} | grep -v '^\\[ 2s'", timed=True))


@pytest.mark.parametrize("arguments", VALUES)
def test_what_cannot_be_done(sides: tuple[Side, Side], arguments: str) -> None:
    # The descriptions of the options are each side's own.
    same(
        sides,
        Case(
            "value", f"sysbench {arguments} >out || code=$?; sed 's/^\\(  --[^ ]*\\).*/\\1/' out; exit $code"
        ),
    )


@pytest.mark.parametrize("arguments", FILE_RUNS)
def test_files(sides: tuple[Side, Side], arguments: str) -> None:
    sizes = "ls -l | cut -c1-10,20- | sed 's/ [A-Z][a-z][a-z] .*test/ test/'"
    run = f"sysbench fileio {FILES} prepare; sysbench fileio {FILES} {arguments} run || echo failed $?; "
    run += f"{sizes}; sysbench fileio {FILES} cleanup; ls"
    same(sides, Case("files", run))


def test_files_are_made_again_and_longer(sides: tuple[Side, Side]) -> None:
    sizes = ("64K", "64K", "100000", "2M")
    command = "sysbench fileio --file-num=2 --file-total-size={} prepare; wc -c test*"
    prepared = "; ".join(command.format(size) for size in sizes)
    same(sides, Case("prepare", prepared))


def test_intervals_of_files(sides: tuple[Side, Side]) -> None:
    run = f"sysbench fileio {FILES} prepare; sysbench fileio {FILES} --file-test-mode=rndrd "
    run += "--time=2 --report-interval=1 "
    same(sides, Case("intervals", run + "--threads=4 run | grep -v '^\\[ 2s'", timed=True))


@pytest.mark.parametrize("way", ["sync", "async", "mmap"])
@pytest.mark.parametrize("writer", [0, 1])
def test_either_side_reads_the_checksums_of_the_other(
    sides: tuple[Side, Side], tmp_path: Path, way: str, writer: int
) -> None:
    options = [*FILES.split(), "--validate", "--events=200", f"--file-io-mode={way}"]

    def do(side: Side, *arguments: str) -> str:
        command = [str(side.folder / "sysbench"), "fileio", *options, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    do(sides[writer], "prepare")
    do(sides[writer], "--file-test-mode=rndwr", "run")
    assert "Using checksums validation." in do(sides[1 - writer], "--file-test-mode=seqrd", "run")


def test_a_changed_block_is_found(sides: tuple[Side, Side]) -> None:
    break_it = "printf X | dd of=test_file.0 bs=1 seek=20000 conv=notrunc status=none"
    options = f"{FILES} --validate --events=20 --file-test-mode=seqrd"
    hidden = "sed 's/\\(Calculated value:\\).*/\\1/'"
    run = f"sysbench fileio {options} prepare; {break_it}; sysbench fileio {options} run | {hidden}"
    same(sides, Case("broken", run))


def test_writers_and_readers_of_the_same_blocks_find_them_whole(
    sides: tuple[Side, Side], tmp_path: Path
) -> None:
    """The original finds half-written blocks here, and gives up."""
    ours = str(sides[1].folder / "sysbench")
    options = [
        "fileio",
        "--file-num=1",
        "--file-total-size=32K",
        "--validate",
        "--threads=4",
        "--file-fsync-freq=0",
    ]
    for arguments in (["prepare"], ["--file-test-mode=rndrw", "--events=4000", "run"]):
        subprocess.run(
            [ours, *options, *arguments], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL, timeout=60
        )


@pytest.mark.parametrize("test", ["cpu", "memory", "threads", "mutex", "fileio"])
def test_help_lists_the_same_options(sides: tuple[Side, Side], test: str) -> None:
    # Where the descriptions begin and what the defaults are.
    defaults = r"s/^\(  --[^ ]* *\)[^ ].*\( \[[^[]*\]\)$/\1\2/"
    described = rf"sed '{defaults}; s/^\(  --file-test-mode=STRING *\).*/\1/'"
    same(sides, Case("help", f"sysbench {test} help | {described}"))


def test_thousands_of_threads_need_little_memory(sides: tuple[Side, Side]) -> None:
    """Their histograms took 1.1 GB, and clearing that memory took as long as a run of a second."""
    peaks = []
    for side in sides:
        command = [str(side.folder / "sysbench"), "cpu", "run", "--threads=3000", "--events=1"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(usage.ru_maxrss)
    assert peaks[1] < 4 * peaks[0]


def test_a_forced_end_leaves_nothing_behind(sides: tuple[Side, Side]) -> None:
    side = str(sides[1].folder / "sysbench")
    options = ["mutex", "run", "--mutex-loops=2000000000", "--time=1", "--forced-shutdown=1", "--threads=2"]
    done = subprocess.run([side, *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "FATAL: The --max-time limit has expired, forcing shutdown..." in done.stdout
    assert "Number of unfinished transactions on forced shutdown: 2" in done.stdout


def test_reports_for_programs_hold_the_tests_own_figures(sides: tuple[Side, Side]) -> None:
    side = str(sides[1].folder / "sysbench")
    command = [side, "memory", "run", "--memory-total-size=4M", "--report-format=json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert re.search(r'"test":\{"memory_mib_per_s":[\d.]+,"memory_operations_per_s":[\d.]+\}', done.stdout)
    assert Path(ORIGINAL).exists()
