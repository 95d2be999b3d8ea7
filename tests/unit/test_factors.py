"""`[factor]`: which variants come out of it, and what every mistake in it says back."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.checks import Context, Moment, run
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment, Factor
from dbdyno.experiment.reading import read_bytes

HEAD = """
[experiment]
name = "factorial"
[[workload]]
name = "oltp_read_only"
[load]
connections = [1]
duration = "2s"
"""
FACTORS = """
[factor.pool]
small = { server.variables.innodb_buffer_pool_size = "64M" }
large = { server.variables.innodb_buffer_pool_size = "1G", server.arguments = ["--large-pages=OFF"] }
[factor.threads]
per-connection = {}
pool = { server.variables.thread_handling = "pool-of-threads", server.arguments = ["--thread-pool-size=2"] }
"""
COMMON = """
[[variant]]
[variant.server]
cpus = "0"
arguments = ["--skip-slave-start"]
"""


def given(text: str, profile: str | None = None, *assignments: str) -> Experiment:
    return read_bytes((HEAD + text).encode(), Path("test.toml"), profile, assignments)


def errors(text: str, profile: str | None = None, *assignments: str) -> dict[str, str]:
    with pytest.raises(InvalidExperiment) as caught:
        given(text, profile, *assignments)
    return {error.key: str(error) for error in caught.value.errors}


def test_only_some_lists_of_several_factors_are_concatenated() -> None:
    head = FACTORS.partition("[factor.threads]")[0] + "[factor.more]\nnone = {}\n"
    one = head.replace("small = {", 'small = { session.sql = ["SET @a = 1"], server.start = ["x"],')
    text = one + 'some = { session.sql = ["SET @b = 1"], server.start = ["y"] }\n'
    assert list(errors(text)) == ["factor.more.some.server.start"]
    (*_, both) = given(
        text.replace('server.start = ["x"],', "").replace(', server.start = ["y"]', "")
    ).variants[:2]
    assert both.session.sql == ("SET @a = 1", "SET @b = 1")


def test_every_combination_is_a_variant_and_the_first_levels_are_the_baseline() -> None:
    experiment = given(FACTORS + COMMON)
    assert [variant.name for variant in experiment.variants] == [
        "small+per-connection",
        "small+pool",
        "large+per-connection",
        "large+pool",
    ]
    assert experiment.factors == (
        Factor(name="pool", levels=("small", "large")),
        Factor(name="threads", levels=("per-connection", "pool")),
    )
    last = experiment.variant("large+pool")
    assert last.levels == {"pool": "large", "threads": "pool"}
    assert last.server.cpus == "0"
    assert last.server.variables == {"innodb_buffer_pool_size": "1G", "thread_handling": "pool-of-threads"}
    # Lists add up, what is shared first.
    assert last.server.arguments == ("--skip-slave-start", "--large-pages=OFF", "--thread-pool-size=2")
    # No combination has changed what another one shares with it.
    assert experiment.variant("small+per-connection").server.arguments == ("--skip-slave-start",)


def test_a_level_replaces_what_is_shared() -> None:
    experiment = given(FACTORS + '[[variant]]\nserver.variables.innodb_buffer_pool_size = "8M"\n')
    assert experiment.variants[0].server.variables["innodb_buffer_pool_size"] == "64M"


def test_profiles_and_assignments_speak_of_the_variants() -> None:
    text = FACTORS + '[profile.quick]\n"variant.server.cpus" = "1"\n"variant[small+pool].server.cpus" = "2"\n'
    experiment = given(text, "quick", "variant[large+pool].server.cpus='3'")
    assert [variant.server.cpus for variant in experiment.variants] == ["1", "2", "1", "3"]


@pytest.mark.parametrize("text", ["", FACTORS])
def test_profiles_and_assignments_cannot_change_levels(text: str) -> None:
    text = text or "[[variant]]\nname = 'a'\nserver.kind = 'private'\n"
    profile = '[profile.quick]\n"variant.levels" = { pool = "tiny" }\n'
    assert "Levels belong under" in errors(text + profile, "quick")["variant.levels.pool"]
    assert "Levels belong under" in errors(text, None, "variant.levels.pool='tiny'")["variant.levels.pool"]


def test_an_experiment_with_factors_survives_the_store() -> None:
    experiment = given(FACTORS)
    assert Experiment.model_validate_json(experiment.model_dump_json()) == experiment


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        ("[factor]\n", "factor", "Write [factor.NAME]"),
        ("factor = 3\n", "factor", "table of factors"),
        ("[factor.a]\nonly = {}\n", "factor.a", "it has 1 level; a factor needs at least two"),
        ("[factor.a]\nx = {}\ny = 4\n", "factor.a.y", "like a [[variant]]"),
        ("[factor.a]\nx = {}\ny = { name = 'z' }\n", "factor.a.y.name", "named by their levels"),
        ("[factor.a]\nx = {}\n'y+z' = {}\n", "factor.a.y+z", "without + and ]"),
        (FACTORS + "[[variant]]\nname = 'a'\n", "variant.name", "named by their levels"),
        (FACTORS + COMMON + COMMON, "variant", "write the others as levels of a factor"),
        (
            FACTORS + "[variant.server]\ncpus = '0'\n",
            "variant",
            "Write [[variant]], and [variant.server] below",
        ),
        ("variant = [1]\n" + FACTORS, "variant", "this must be a list of tables"),
        ("variant = 'a'\n" + FACTORS, "variant", "this must be a list of tables"),
        ("[[variant]]\nname = 'a'\nlevels = { a = 'b' }\n", "variant[a].levels", "under [factor.NAME]"),
        (
            "[factor.a]\nx = {}\ny = { server.cpus = '0' }\n[factor.b]\nu = {}\nv = { server.cpus = '1' }\n",
            "factor.b.v.server.cpus",
            "factor.a sets the same key",
        ),
        (
            "[factor.a]\nx = {}\ny = { server.cpu = '0' }\n",
            "variant[y].server.cpu",
            "Did you mean cpus?",
        ),
    ],
)
def test_what_a_mistake_says(text: str, key: str, told: str) -> None:
    # A bare key must stand before the first table.
    found = errors(text) if not text.startswith(("factor =", "variant =")) else _bare(text)
    assert told in found[key]


def _bare(text: str) -> dict[str, str]:
    with pytest.raises(InvalidExperiment) as caught:
        read_bytes((text + HEAD).encode(), Path("test.toml"))
    return {error.key: str(error) for error in caught.value.errors}


def test_too_many_combinations() -> None:
    text = "".join(f"[factor.f{i}]\n" + "".join(f"l{i}{j} = {{}}\n" for j in range(3)) for i in range(4))
    assert "3 x 3 x 3 x 3 levels make 81 variants" in errors(text)["factor"]


def test_a_declared_factorial_is_not_called_confounded() -> None:
    codes = [finding.text for finding in run(Moment.DESIGN, Context(given(FACTORS + COMMON)), ["P15"])]
    assert not any("differs from" in text for text in codes), codes


def test_two_workloads_of_one_name_need_labels() -> None:
    twice = '[[workload]]\nname = "oltp_read_only"\nskip_trx = true\n[[variant]]\nname = "a"\n'
    assert "Give each its own label" in errors(twice)["workload[oltp_read_only]"]
    labelled = twice.replace("skip_trx", 'label = "reads-alone"\nskip_trx')
    experiment = given(labelled, None, "workload[reads-alone].tables=3")
    assert [workload.title for workload in experiment.workloads] == ["oltp_read_only", "reads-alone"]
    assert [one.plan()["options"]["tables"] for one in experiment.workloads] == [1, 3]
    assert "label" not in experiment.workloads[1].plan()["options"]
