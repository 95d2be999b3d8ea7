"""P15, P11 and P07 at DESIGN, overrides, and the order of findings: what needs no server."""

from __future__ import annotations

import itertools
import os
from typing import Any

import pytest

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.base import format_cpus
from dbdyno.experiment.differences import is_identical
from dbdyno.experiment.model import (
    Client,
    Design,
    Experiment,
    Factor,
    Load,
    OltpWorkload,
    ServerSpec,
    Stop,
    Variant,
)
from dbdyno.finding import Finding


def experiment(
    *,
    blocks: int = 8,
    connections: tuple[int, ...] = (10, 20, 40),
    variables: tuple[dict[str, Any], ...] = ({"thread_handling": "a"}, {"thread_handling": "b"}),
    override: dict[str, str] | None = None,
    client: Client | None = None,
    order: Any = "random",
    **server: Any,
) -> Experiment:
    return Experiment(
        name="test",
        workloads=(OltpWorkload(name="oltp_read_write", tables=5),),
        load=Load(connections=connections, duration_s=1.0),
        design=Design(blocks=blocks, order=order),
        client=client or Client(),
        variants=tuple(
            Variant(name="ABCDEFGH"[index], server=ServerSpec(variables=settings, **server))
            for index, settings in enumerate(variables)
        ),
        override=override or {},
    )


def found(code: str, given: Experiment) -> list[Finding]:
    return checks.run(Moment.DESIGN, Context(given), [code])


def test_a_sound_design_has_no_finding() -> None:
    assert found("P15", experiment()) == []


def test_the_limits_of_a_stop_must_allow_for_a_verdict() -> None:
    def findings(**stop: Any) -> list[str]:
        given = experiment()
        return [
            f"{one.message}"
            for one in found("P15", given.model_copy(update={"design": Design(stop=Stop(**stop))}))
        ]

    assert findings() == []
    (text,) = findings(max_blocks=7)
    assert text.startswith(
        "max_blocks = 7 cannot give a verdict: the first one is possible after 8 blocks. Set"
    )
    # 8 blocks of 2 variants at 3 loads for 1 s.
    assert findings(max_time_s=48.0) == []
    (text,) = findings(max_time_s=47.0)
    assert "it needs 8 blocks, whose load takes 48 s. Set a longer max_time" in text


@pytest.mark.parametrize("state", ["restart", "reset", "preserve"])
def test_servers_that_keep_their_data_keep_their_places(state: Any) -> None:
    given = experiment()
    kept = given.model_copy(update={"design": given.design.model_copy(update={"state": state})})
    (finding,) = found("P15", kept)
    assert (finding.level, finding.subject) == ("note", "")
    assert f"directory, port and socket because state = {state} keeps data" in finding.text
    # One server has nobody to exchange its place with, and those of others are not ours to move.
    spec = ServerSpec(kind="remote", url="mysql://u@h/db", variables={"thread_handling": "b"})
    mixed = (kept.variants[0], Variant(name="B", server=spec))
    assert not [
        one for one in found("P15", kept.model_copy(update={"variants": mixed})) if one.level == "note"
    ]


@pytest.mark.parametrize(
    ("blocks", "variables", "words"),
    [
        (
            1,
            ({"x": 1}, {"x": 2}),
            [
                "1 block cannot give a verdict",
                "every variant runs once",
                "a verdict needs 5 %.",
                "blocks = 6 or",
            ],
        ),
        (
            5,
            ({"x": 1}, {"x": 2}),
            ["5 blocks cannot", "2/2^5 = 6.2 %", "a verdict needs 5 %.", "blocks = 6 or"],
        ),
        (
            6,
            tuple({"x": index} for index in range(4)),
            [
                "6 blocks cannot",
                "2/2^6 = 3.1 %",
                "needs 1.7 % for each of 3 verdict sentences",
                "blocks = 7 or",
            ],
        ),
        (
            8,
            tuple({"x": index} for index in range(8)),
            ["2/2^8 = 0.78 %", "0.71 % for each of 7", "blocks = 9 or more"],
        ),
    ],
)
def test_too_few_blocks(blocks: int, variables: tuple[dict[str, Any], ...], words: list[str]) -> None:
    (finding,) = found("P15", experiment(blocks=blocks, variables=variables))
    assert finding.level == "warn"
    assert all(word in finding.message for word in words), finding.message
    assert finding.evidence["sentences"] == len(variables) - 1


