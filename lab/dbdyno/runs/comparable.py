"""Whether the results of two runs can be compared, and what weakens the comparison.

A difference that changes what was measured (workload, tables, load, data state, metric, settings of the
servers) forbids it. A difference of the circumstances (machine, version, CPUs, order) is a note, because to
find an effect elsewhere is what a replication is for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.experiment.base import file_key
from dbdyno.experiment.differences import differing_variables
from dbdyno.experiment.metrics import metric_text
from dbdyno.experiment.model import JUDGING_KEYS, Experiment, Variant
from dbdyno.experiment.quantities import as_text
from dbdyno.finding import FreeForm
from dbdyno.problem import ExitCode, Problem
from dbdyno.store import Run
from dbdyno.store.run import key_differences
from dbdyno.store.verdict import VerdictFile
from dbdyno.text import compose, join

# Keys that have no influence on the effect, or that are compared in another form.
_IGNORED = re.compile(
    rf"conclusion|design\.({'|'.join(JUDGING_KEYS)}|order_seed|repeat_disturbed)(\..*)?"
    r"|loading\.(streams|keep)"
    r"|load\.(on_lost|give_up|answer_timeout|abort_if)"
    r"|(variant\[.*\]\.)?workload\[.*\]\.(script|label)"
    r"|variant\[.*\]\.server\.(password_env|password_file|\w+_timeout|hook_environment)"
    r"|variant\[.*\]\.(server|session)\.variables(\..*)?"
)
# Keys that describe the circumstances.
_CIRCUMSTANCES = re.compile(
    r"override\..*|design\.(seed|order|pairing|slice)|loading\.method|client\..*"
    r"|variant\[.*\]\.server\.(kind|version|cpus|basedir|config|image|memory|cpu_limit|network|url|start|stop"
    r"|restore|describe|sample|before_trial|during_trial|after_trial)(\[.*)?"
    r"|variant\[.*\]\.session\.(tls_ca|tls_certificate|tls_key|server_public_key)"
)
# Facts about the machine, in environment.json.
_HOST = ("cpu_model", "cpus", "architecture", "system", "kernel", "cpu_governor")
# Maximum number of characters of a value in a message.
_LENGTH_MAX = 60


@dataclass(frozen=True)
class Side:
    """One of two runs: what is known about it besides its trials."""

    # In messages: "the first run", "the report".
    name: str
    # The folder of the run, or the file of the report.
    place: str
    experiment: Experiment
    verdict: VerdictFile
    environment: FreeForm
    # Variant -> product and version of its server.
    servers: Mapping[str, str]


def side(run: Run, name: str) -> Side:
    """What a judged run says about itself. Raises StoreProblem."""
    verdict = run.verdict()
    assert verdict is not None, "the caller has judged the run"
    return Side(name, str(run.path), run.experiment(), verdict, run.environment, server_versions(run))


def server_versions(run: Run) -> dict[str, str]:
    """Variant -> product and version of the server of its first trial that has them. Raises StoreProblem."""
    versions: dict[str, str] = {}
    for trial in run.trials():
        if str(trial.meta["variant"]) not in versions and "version" in (server := trial.server):
            versions[str(trial.meta["variant"])] = f"{server['product']} {server['version']}"
    return versions


@dataclass(frozen=True)
class Differences:
    """All differences between two runs, as texts with both values."""

    # Those that forbid a comparison.
    refusals: tuple[str, ...]
    # Those that weaken it.
    notes: tuple[str, ...]


def are_independent(first: Experiment, second: Experiment) -> bool:
    """Whether both runs have one variant, so that nothing was compared within them."""
    return len(first.variants) == len(second.variants) == 1


def differences(first: Side, second: Side) -> Differences:
    """The differences between two runs. Of two runs of one variant each, that variant may differ."""
    names = (first.name, second.name)
    refusals = [*_shape_refusals(first, second, names)]
    notes = [*_point_notes(first.experiment, second.experiment, names)]
    first_view, second_view = (
        _view(of.experiment, first.experiment, second.experiment) for of in (first, second)
    )
    for key, before, after in key_differences(first_view, second_view):
        text = _values(key, (before, after), names)
        if _CIRCUMSTANCES.fullmatch(key):
            notes.append(text)
        elif not _IGNORED.fullmatch(key):
            refusals.append(text)
    independent = are_independent(first.experiment, second.experiment)
    settings = [*_variables(first.experiment, second.experiment, names, independent=independent)]
    (notes if independent else refusals).extend(settings)
    if independent:
        # What a variant changes is what the two runs compare.
        notes += [text for text in refusals if text.startswith("variant[")]
        refusals = [text for text in refusals if not text.startswith("variant[")]
    return Differences(tuple(refusals), (*notes, *_circumstances(first, second)))


def require_comparable(first: Side, second: Side) -> list[str]:
    """The differences that weaken the comparison. Raises Problem with all that forbid it."""
    between = differences(first, second)
    if between.refusals:
        listed = "".join(f"\n  {text}" for text in between.refusals)
        raise Problem(
            f"{first.name} and {second.name} cannot be compared:{listed}",
            "Compare two runs of the same experiment; the differences that are notes need not be removed",
            ExitCode.NOT_COMPARABLE,
        )
    return list(between.notes)


def common_points(first: Experiment, second: Experiment) -> list[dict[str, Any]]:
    """The loads that both experiments have, in the order of the first."""
    of_second = [dict(point.as_dict()) for point in second.load.points()]
    return [at for point in first.load.points() if (at := dict(point.as_dict())) in of_second]


def has_same_points(first: Experiment, second: Experiment) -> bool:
    """Whether both experiments have the same loads. The rates of a latency objective are not its result."""
    has_objective = first.load.latency_objective is not None and second.load.latency_objective is not None
    common = len(common_points(first, second))
    return has_objective or common == len(first.load.points()) == len(second.load.points())


def _shape_refusals(first: Side, second: Side, names: Sequence[str]) -> Iterator[str]:
    """What the runs lack to be compared at all."""
    both = earlier, later = first.experiment, second.experiment
    if (len(earlier.variants) == 1) != (len(later.variants) == 1):
        alone, several = names if len(earlier.variants) == 1 else (names[1], names[0])
        yield compose("{alone} has one variant, and {several} compares several", alone=alone, several=several)
    elif not are_independent(earlier, later):
        baselines = [of.variants[0].name for of in both]
        yield from _differing(compose("the baseline"), baselines, names)
        if baselines[0] == baselines[1] and not _common(earlier.variants[1:], later.variants[1:], "name"):
            listed = [join(", ", (v.name for v in of.variants[1:])) for of in both]
            yield _values(compose("the variant"), listed, names)
    if not _common(earlier.workloads, later.workloads, "title"):
        yield _values(
            compose("the workload"),
            [join(", ", (w.title for w in of.workloads)) for of in both],
            names,
        )
    metrics = [metric_text(of.metrics[0]) for of in both]
    yield from _differing(compose("the metric"), metrics, names)
    if not common_points(earlier, later) and not has_same_points(earlier, later):
        yield _values(compose("the load"), [_loads(earlier), _loads(later)], names)


def _point_notes(first: Experiment, second: Experiment, names: Sequence[str]) -> Iterator[str]:
    """The parts that only one of the runs has."""
    if common_points(first, second) and not has_same_points(first, second):
        text = _values(compose("the load"), [_loads(first), _loads(second)], names)
        yield compose("{text}: the common loads are compared, not the effect over all loads", text=text)
    if not are_independent(first, second):
        yield from _only_in("variant", first.variants[1:], second.variants[1:], "name", names)
    yield from _only_in("workload", first.workloads, second.workloads, "title", names)


def _only_in(
    what: str, first: Sequence[Any], second: Sequence[Any], key: str, names: Sequence[str]
) -> Iterator[str]:
    common = _common(first, second, key)
    for of, name in ((first, names[0]), (second, names[1])):
        if common and (alone := [getattr(part, key) for part in of if getattr(part, key) not in common]):
            yield compose(
                "only {name} has the {what} {listed}", name=name, what=what, listed=join(", ", alone)
            )


def _view(of: Experiment, first: Experiment, second: Experiment) -> dict[str, Any]:
    """The keys of an experiment that both have, by their names in the file."""
    dump = of.model_dump(mode="json")
    titles = _common(first.workloads, second.workloads, "title")
    independent = are_independent(first, second)
    variants = _common(first.variants, second.variants, "name")
    load = {key: value for key, value in dump["load"].items() if key not in ("connections", "rate")}
    if of.load.is_open:
        load["connections"] = list(of.load.connections)
    return {
        "load": _keys(load),
        **{name: _keys(dump[name]) for name in ("design", "client", "loading")},
        **_workloads(of.workloads, titles),
        "factor": dump["factors"],
        **{
            f"variant[{first.variants[0].name if independent else variant.name}]": _variant(variant, titles)
            for variant in of.variants
            if independent or variant.name in variants
        },
    }


def _variant(variant: Variant, titles: Sequence[str]) -> dict[str, Any]:
    dump = variant.model_dump(mode="json", exclude={"name", "workloads"})
    return {**{key: _keys(value) for key, value in dump.items()}, **_workloads(variant.workloads, titles)}


def _workloads(workloads: Sequence[Any], titles: Sequence[str]) -> dict[str, Any]:
    return {
        f"workload[{workload.title}]": _keys(workload.model_dump(mode="json"))
        for workload in workloads
        if workload.title in titles
    }


def _keys(value: Any) -> Any:
    return {file_key(key): entry for key, entry in value.items()} if isinstance(value, dict) else value


def _variables(
    first: Experiment, second: Experiment, names: Sequence[str], *, independent: bool
) -> Iterator[str]:
    """The declared settings of servers and sessions that differ."""
    others = {variant.name: variant for variant in second.variants}
    for variant in first.variants:
        same = second.variants[0] if independent else others.get(variant.name)
        if same is None:
            continue
        for name in differing_variables(variant, same):
            values = (
                {key.replace("-", "_"): as_text(value) for key, value in of.server.variables.items()}
                for of in (variant, same)
            )
            before, after = (of.get(name.replace("-", "_")) for of in values)
            yield _values(
                f"variant[{variant.name}].server.variables.{name}",
                (before, after),
                names,
            )
        before_session, after_session = variant.session.variables, same.session.variables
        for key in dict.fromkeys([*before_session, *after_session]):
            place = f"variant[{variant.name}].session.variables.{key}"
            yield from _differing(place, (before_session.get(key), after_session.get(key)), names)


def _circumstances(first: Side, second: Side) -> Iterator[str]:
    """Machine, versions of dbdyno, and versions of the servers."""
    names = (first.name, second.name)
    first_facts, second_facts = (of.environment.get("host") for of in (first, second))
    if isinstance(first_facts, Mapping) and isinstance(second_facts, Mapping):
        for key in _HOST:
            name = compose("the machine's {key}", key=key.replace("_", " "))
            yield from _differing(name, (first_facts.get(key), second_facts.get(key)), names)
        memory = [
            f"{round(_number(of.get('memory_bytes')) / 2**30, 1):g} GiB" for of in (first_facts, second_facts)
        ]
        yield from _differing(compose("the machine's memory"), memory, names)
    first_facts, second_facts = (of.environment.get("versions") for of in (first, second))
    if isinstance(first_facts, Mapping) and isinstance(second_facts, Mapping):
        for key, text in (("dbdyno", "dbdyno"), ("engine", compose("the engine"))):
            versions = (first_facts.get(key), second_facts.get(key))
            yield from _differing(compose("the version of {text}", text=text), versions, names)
    if are_independent(first.experiment, second.experiment):
        servers = [next(iter(of.servers.values()), None) for of in (first, second)]
        yield from _differing(compose("the server"), servers, names)
        return
    for variant in first.servers:
        values = first.servers[variant], second.servers.get(variant, first.servers[variant])
        yield from _differing(compose("the server of {name}", name=variant), values, names)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _common(first: Sequence[Any], second: Sequence[Any], key: str) -> list[str]:
    """The names that both lists have, in the order of the first."""
    of_other = {getattr(part, key) for part in second}
    return [name for part in first if (name := getattr(part, key)) in of_other]


def _loads(of: Experiment) -> str:
    values = [point.level for point in of.load.points()]
    unit = "transactions/s" if of.load.is_open else "connections"
    return f"{', '.join(f'{value:g}' for value in values)} {unit}"


def _differing(what: str, values: Sequence[Any], names: Sequence[str]) -> Iterator[str]:
    if values[0] != values[1]:
        yield _values(what, values, names)


def _values(what: str, values: Sequence[Any], names: Sequence[str]) -> str:
    """A difference with the values of both runs."""
    before, after = map(_text, values)
    return compose(
        "{what} is {before} in {names} and {after} in {names_2}",
        what=what,
        before=before,
        names=names[0],
        after=after,
        names_2=names[1],
    )


def _text(value: Any) -> str:
    """A value in a message; null is a key that is not set."""
    if value is None or value in ([], {}, ""):
        return compose("not set")
    if isinstance(value, str):
        text = value
    elif isinstance(value, float):
        text = f"{value:g}"
    else:
        text = json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _LENGTH_MAX else f"{line[: _LENGTH_MAX - 1]}…"
