"""What an experiment executes and reads, as lines, for the question whether another person's may run."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.experiment.effects import Effect, Use, setting_effect, uses
from dbdyno.experiment.model import Experiment
from dbdyno.servers.products.declaration import read_declaration
from dbdyno.servers.server import Address, ServerProblem

_TITLES = {
    Effect.EXECUTES: "It executes, or names what a server executes:",
    Effect.READS: "It reads, writes or sends:",
    Effect.SQL: "Its load and its data are these statements, by the account of the load:",
}


def disclosure(experiment: Experiment) -> list[str]:
    """What the experiment executes and reads, besides dbdyno's own programs. Equal lines of several variants
    are one.
    """
    effects = [*uses(experiment), *_of_configs(experiment)]
    lines = []
    for effect, title in _TITLES.items():
        texts: dict[str, list[str]] = {}
        for use in effects:
            if use.effect is effect and effect is not Effect.SQL:
                texts.setdefault(f"{use.key} = {use.value}", []).append(use.variant)
        if effect is Effect.SQL:
            texts = _statements(effects)
        if effect is Effect.READS:
            texts |= _passwords(experiment)
        if texts:
            lines += [title, *(f"  {_of(variants)}{text}" for text, variants in texts.items())]
    return lines


def _of(variants: list[str]) -> str:
    names = ", ".join(dict.fromkeys(filter(None, variants)))
    return f"{names}: " if names else ""


def _statements(effects: list[Use]) -> dict[str, list[str]]:
    """The number of statements at each key: their text is in the file."""
    counts: dict[tuple[str, str], int] = {}
    for use in effects:
        if use.effect is Effect.SQL:
            place = use.variant, use.key.partition(".")[0] if use.key.startswith("workload") else use.key
            counts[place] = counts.get(place, 0) + 1
    texts: dict[str, list[str]] = {}
    for (variant, key), count in counts.items():
        texts.setdefault(f"{key}: {count} statement{'' if count == 1 else 's'}", []).append(variant)
    return texts


def _of_configs(experiment: Experiment) -> Iterator[Use]:
    """The settings in the variants' configuration files."""
    for variant in experiment.variants:
        if variant.server.config is None:
            continue
        try:
            declared = read_declaration(variant)
        except ServerProblem:
            # The server cannot be started either.
            continue
        key = f"server.config, {variant.server.config}"
        for line in map(str.strip, declared.config.splitlines()):
            # MySQL's and PostgreSQL's ways to read another configuration file, which this machine lacks.
            if line.startswith(("!", "include")):
                yield Use(Effect.EXECUTES, variant.name, key, line)
        for file in declared.included:
            yield Use(Effect.READS, variant.name, key, f"includes {file}")
        for name, value in declared.product.file_options(declared.config).items():
            effect = setting_effect(name, value)
            if effect is not Effect.HARMLESS:
                yield Use(effect, variant.name, f"{key}: {name}", value)


def _passwords(experiment: Experiment) -> dict[str, list[str]]:
    """The servers that get the password of the environment, because the experiment names no other one."""
    texts: dict[str, list[str]] = {}
    for variant in experiment.variants:
        server = variant.server
        if server.url is not None and server.password_env is None and server.password_file is None:
            text = f"the password in {Address.PASSWORD_VARIABLE}, for {server.url}"
            texts.setdefault(text, []).append(variant.name)
    return texts