@pytest.mark.parametrize("connections", [(1,), (10, 20, 40), tuple(range(1, 11))])
def test_six_blocks_are_enough_for_any_number_of_loads(connections: tuple[int, ...]) -> None:
    assert found("P15", experiment(blocks=6, connections=connections)) == []


def test_six_blocks_are_enough_for_any_number_of_workloads() -> None:
    reads = (OltpWorkload(name="oltp_read_only", label=f"test-{number}") for number in range(30))
    two = experiment(blocks=6)
    assert found("P15", two.model_copy(update={"workloads": (*two.workloads, *reads)})) == []


def test_the_variants_of_a_suite_divide_the_error_rate() -> None:
    reads = OltpWorkload(name="oltp_read_only", tables=5)
    three = experiment(blocks=6, variables=({"x": 1}, {"x": 2}, {"x": 3}))
    three = three.model_copy(update={"workloads": (*three.workloads, reads)})
    (finding,) = [one for one in found("P15", three) if "blocks_needed" in one.evidence]
    assert (finding.evidence["sentences"], finding.evidence["blocks_needed"]) == (2, 7)
    assert "for each of 2 variants" in finding.message


def test_every_contrast_has_its_sentence() -> None:
    # Two factors of three levels and one of two: 2 + 2 + 1 main effects and 4 + 2 + 2 interactions.
    factors = tuple(
        Factor(name=name, levels=tuple("abc"[:count])) for name, count in (("x", 3), ("y", 3), ("z", 2))
    )
    variants = tuple(
        Variant(name="+".join(cell), levels=dict(zip("xyz", cell, strict=True)))
        for cell in itertools.product("abc", "abc", "ab")
    )
    factorial = experiment(blocks=9).model_copy(update={"factors": factors, "variants": variants})
    (finding,) = [one for one in found("P15", factorial) if "sentences" in one.evidence]
    assert (finding.evidence["sentences"], finding.evidence["blocks_needed"]) == (13, 10)


def test_the_first_look_is_that_of_the_test() -> None:
    three = tuple({"x": index} for index in range(3))
    given = experiment(blocks=8, variables=three)
    stop = given.design.model_copy(update={"stop": Stop(max_blocks=8)})
    findings = found("P15", given.model_copy(update={"design": stop}))
    assert [one.evidence["blocks_needed"] for one in findings if "blocks_needed" in one.evidence] == [9]


def test_identical_variants_need_no_blocks_of_the_others() -> None:
    three = ({"x": 1}, {"x": 1}, {"x": 2})
    found_ones = found("P15", experiment(blocks=6, variables=three))
    assert [(one.level, one.subject) for one in found_ones] == [("note", "B")]


def test_more_than_one_difference_is_confounded() -> None:
    given = experiment(variables=({"a": 1, "pool": "8G"}, {"a": 2, "pool": "4G", "extra": True}))
    (finding,) = found("P15", given)
    assert (finding.level, finding.subject) == ("warn", "B")
    assert finding.evidence["differing"] == ["variables.a", "variables.pool", "variables.extra"]


def test_two_existing_servers_with_one_setting_are_exchanged() -> None:
    given = experiment(kind="remote", url="mysql://bench@db1/shop")
    server = given.variants[1].server.model_copy(update={"url": "mysql://bench@db2/shop"})
    other = given.variants[1].model_copy(update={"server": server})
    (finding,) = found("P15", given.model_copy(update={"variants": (given.variants[0], other)}))
    assert finding.level == "warn"
    assert "different values of variables.thread_handling" in finding.text
    assert "Exchange the values of the two servers" in finding.fix


