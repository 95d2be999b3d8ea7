"""The page: one HTML file that needs no network, no script and no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dbdyno import __version__
from dbdyno.experiment.model import Design
from dbdyno.report import words
from dbdyno.report.drawing import Drawings, inline
from dbdyno.report.figure import Figure
from dbdyno.report.model import Report


def page(report: Report, figures: Sequence[Figure], drawings: Drawings) -> str:
    """The HTML of the page, with a sentence instead of missing charts.

    All text is escaped except the charts and the style sheet.
    """
    environment = Environment(
        loader=PackageLoader("dbdyno.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(words=words)
    style = resources.files("dbdyno.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    return environment.get_template("report.html.j2").render(
        report=report,
        experiment=report.experiment,
        style=Markup(style),  # noqa: S704 — our own file
        pictures=[
            (figure, Markup(inline(picture.svg, figure)))  # noqa: S704 — escaped by the chart library
            for figure in figures
            if (picture := drawings.pictures.get(figure.name))
        ],
        missing=drawings.failure,
        facts=facts(report.environment),
        design=design(report),
        created_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
    )


def facts(environment: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as rows of name and value; the names of nested facts have the outer name as prefix."""
    rows: list[tuple[str, str]] = []
    for key, value in environment.items():
        name = f"{prefix}{key.replace('_', ' ')}"
        if isinstance(value, Mapping):
            rows += facts(value, f"{name}: ")
        elif key.endswith("_bytes") and isinstance(value, int | float):
            rows.append((name.removesuffix(" bytes"), f"{value / 2**30:,.1f} GiB"))
        elif isinstance(value, list | tuple):
            rows.append(
                (name, " ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value))
            )
        elif value is not None:
            rows.append((name, str(value)))
    return rows


def design(report: Report) -> list[tuple[str, str]]:
    """The design of the experiment as rows of name and text."""
    experiment = report.experiment
    load, plan, client = experiment.load, experiment.design, experiment.client
    warmup = f"{report.warmup_s:g} s"
    if load.warmup_s is None:
        warmup += " (auto), then a cut per trial (MSER-5)"
    if load.prewarm == "scan":
        warmup += ", all tables and indexes read first"
    rows = [
        (
            "blocks",
            f"{plan.blocks}, each with every variant once at every load, variants in {_order(plan)}, "
            f"loads in {plan.order} order",
        ),
        ("one trial", f"{load.duration_s:g} s measured, warm-up {warmup}"),
        ("data", f"{plan.state}, per {plan.state_per}"),
        ("load", _load(report)),
        ("transport", load.transport),
        (
            "client",
            f"CPUs {client.cpus or 'any'}, {client.workers} worker{'' if client.workers == 1 else 's'}",
        ),
    ]
    rows += [
        (f"server {variant.name}", f"{_product(report, variant.name)}, CPUs {variant.server.cpus or 'any'}")
        for variant in experiment.variants
    ]
    rows += [(f"workload {workload.title}", workload.data_text()) for workload in experiment.workloads]
    return rows


def _order(plan: Design) -> str:
    # Older runs, whose order was not balanced, have no order seed.
    if plan.order_seed is None:
        return f"random order (seed {plan.seed})"
    return f"balanced random order (order seed {plan.order_seed})"


def _load(report: Report) -> str:
    load = report.experiment.load
    text = "closed loop: each connection begins its next transaction when the last one has ended"
    if load.rate:
        text = f"open loop, {load.arrivals} arrivals, at most {load.connections[0]} connections busy"
    return f"{text}; {load.shape.text()}" if load.shape else text


def _product(report: Report, variant: str) -> str:
    server = report.servers.get(variant)
    return f"{server['product']} {server['version']}" if server else "no answer"
