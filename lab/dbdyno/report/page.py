"""The HTML page of the report: one file that needs no network, no script and no other file."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dbdyno import __version__, result_text
from dbdyno.experiment.base import format_duration
from dbdyno.experiment.differences import describe_differences
from dbdyno.experiment.metrics import PERCENTILES
from dbdyno.experiment.model import Design, Experiment, Variant
from dbdyno.experiment.slices import describe_slices
from dbdyno.explain import PER
from dbdyno.finding import SEVERITIES, FreeForm
from dbdyno.languages import ENGLISH, IN_ENGLISH, Translator, translator
from dbdyno.report import formatting
from dbdyno.report.chart import Chart
from dbdyno.report.model import LOADS_MAX, Report
from dbdyno.report.rendering import RenderedCharts, inline_svg
from dbdyno.report.tables import (
    LOAD_COLUMNS,
    STALLS,
    background_rows,
    gap_text,
    has_stall,
    load_rows,
    statement_rows,
    suite_tables,
)
from dbdyno.text import compose, compose_count, compose_line, join


def page(report: Report, charts: Sequence[Chart], rendered: RenderedCharts, language: str = ENGLISH) -> str:
    """The page as HTML in a language of `languages()`. If charts are missing, the page says why.

    The template escapes all text except the SVG of the charts and the style sheet.
    """
    style = resources.files("dbdyno.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    template = environment_for(language).get_template("report.html.j2")
    return template.render(
        report=report,
        experiment=report.experiment,
        style=Markup(style),  # noqa: S704 — report.css
        charts=drawn_charts(charts, rendered, translator(language)),
        has_card="card" in rendered.by_name,
        contents=_contents(report),
        check_texts=check_texts((check.code for check in report.checks), translator(language)),
        failure=rendered.failure,
        facts=facts(report.environment),
        design=design_rows(report),
        created_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        language=language,
        translate=translator(language),
    )


@functools.cache
def environment_for(language: str) -> Environment:
    """The templates: they translate each text that they print; `_` composes a text.

    All pages of a process share them, since to compile a template takes longer than to fill it in.
    """
    environment = Environment(
        loader=PackageLoader("dbdyno.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=functools.partial(_translate, translator(language)),
    )
    # The pages of `ui` show verdicts too.
    environment.globals.update(
        _=compose_line,
        compose_count=compose_count,
        code=_code,
        formatting=formatting,
        result_text=result_text,
        PER=PER,
        suite_tables=suite_tables,
        PERCENTILES=PERCENTILES,
        load_rows=load_rows,
        load_columns=LOAD_COLUMNS,
        statement_rows=statement_rows,
        background_rows=background_rows,
        STALLS=STALLS,
        gap_text=gap_text,
        has_stall=has_stall,
        SEVERITIES=SEVERITIES,
        loads_max=LOADS_MAX,
    )
    return environment


def _code(text: str, css_class: str = "") -> Markup:
    return Markup('<code class="{}">{}</code>').format(css_class, text)


def _translate(translate: Translator, value: Any) -> Any:
    return translate.markup(value) if isinstance(value, str) else value


def drawn_charts(
    charts: Iterable[Chart], rendered: RenderedCharts, translate: Translator
) -> list[tuple[Chart, list[Markup]]]:
    """The charts of the page with their drawings, without those that could not be rendered."""
    return [
        (chart, drawings)
        for chart in charts
        if chart.in_page and (drawings := _drawings(chart, rendered, translate))
    ]


def _drawings(chart: Chart, rendered: RenderedCharts, translate: Translator) -> list[Markup]:
    """The drawing of a chart, and that for narrow screens if it has one; [] if it could not be rendered."""
    names = [chart.name, *([chart.narrow_name] if chart.narrow is not None else [])]
    return [
        Markup(inline_svg(done.svg, translate(chart.description), name))  # noqa: S704 — escaped by the chart library
        for name in names
        if (done := rendered.by_name.get(name))
    ]


def _contents(report: Report) -> list[tuple[str, str]]:
    """The sections of the page: id and title."""
    sections = {
        "results": compose("Results"),
        "findings": compose("Findings"),
        "why": compose("Why") if report.explained.costs else "",
        "design": compose("Design"),
        "servers": compose("Servers"),
        "trials": compose("Trials"),
        "environment": compose("Environment"),
        "experiment": compose("Experiment file"),
        "checks": compose("Checks") if report.checks else "",
        "glossary": compose("Glossary"),
    }
    return [(name, title) for name, title in sections.items() if title]


def facts(environment: FreeForm, prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as rows of name and value. The name of a nested fact starts with the outer names."""
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