def test_spellings_of_one_value_are_no_difference() -> None:
    given = experiment(variables=({"innodb_buffer_pool_size": "1G"}, {"innodb-buffer-pool-size": "1024M"}))
    (finding,) = found("P15", given)
    assert (finding.level, finding.subject) == ("note", "B")
    assert "A/A" in finding.text
    # The judge has the same view of it: no verdict word is due.
    assert is_identical(given, given.variants[1])


def test_one_variant_is_no_comparison() -> None:
    (finding,) = found("P15", experiment(variables=({},), blocks=1))
    assert finding.level == "warn"
    assert "there is one variant, A" in finding.text


def test_points_in_a_given_order_are_told() -> None:
    (finding,) = found("P15", experiment(order="given"))
    assert finding.evidence == {"order": "given"}
    assert found("P15", experiment(order="given", connections=(1,))) == []


def test_shared_cpus_are_a_warning_and_apart_they_are_none() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    first = str(cpus[0])
    shared = [f for f in found("P11", experiment(client=Client(cpus=first), cpus=first)) if "share" in f.text]
    assert len(shared) == 1
    assert f"client and server share CPU {first} (A, B)" in shared[0].text
    assert "results do not transfer to a server with its own CPUs" in shared[0].text
    assert shared[0].evidence == {"cpus": first, "variants": ["A", "B"], "client_cpus": first}
    apart = found("P11", experiment(client=Client(cpus=first), cpus="4000"))
    assert [f for f in apart if "share" in f.text] == []


def test_undeclared_cpus_are_all_of_them() -> None:
    (finding,) = [f for f in found("P11", experiment()) if "share" in f.text]
    assert finding.evidence["cpus"] == format_cpus(frozenset(os.sched_getaffinity(0)))


def test_a_server_elsewhere_shares_no_cpu() -> None:
    # An address of TEST-NET-1 (RFC 5737) is nobody's.
    given = experiment(kind="remote", url="mysql://load@192.0.2.1:3306/db")
    assert [f for f in found("P11", given) if "share" in f.text] == []


def test_declared_limits_are_checked_before_anything_runs() -> None:
    given = experiment(connections=(64, 500), variables=({"max-prepared-stmt-count": 16382}, {}))
    (finding,) = [f for f in found("P07", given) if f.subject]
    assert (finding.level, finding.subject) == ("stop", "A")
    assert finding.evidence["limit"] == "max_prepared_stmt_count"
    assert finding.evidence["need"] == 500 * 47
    # 90 % of 16,382 holds 313 times 47 statements.
    assert finding.evidence["largest_connections"] == 313
    assert "max_prepared_stmt_count = 26112 in [variant.server.variables]" in finding.fix


def test_an_override_lets_a_stop_pass_and_says_why() -> None:
    given = experiment(
        connections=(500,), variables=({"max_connections": 100}, {}), override={"P07": "to see the error"}
    )
    findings = [f for f in checks.run(Moment.DESIGN, Context(given)) if f.code == "P07" and f.subject]
    assert [f.override for f in findings] == ["to see the error"]
    assert checks.blocking_findings(findings) == []
    assert (
        len(
            checks.blocking_findings(
                [
                    f
                    for f in found(
                        "P07", experiment(connections=(500,), variables=({"max_connections": 100}, {}))
                    )
                    if f.subject
                ]
            )
        )
        == 1
    )


def test_an_override_leaves_warnings_alone() -> None:
    findings = found("P15", experiment(blocks=1, override={"P15": "no time"}))
    assert [(f.level, f.override) for f in findings] == [("warn", None)]


def test_the_gravest_comes_first() -> None:
    given = experiment(
        blocks=1, connections=(500,), variables=({"max_connections": 100}, {"max_connections": 100})
    )
    levels = [f.level for f in checks.run(Moment.DESIGN, Context(given))]
    assert levels == sorted(levels, key=checks.LEVELS.index)
    assert levels[0] == "stop"
    assert levels[-1] == "note"
