"""D02, D07, R02, R08 and R09: what the judge finds in records of servers, and in small differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.simulated_trials import experiment, measured

from dbdyno.decide.decision import compare_all
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.explain import Cost, Measure
from dbdyno.finding import Finding
from dbdyno.measure.server_state import ServerState, read_state
from dbdyno.rules.design import below_resolution
from dbdyno.rules.host import machine
from dbdyno.rules.server import cold_starts, growth, idle_work, pending_work
from dbdyno.server_record import WorkRecord
from dbdyno.store.measured import MeasuredTrial

OF = experiment(loads=2, blocks=6)


def trials_of(of: Experiment = OF) -> list[MeasuredTrial]:
    return [
        replace(one, figures=replace(one.figures, generator_steal=0.0))
        for one in measured(of, lambda _trial: 1000.0)
        if one.figures is not None
    ]


def record(status: dict[str, str] | None = None, **grown: float) -> Any:
    """A server.json whose counters of the machine grow by that much in 10 s on 2 CPUs."""
    edges = [
        {"unix_us": at, "status": status or {}, "process": {}, "host": host, "waits": {}}
        for at, host in ((0, dict.fromkeys(grown, 5.0)), (10_000_000, {n: 5.0 + v for n, v in grown.items()}))
    ]
    return {
        "host": {"cpus": 2},
        "data_bytes": 7,
        "edges": {"begin": edges[0], "end": edges[1], "foreign": None},
    }


def on_machine(*of_variants: dict[str, Any]) -> list[Finding]:
    by_name = dict(zip("ab", of_variants, strict=True))
    trials = trials_of()
    return list(machine(trials, {one.index: read_state(record(**by_name[one.variant])) for one in trials}))


@pytest.mark.parametrize(
    ("counter", "amount", "level", "text"),
    [
        ("host_steal_s", 1.0, "warn", "the hypervisor gave 5.0 % of the CPU time"),
        ("host_swapped_pages", 5000.0, "warn", "swapped 500 pages per second"),
        ("host_memory_wait_s", 0.5, "warn", "waited for memory in 5.0 % of the time"),
        ("host_iowait_s", 10.0, "note", "idle for 50 % of the time"),
    ],
)
def test_a_machine_without_time_or_memory(counter: str, amount: float, level: str, text: str) -> None:
    (finding,) = on_machine({counter: amount / 100}, {counter: amount})
    assert (finding.code, finding.level, finding.subject) == ("D02", level, "b")
    assert text in finding.text
    assert on_machine({counter: 0.0}, {counter: amount / 100}) == []


def test_steal_of_the_load_generators_machine_counts_too() -> None:
    trials = [
        replace(one, figures=replace(one.figures, generator_steal=0.04 if one.variant == "b" else 0.0))
        for one in trials_of()
        if one.figures is not None
    ]
    (finding,) = machine(trials, {})
    assert (finding.code, finding.level, finding.subject) == ("D02", "warn", "b")
    assert "4.0 % of the CPU time of the load generator's machine" in finding.text
    # On one machine the server's finding says it.
    assert list(machine(trials, {one.index: read_state(record(host_steal_s=0.0)) for one in trials})) == []


def test_a_remote_server_has_no_machine() -> None:
    assert on_machine({}, {}) == []
    assert read_state({"edges": {"foreign": None}, "data_bytes": 9}) == ServerState(9)
    assert read_state({}) == ServerState()


def test_positions_of_the_log_are_an_age() -> None:
    status = {"Innodb_redo_log_current_lsn": "900", "Innodb_redo_log_checkpoint_lsn": "100"}
    assert read_state(record(status)).pending_work == {"Innodb_checkpoint_age": 800.0}
    assert read_state(record({"Innodb_buffer_pool_pages_dirty": "12"})).pending_work == {
        "Innodb_buffer_pool_pages_dirty": 12.0
    }


def with_debts(amount: Callable[[MeasuredTrial], float]) -> list[Finding]:
    trials = trials_of()
    states = {
        t.index: ServerState(pending_work={"Innodb_buffer_pool_pages_dirty": amount(t)}) for t in trials
    }
    return list(pending_work(trials, states, OF))


def test_a_variant_that_leaves_more_work_is_a_warning() -> None:
    (finding,) = with_debts(lambda trial: (5000.0 if trial.variant == "b" else 100.0) * (1 + trial.block / 9))
    assert (finding.code, finding.level, finding.subject) == ("D07", "warn", "b")
    assert "dirty pages in the buffer pool (medians)" in finding.text
    assert finding.evidence["variant"] > finding.evidence["baseline"]


def test_debts_that_overlap_or_are_small_say_nothing() -> None:
    assert with_debts(lambda trial: 9000.0 if trial.variant == "b" and trial.block else 4000.0) == []
    assert with_debts(lambda trial: 900.0 if trial.variant == "b" else 1.0) == []


def idle(share: float, cpus: str = "0-1", seconds: float = 10.0) -> ServerState:
    """The state of a trial in slices whose server used a share of two CPUs between its slices."""
    work: WorkRecord = {
        "seconds": seconds,
        "cpu_s": 2 * share * seconds + 0.02,
        "write_bytes": 2**20 * seconds,
    }
    return read_state({"identity": {"cpus": cpus}, "slices": {"own": work, "idle": work}})


def test_a_server_that_works_while_others_have_load_is_noted() -> None:
    trials = trials_of()
    busiest = next(one.index for one in trials if one.variant == "b" and one.block == 1)
    shares = {one.index: 0.01 if one.variant == "a" else 0.06 for one in trials} | {busiest: 0.2}
    (finding,) = idle_work(trials, {index: idle(share) for index, share in shares.items()})
    assert (finding.code, finding.level, finding.subject) == ("R11", "note", "b")
    assert "used 20 % of its server's CPUs, and wrote 1.0 MiB/s, while other variants had load (trial " in (
        finding.text
    )
    assert finding.text.endswith("it took this from them")
    assert finding.evidence["trial"] == busiest
    # With CPUs of its own it takes none.
    apart = {one.index: idle(0.06, "0-1" if one.variant == "a" else "2-3") for one in trials}
    assert [one.text.rpartition(" it ")[2] for one in idle_work(trials, apart)] == [
        "has CPUs of its own, but may have slowed down their disk"
    ] * 2


def test_an_idle_server_and_trials_without_slices_say_nothing() -> None:
    trials = trials_of()
    assert list(idle_work(trials, {one.index: idle(0.049) for one in trials})) == []
    assert list(idle_work(trials, {one.index: idle(0.5, seconds=0.0) for one in trials})) == []
    assert list(idle_work(trials, {one.index: ServerState() for one in trials})) == []


def sizes(of: Experiment, size: Callable[[MeasuredTrial], int]) -> list[Finding]:
    trials = trials_of(of)
    return list(growth(trials, {t.index: ServerState(data_bytes=size(t)) for t in trials}, of))


def test_data_that_groups_keep_and_change() -> None:
    kept = OF.model_copy(update={"design": OF.design.model_copy(update={"state": "preserve"})})
    mib = 1024**2
    (finding,) = sizes(kept, lambda trial: (100 + (20 * trial.block if trial.variant == "b" else 0)) * mib)
    assert (finding.code, finding.subject) == ("R02", "b")
    assert "from 100 to 200 MiB" in finding.text
    # Data that every group restores, small data, and less than one per cent.
    assert sizes(OF, lambda trial: (100 + 20 * trial.block) * mib) == []
    assert sizes(kept, lambda trial: mib + trial.block * mib // 2) == []
    assert sizes(kept, lambda trial: (10_000 + trial.block) * mib) == []


def reading(pages: Callable[[int], float], of: Experiment = OF) -> list[Finding]:
    """R09 where the n-th trial of a group reads so many pages per transaction."""
    planned: Sequence[Trial] = schedule(of)
    numbers: dict[int, int] = {}
    costs = {}
    for trial in planned:
        number = numbers[trial.group] = numbers.get(trial.group, -1) + 1
        cost = Cost(Measure("Innodb_buffer_pool_reads", "reads", "counter"), 1000.0 * pages(number), 1000.0)
        costs[trial.index] = {"Innodb_buffer_pool_reads": cost}
    return list(cold_starts(trials_of(of), costs, planned))


def test_a_first_trial_that_reads_more_is_a_warning() -> None:
    findings = reading(lambda number: 0.1 if number else 2.0)
    assert {(one.code, one.subject) for one in findings} == {("R09", "a"), ("R09", "b")}
    assert "reads 2.00 pages per transaction, later ones 0.10" in findings[0].text
    assert reading(lambda number: 1.5 if number else 2.0) == []
    assert reading(lambda number: 0.0 if number else 0.04) == []
    assert reading(lambda number: 0.1 if number else 2.0, experiment(loads=1)) == []


def percentiles(base_us: float, other_us: float) -> list[Finding]:
    of = OF.model_copy(update={"design": OF.design.model_copy(update={"metrics": ("p99",)})})
    metric = of.metrics[0]
    values: dict[str, Any] = {"a": {metric: base_us}, "b": {metric: other_us}}
    trials = [
        replace(one, figures=replace(one.figures, **values[one.variant]))
        for one in trials_of(of)
        if one.figures is not None
    ]
    (comparison,) = compare_all(trials, of, [])
    assert comparison.scale.metric == metric
    return list(below_resolution([comparison]))


def test_a_difference_below_the_width_of_a_bucket() -> None:
    (finding,) = percentiles(100.0, 100.5)
    assert (finding.code, finding.level, finding.subject) == ("R08", "warn", "b")
    assert (
        "by 0.50 us, which is less than the 1 us with which latencies of 100 us are recorded" in finding.text
    )
    assert percentiles(100.0, 101.5) == []
    assert percentiles(100.0, 100.0) == []
    (finding,) = percentiles(50_000.0, 50_020.0)
    assert "less than the 32 us" in finding.text
