"""The schedule: balanced, random inside blocks, and a function of the seed alone."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, Point, Stop, Variant
from dbdyno.experiment.schedule import Trial, engine_seed, schedule, split_by_start, workloads_by_start
from dbdyno.experiment.server import ServerSpec, State


def experiment(
    variants: str = "abc", connections: tuple[int, ...] = (10, 20, 40), **design: Any
) -> Experiment:
    return Experiment(
        name="test",
        workloads=(OltpWorkload(name="oltp_read_write"), OltpWorkload(name="oltp_read_only")),
        load=Load(connections=connections, duration_s=1.0),
        design=Design(**{"blocks": 16, **design}),
        variants=tuple(Variant(name=name) for name in variants),
    )


def by_block(trials: tuple[Trial, ...]) -> dict[int, list[Trial]]:
    return {block: list(part) for block, part in itertools.groupby(trials, key=lambda trial: trial.block)}


def test_every_block_holds_every_variant_once_at_every_point() -> None:
    trials = schedule(experiment())
    assert [trial.index for trial in trials] == list(range(16 * 3 * 3 * 2))
    for part in by_block(trials).values():
        cells = Counter((trial.variant, trial.workload, trial.point) for trial in part)
        assert len(cells) == 18
        assert set(cells.values()) == {1}


def test_a_group_is_one_variants_points_on_one_workload() -> None:
    trials = schedule(experiment())
    groups = [list(part) for _, part in itertools.groupby(trials, key=lambda trial: trial.group)]
    assert [group[0].group for group in groups] == list(range(16 * 3 * 2))
    for group in groups:
        assert len(group) == 3
        assert len({(trial.block, trial.variant, trial.workload) for trial in group}) == 1


def test_the_points_come_in_the_same_order_for_all_variants_of_a_block() -> None:
    orders = set()
    for part in by_block(schedule(experiment())).values():
        found = {
            (
                workload,
                tuple(t.point.connections for t in part if (t.workload, t.variant) == (workload, variant)),
            )
            for workload in ("oltp_read_write", "oltp_read_only")
            for variant in "abc"
        }
        assert len(found) == 2
        orders |= {order for _, order in found}
    # All six orders of three points turn up in 32 draws; the chance that one does not is below 2 %.
    assert len(orders) == 6


@pytest.mark.parametrize("blocks", [6, 8, 20])
@pytest.mark.parametrize("variants", ["ab", "abc", "abcdef"])
def test_the_mean_positions_and_slots_differ_no_more_than_chance_on_average(
    variants: str, blocks: int
) -> None:
    count = len(variants)
    for order_seed in range(20):
        trials = schedule(experiment(variants, (1,), blocks=blocks, order_seed=order_seed))
        for workload in ("oltp_read_write", "oltp_read_only"):
            positions, slots = Counter[str](), Counter[str]()
            for part in by_block(tuple(trial for trial in trials if trial.workload == workload)).values():
                positions.update({trial.variant: at for at, trial in enumerate(part)})
                slots.update({trial.variant: trial.slot for trial in part})
                assert {trial.slot for trial in part} == set(range(count))
            for sums in (positions, slots):
                squares = sum((sums[name] - blocks * (count - 1) / 2.0) ** 2 for name in variants)
                # The variance of a uniform position is (count^2 - 1) / 12.
                assert squares <= count * blocks * (count**2 - 1) / 12.0 + 1e-9


def test_the_order_has_no_period() -> None:
    """Whether a variant runs first in two blocks says little about the distance of the blocks."""
    stop = Stop(max_blocks=16)
    for design in ({"blocks": 8}, {"blocks": 16, "stop": stop}):
        firsts = []
        for order_seed in range(400):
            trials = schedule(experiment("ab", (1,), order_seed=order_seed, **design))
            reads = tuple(trial for trial in trials if trial.workload == "oltp_read_only")
            firsts.append([part[0].variant == "a" for part in by_block(reads).values()])
        for distance in (1, 2, 3, 4):
            equal = [
                one == other
                for orders in firsts
                for one, other in zip(orders, orders[distance:], strict=False)
            ]
            # Independent orders have 50 %, pairs AB BA 0 % or 25 % at distance 1.
            assert 0.43 < sum(equal) / len(equal) < 0.54


def test_either_order_of_a_pair_comes_first_by_chance() -> None:
    firsts = Counter(
        schedule(experiment("ab", (1,), blocks=2, order_seed=seed))[0].variant for seed in range(400)
    )
    # 400 fair draws: within 4 standard deviations of 200.
    assert abs(firsts["a"] - 200) < 40


def test_data_that_are_kept_stay_in_their_place() -> None:
    trials = schedule(experiment("abc", state="preserve"))
    assert {(trial.variant, trial.slot) for trial in trials} == {("a", 0), ("b", 1), ("c", 2)}


def test_one_start_per_trial_puts_the_variants_of_a_point_side_by_side() -> None:
    trials = schedule(experiment("ab", blocks=4, state_per="trial"))
    assert [trial.group for trial in trials] == list(range(len(trials)))
    for first, second in zip(trials[::2], trials[1::2], strict=True):
        assert (first.block, first.workload, first.point) == (second.block, second.workload, second.point)
        assert {first.variant, second.variant} == {"a", "b"}


def test_the_order_depends_on_its_own_seed_where_there_is_one() -> None:
    assert schedule(experiment()) == schedule(experiment())
    assert schedule(experiment()) != schedule(experiment(seed=2))
    assert schedule(experiment(order_seed=5)) == schedule(experiment(order_seed=5, seed=2))
    assert schedule(experiment(order_seed=5)) != schedule(experiment(order_seed=6))


def test_it_is_the_same_in_every_release() -> None:
    # A run that was interrupted is continued by its stored schedule, but blocks are added by this one.
    trials = schedule(experiment("ab", blocks=2))
    assert "".join(trial.variant for trial in trials) == "aaabbbaaabbbbbbaaabbbaaa"
    assert [trial.point.connections for trial in trials[:6]] == [10, 20, 40, 10, 20, 40]


def test_all_variants_of_a_block_meet_the_same_keys() -> None:
    whole = experiment()
    seeds: dict[tuple[int, str, Point], set[int]] = {}
    for trial in schedule(whole):
        seeds.setdefault((trial.block, trial.workload, trial.point), set()).add(engine_seed(whole, trial))
    assert {len(found) for found in seeds.values()} == {1}
    distinct = {seed for found in seeds.values() for seed in found}
    assert len(distinct) == 16 * 3 * 2
    assert max(distinct) < 2**53


def test_variants_that_change_one_database_one_after_the_other_meet_different_keys() -> None:
    def seeds(*urls: str, state: State = "preserve") -> set[int]:
        plan = Experiment(
            name="shared",
            workloads=(OltpWorkload(name="oltp_read_write"),),
            load=Load(connections=(1,), duration_s=1.0),
            design=Design(blocks=1, state=state),
            variants=tuple(
                Variant(name=f"v{number}", server=ServerSpec(kind="remote", url=url))
                for number, url in enumerate(urls)
            ),
        )
        return {engine_seed(plan, trial) for trial in schedule(plan)}

    shared = ("mysql://a@db1/shop", "mysql://b@db1/shop?tls=required")
    assert len(seeds(*shared)) == 2
    assert len(seeds(*shared, state="reset")) == 1
    assert len(seeds("mysql://a@db1/shop", "mysql://a@db2/shop")) == 1


def test_workloads_on_the_same_tables_share_a_start() -> None:
    reads = [OltpWorkload(name=name) for name in ("oltp_read_only", "oltp_point_select")]
    other = OltpWorkload(name="oltp_read_write", table_size=5)
    one = experiment(state_per="block").model_copy(update={"workloads": (*reads, other)})
    assert workloads_by_start(one) == [("oltp_read_only", "oltp_point_select"), ("oltp_read_write",)]
    groups = [list(group) for _, group in itertools.groupby(schedule(one), lambda trial: trial.group)]
    assert len(groups) == one.design.blocks * len(one.variants) * 2
    of_block = [[(t.workload, t.point) for t in group] for group in groups if group[0].block == 0]
    assert {frozenset(title for title, _ in group) for group in of_block} == {
        frozenset(titles) for titles in workloads_by_start(one)
    }
    # The variants of a block have the same order.
    assert len({tuple(group) for group in of_block}) == 2
    assert len({trial.slot for group in groups for trial in group if trial.variant == "a"}) > 1
    for group in groups:
        assert len({(trial.variant, trial.slot) for trial in group}) == 1


def test_in_slices_all_servers_of_the_same_tables_run_together() -> None:
    reads = [OltpWorkload(name=name) for name in ("oltp_read_only", "oltp_point_select")]
    other = OltpWorkload(name="oltp_read_write", table_size=5)
    for state_per, titles in (("block", 2), ("group", 1)):
        one = experiment(state_per=state_per).model_copy(update={"workloads": (*reads, other)})
        parts = split_by_start(one, schedule(one))
        assert [trial for part in parts for trial in part] == list(schedule(one))
        assert max(len({trial.workload for trial in part}) for part in parts) == titles
        for part in parts:
            assert {trial.variant for trial in part} == {variant.name for variant in one.variants}
            assert len({trial.group for trial in part}) == len(one.variants)