def design_rows(report: Report) -> list[tuple[str, str]]:
    """The experiment's design as rows of name and text."""
    experiment = report.experiment
    load, design, client = experiment.load, experiment.design, experiment.client
    warmup: str = f"{report.warmup_s:g} s"
    if load.warmup_s is None:
        warmup += compose(" (auto), then the first part of each measurement is discarded (MSER-5)")
    if load.prewarm == "scan":
        warmup += compose(", all tables and indexes read first")
    rows: list[tuple[str, str]] = [
        (
            compose("blocks"),
            compose(
                "{blocks_text}, each with every variant once at every load, variants in {order}, loads "
                "in {loads} order",
                blocks_text=report.blocks_text,
                order=_order(design),
                loads=_LOAD_ORDERS[design.order],
            ),
        ),
        (
            compose("one trial"),
            compose("{duration_s:g} s measured, warm-up {warmup}", duration_s=load.duration_s, warmup=warmup),
        ),
        *([(compose("slices"), describe_slices(experiment))] if design.pairing == "slices" else []),
        (
            compose("data"),
            compose("{state}, per {state_per}", state=design.state, state_per=design.state_per),
        ),
        (compose("load"), _load(report)),
        (compose("transport"), load.transport),
        (
            compose("client"),
            compose_count(
                report.workers,
                "CPUs {cpus}, {number} event loop",
                "CPUs {cpus}, {number} event loops",
                cpus=client.cpus or compose("any"),
            ),
        ),
    ]
    if report.shares:
        total = format_duration(report.shares.total_s)
        rows.append((compose("time"), join(": ", (total, report.shares.text()))))
    rows += [
        (compose("server {name}", name=variant.name), join(", ", _server(report, variant)))
        for variant in experiment.variants
    ]
    rows += _workload_rows(experiment)
    differing = [
        (variant.name, describe_differences(experiment, variant, report.checks))
        for variant in experiment.variants[1:]
    ]
    rows += [
        (compose("what differs in {name}", name=name), join("; ", texts))
        for name, texts in differing
        if texts
    ]
    return rows


def _workload_rows(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """The data of each workload, and its background loads."""
    for workload in experiment.workloads:
        texts = [
            experiment.workload_for(variant, workload.title).data_text() for variant in experiment.variants
        ]
        yield compose("workload {title}", title=workload.title), join("; ", dict.fromkeys(texts))
        for background in experiment.backgrounds(experiment.variants[0], workload.title):
            yield (
                compose("background load {name} of {title}", name=background.title, title=workload.title),
                background.load_text,
            )


_LOAD_ORDERS = {"random": compose("random"), "given": compose("given")}


def _order(design: Design) -> str:
    # Runs of older versions have no order seed; their order was not balanced.
    if design.order_seed is None:
        return compose("random order (seed {seed})", seed=design.seed)
    return compose("balanced random order (order seed {order_seed})", order_seed=design.order_seed)


def _load(report: Report) -> str:
    load = report.experiment.load
    text = compose("closed loop: each connection begins its next transaction when the last one has ended")
    if load.is_open:
        busy = formatting.load("connections", load.connections[0])
        text = compose(
            "open loop, {arrivals} arrivals, at most {busy} busy", arrivals=load.arrivals, busy=busy
        )
        text += (
            compose(", to find the capacity while {text}", text=load.latency_objective.text())
            if load.latency_objective
            else ""
        )
    return join("; ", (text, load.shape.text())) if load.shape else text


def _server(report: Report, variant: Variant) -> list[str]:
    """Product and version, the address of an existing server, and the CPUs of one that dbdyno starts."""
    product, location = _product(report, variant.name), variant.server.data_location
    if location is None:
        return [product, compose("CPUs {cpus}", cpus=variant.server.cpus or compose("any"))]
    hosts, socket, database = location
    return [
        product,
        compose(
            "existing server {socket}, database {database}",
            socket=socket or " ".join(f"{h}:{p}" for h, p in hosts),
            database=database,
        ),
    ]


def _product(report: Report, variant: str) -> str:
    server = report.servers.get(variant)
    return f"{server['product']} {server['version']}" if server else compose("no trial reached it")


# A heading of a check: "## D01 The load generator keeps up".
_SECTION = re.compile(r"^## ([PDRQ]\d\d) (.*)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_CODE = re.compile(r"`([^`]+)`")
_EMPHASIS = re.compile(r"\*([^*]+)\*")


@dataclass(frozen=True)
class CheckText:
    """What a check examines, and how to fix what it reports."""

    code: str
    title: Markup
    paragraphs: tuple[Markup, ...]


def check_texts(codes: Iterable[str], translate: Translator = IN_ENGLISH) -> list[CheckText]:
    """The explanations of these checks, by code; without those that the documentation does not have."""
    needed = frozenset(codes)
    return [
        CheckText(
            code,
            _markup(translate.pattern(title)),
            tuple(_markup(translate.pattern(paragraph)) for paragraph in paragraphs),
        )
        for code, title, *paragraphs in documented_checks()
        if code in needed
    ]


def documented_checks() -> list[tuple[str, ...]]:
    """Code, title and paragraphs of every check in the documentation, in Markdown."""
    page = resources.files("dbdyno.report").joinpath("templates/checks.md").read_text(encoding="utf-8")
    _, *parts = _SECTION.split(page)
    sections = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return sorted((code, title, *_paragraphs(section)) for code, title, section in sections)


def _paragraphs(section: str) -> list[str]:
    """What the check examines, and how to fix what it reports."""
    paragraphs = [" ".join(entry.split()) for entry in section.split("\n\n") if entry.strip()]
    # The first paragraph may end before a table, which the documentation alone has.
    first = paragraphs[0].removesuffix(":") + ("." if paragraphs[0].endswith(":") else "")
    fixes = [paragraph for paragraph in paragraphs[1:] if paragraph.startswith("Fix:")]
    return [first, *fixes[:1]]


def _markup(text: str) -> Markup:
    """The text as HTML: code as code, emphasis and links as plain text."""
    text = _LINK.sub(r"\1", text)
    parts = _CODE.split(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(_EMPHASIS.sub(r"\1", part))
        for number, part in enumerate(parts)
    )
