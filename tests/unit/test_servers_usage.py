"""What a machine and the device of a folder have done, from a /proc that is made here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbdyno.servers import usage

STAT = "cpu  100 20 30 4000 50 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nctxt 12345\nbtime 1\n"
# reads, merged, sectors read, ms, writes, merged, sectors written, ms, ...
DISKSTATS = "{other} sda 1 1 1 1 1 1 1 1 0 0 0\n{own} vda 11 2 800 4 55 6 1600 8 0 9 10\n"


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(usage, "PROC", tmp_path)
    (tmp_path / "stat").write_text(STAT)
    return tmp_path


def place(path: Path, minor: int = 0) -> str:
    device = path.stat().st_dev
    return f"   {os.major(device)}       {os.minor(device) + minor}"


def test_machine_and_device_are_read(proc: Path) -> None:
    (proc / "diskstats").write_text(DISKSTATS.format(own=place(proc), other=place(proc, 1)))
    assert usage.host(proc) == {
        "host_cpu_s": (100 + 20 + 30 + 6 + 7) / usage.TICKS_PER_S,
        "host_iowait_s": 50 / usage.TICKS_PER_S,
        "host_steal_s": 8 / usage.TICKS_PER_S,
        "host_switches": 12345,
        "disk_reads": 11,
        "disk_read_bytes": 800 * 512,
        "disk_writes": 55,
        "disk_write_bytes": 1600 * 512,
    }


def test_swapping_and_waiting_for_memory_are_read(proc: Path) -> None:
    (proc / "vmstat").write_text("nr_free_pages 9\npswpin 40\npswpout 2\npswpin_zero 7\n")
    (proc / "pressure").mkdir()
    (proc / "pressure/memory").write_text(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 total=1\n"
    )
    found = usage.host(proc)
    assert (found["host_swapped_pages"], found["host_memory_wait_s"]) == (42.0, 2.5)


@pytest.mark.parametrize("diskstats", ["", None, "other"], ids=["empty", "missing", "of others"])
def test_a_file_system_without_a_device_of_its_own_has_no_disk(proc: Path, diskstats: str | None) -> None:
    """As tmpfs, nfs and overlay have none: the machine is told all the same."""
    if diskstats is not None:
        text = DISKSTATS.format(own=place(proc, 1), other=place(proc, 2)) if diskstats else ""
        (proc / "diskstats").write_text(text)
    found = usage.host(proc)
    assert not any(name.startswith("disk_") for name in found)
    assert found["host_switches"] == 12345


def test_a_kernel_that_tells_nothing_tells_nothing(proc: Path) -> None:
    (proc / "stat").unlink()
    assert usage.host(proc) == {}
