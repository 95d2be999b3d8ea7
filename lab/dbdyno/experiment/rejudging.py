"""What may be changed about the judgement of a finished run: only what would need no other measurement.

A key of the experiment may be changed if it decides how measured data are judged and nothing else. Data that
were measured may be left out: blocks, loads and workloads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbdyno.experiment.base import file_keys
from dbdyno.experiment.combinations import find_errors, find_override_errors
from dbdyno.experiment.errors import InputError, InvalidExperiment, did_you_mean
from dbdyno.experiment.model import Design, Experiment, Load
from dbdyno.experiment.overrides import change_overrides, parse_assignment
from dbdyno.experiment.reading import validate
from dbdyno.text import join_some

# The keys of [design] that may be changed; those of [override] may be too.
DESIGN_KEYS = ("delta_percent", "max_loss_percent", "metrics")
_ALLOWED = ", ".join(f"design.{key}" for key in DESIGN_KEYS)
_FIX = (
    f"{_ALLOWED} and override.CODE can be changed; leave out data with --leave-out, and start a new run for "
    "anything else"
)
# Maximum number of blocks, loads or workloads that a message lists.
LISTED_MAX = 10
_KINDS = ("block", "connections", "rate", "workload")


@dataclass(frozen=True)
class Rejudging:
    """Valid changes of the judgement of a run."""

    # Key in [design] -> value.
    design: Mapping[str, Any] = field(default_factory=dict)
    # Code of a check -> reason, or None for no override.
    override: Mapping[str, str | None] = field(default_factory=dict)
    # What is left out: numbers of blocks, which start at 1, loads by their value, and titles of workloads.
    blocks: Sequence[int] = ()
    loads: Sequence[float] = ()
    workloads: Sequence[str] = ()

    @property
    def leaves_out(self) -> bool:
        """Whether it leaves out data."""
        return bool(self.blocks or self.loads or self.workloads)

    def apply(self, experiment: Experiment) -> Experiment:
        """The experiment with the changes, and without what is left out."""
        design = experiment.design.model_copy(update=self.design)
        if design.stop is None:
            design = design.model_copy(update={"blocks": design.blocks - len(self.blocks)})
        variants = tuple(
            variant.model_copy(update={"workloads": self._remaining(variant.workloads)})
            for variant in experiment.variants
        )
        return experiment.model_copy(
            update={
                "design": design,
                "override": change_overrides(experiment.override, self.override),
                "load": _without_loads(experiment.load, self.loads),
                "workloads": self._remaining(experiment.workloads),
                "variants": variants,
            }
        )

    def _remaining(self, workloads: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(workload for workload in workloads if workload.title not in self.workloads)


def read_changes(
    experiment: Experiment,
    assignments: Iterable[str],
    omissions: Iterable[str],
    blocks: Mapping[int, int | None],
) -> Rejudging:
    """The changes of `--set KEY=VALUE` and `--leave-out KIND=VALUE` for a finished run of the experiment.

    `blocks` are the numbers of the run's blocks, from 1, each with the block that it repeats or None. Raises
    InvalidExperiment with all errors.
    """
    errors: list[InputError] = []
    changes: dict[str, Any] = {}
    left_out: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for text in assignments:
        parsed = parse_assignment(text)
        if isinstance(parsed, InputError):
            errors.append(parsed)
        elif parsed[0] in ("load.connections", "load.rate"):
            unmeasured = list(_leave_out_others(experiment.load, *parsed, left_out))
            errors += unmeasured
        elif (error := _refusal(experiment, *parsed)) is not None:
            errors.append(error)
        else:
            changes[parsed[0]] = parsed[1]
    design = {key.partition(".")[2]: value for key, value in changes.items() if key.startswith("design.")}
    override = {key.partition(".")[2]: value for key, value in changes.items() if key.startswith("override.")}
    valid = _validate(experiment, design, override, errors)
    for text in omissions:
        errors += _read_omission(text, experiment, blocks, left_out)
    loads = [*left_out["connections"], *left_out["rate"]]
    errors += _last_errors(experiment, left_out["block"], loads, left_out["workload"], blocks)
    if errors:
        raise InvalidExperiment("the run cannot be judged again in this way", errors)
    values = {key: getattr(valid.design, key) for key in design}
    return Rejudging(
        values,
        override,
        *(tuple(dict.fromkeys(entry)) for entry in (left_out["block"], loads, left_out["workload"])),
    )


def _refusal(experiment: Experiment, key: str, value: Any) -> InputError | None:
    """Why a key cannot be changed; None if it can."""
    section, _, name = key.partition(".")
    if section == "override" and name:
        if experiment.override.get(name) == value:
            return InputError(key, value, "the run has this override already", "Leave it out")
        return next(find_override_errors({name: value}), None)
    if section != "design" or name not in DESIGN_KEYS:
        is_misspelt = section == "design" and name.partition(".")[0] not in file_keys(Design)
        if is_misspelt:
            fix = did_you_mean(key, [f"design.{entry}" for entry in DESIGN_KEYS])
            return InputError(key, value, "there is no such key", fix)
        problem = "this cannot be changed after the run, because it does not concern the judgement alone"
        return InputError(key, value, problem, _FIX)
    was = experiment.metric_names if name == "metrics" else getattr(experiment.design, name)
    if was == (tuple(value) if isinstance(value, list) else value):
        return InputError(key, value, "the run was judged with this value already", "Leave it out")
    return None


def _validate(
    experiment: Experiment,
    design: Mapping[str, Any],
    override: Mapping[str, Any],
    errors: list[InputError],
) -> Experiment:
    """The experiment with the changes; the errors of their values are appended."""
    resolved = experiment.model_dump(mode="json")
    resolved["design"] |= design
    resolved["override"] |= override
    validated = validate(resolved, is_stored=True)
    errors += validated.errors
    changed = validated.experiment
    if changed is None:
        return experiment
    existing_errors = {str(error) for error in find_errors(experiment)}
    errors += [error for error in find_errors(changed) if str(error) not in existing_errors]
    return changed


def _leave_out_others(
    load: Load, key: str, value: Any, left_out: Mapping[str, list[Any]]
) -> Iterator[InputError]:
    """Leave out the loads that a list of loads does not have."""
    kind = key.partition(".")[2]
    measured = _loads(load) if kind == _kind(load) else ()
    chosen = value if isinstance(value, list) else [value]
    for entry in chosen:
        if entry not in measured:
            problem = f"{_shown(entry)} was not measured"
            fix = f"Choose among {', '.join(map(_shown, measured))}" if measured else _FIX
            yield InputError(key, value, problem, fix)
            return
    left_out[kind].extend(item for item in measured if item not in chosen)


def _read_omission(
    text: str,
    experiment: Experiment,
    blocks: Mapping[int, int | None],
    left_out: Mapping[str, list[Any]],
) -> Iterator[InputError]:
    """Add the data that one `--leave-out` names."""
    kind, _, name = (part.strip() for part in text.partition("="))
    option = f"--leave-out {text}"
    possible: Collection[Any]
    match kind:
        case "block":
            value: Any = int(name) if re.fullmatch(r"[0-9]{1,9}", name) else None
            possible = [number for number, repeated in blocks.items() if repeated is None]
            if value in blocks and (repeated := blocks[value]) is not None:
                problem = f"block {value} repeats block {repeated}"
                yield InputError(option, None, problem, f"Leave out block {repeated}, and its repeat with it")
                return
        case "connections" | "rate":
            possible = _loads(experiment.load) if kind == _kind(experiment.load) else ()
            value = next((entry for entry in possible if _shown(entry) == name or str(entry) == name), None)
        case "workload":
            value, possible = name, [workload.title for workload in experiment.workloads]
        case _:
            problem = "only blocks, loads and workloads can be left out"
            fix = "Write block=3, connections=20, rate=500 or workload=TITLE"
            yield InputError(option, None, problem, fix)
            return
    if value not in possible:
        listed = join_some([_shown(entry) for entry in possible], LISTED_MAX) or "none"
        yield InputError(option, None, f"the run has no such {kind}; it has: {listed}")
    else:
        left_out[kind].append(value)


def _last_errors(
    experiment: Experiment,
    blocks: Collection[int],
    loads: Collection[float],
    workloads: Collection[str],
    measured: Mapping[int, int | None],
) -> Iterator[InputError]:
    """Errors if too little is left."""
    planned = {number for number, repeated in measured.items() if repeated is None}
    every_load = _loads(experiment.load)
    # The capacity under a latency objective is between two rates.
    needed = 2 if experiment.load.latency_objective else 1
    what = {
        "block": (planned, blocks, 1),
        "load": (every_load, loads, needed),
        "workload": ([workload.title for workload in experiment.workloads], workloads, 1),
    }
    for name, (every, without, least) in what.items():
        if without and len(set(every) - set(without)) < least:
            problem = f"no {name} would be left"
            if least > 1:
                problem = f"a latency objective needs {least} {name}s, and fewer would be left"
            yield InputError("--leave-out", None, problem, f"Leave out fewer {name}s")


def _kind(load: Load) -> str:
    return "rate" if load.is_open else "connections"


def _loads(load: Load) -> tuple[float, ...]:
    """The values of the loads: numbers of connections, or rates."""
    return tuple(point.level for point in load.points())


def _without_loads(load: Load, loads: Collection[float]) -> Load:
    remaining = tuple(entry for entry in _loads(load) if entry not in loads)
    if load.needs_probe:
        # Its rates are those that the probe has found.
        changed = load.model_copy()
        changed.set_found_rates(remaining)
        return changed
    return load.model_copy(update={_kind(load): remaining})


def _shown(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if is_number else str(value)
