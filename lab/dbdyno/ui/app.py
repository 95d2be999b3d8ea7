"""The pages of `dbdyno ui`, and the commands of dbdyno that they run as processes, whose output is shown. No
other file imports NiceGUI.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from nicegui import ui

from dbdyno import passwords
from dbdyno.experiment.effects import CSV_FILE, FILE_KEYS, named_files
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.file_reading import parse_toml
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import read_bytes
from dbdyno.languages import translator
from dbdyno.listening import Listener
from dbdyno.problem import Problem
from dbdyno.store import StoreProblem, files
from dbdyno.text import compose
from dbdyno.ui.guard import Guard
from dbdyno.ui.pages import Pages

# Seconds between two looks at a run in progress, and after the last key before a text is read.
REFRESH_S, TYPING_S = 2.0, 0.4
# Seconds that a check or a comparison of two runs may take.
COMMAND_S = 120.0
OUTPUT_BYTES_MAX = 1 << 20
FILE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}\.toml"
# Seconds that a page may take: two runs are compared by another process.
PAGE_S = COMMAND_S + 30.0
# A report has no script. In a sandbox without allow-same-origin it could not use these pages if it had one.
_REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
# Language of the texts -> that of the library's own words.
_LANGUAGES: Mapping[str, Any] = {"ko": "ko-KR"}


class Site:
    """The pages, and the comparisons that they have started."""

    def __init__(self, pages: Pages, folder: Path, example: str, *, allow_run: bool) -> None:
        """`folder` is where experiment files are saved, `example` the text of a new one."""
        self.pages, self.folder, self.allow_run = pages, folder, allow_run
        self.translate = translator(pages.language)
        self._example = example
        self._started: list[Comparison] = []
        self._style = "\n".join(
            resources.files(package).joinpath(name).read_text(encoding="utf-8")
            for package, name in (("dbdyno.report", "templates/report.css"), ("dbdyno.ui", "ui.css"))
        )

    def add_to(self, application: FastAPI) -> None:
        """Register the pages."""
        ui.page("/", title="dbdyno", response_timeout=PAGE_S)(self.runs)
        ui.page("/run/{experiment}/{folder}", title="dbdyno", response_timeout=PAGE_S)(self.run)
        ui.page("/compare", title="dbdyno", response_timeout=PAGE_S)(self.compare)
        ui.page("/new", title="dbdyno", response_timeout=PAGE_S)(self.new)
        application.get("/report/{experiment}/{folder}")(self.report)

    async def start(self, file: Path) -> Comparison:
        """Start the comparison of an experiment file."""
        comparison = Comparison(file, self.pages.results)
        await comparison.start()
        self._started.append(comparison)
        return comparison

    async def stop(self) -> None:
        """Interrupt the comparisons that run, and wait until they have stopped their servers."""
        for comparison in self._started:
            comparison.stop()
        for comparison in self._started:
            await comparison.wait()

    def _frame(self) -> ui.element:
        """The parts that all pages have; returns the element for the rest."""
        ui.add_head_html(f"<style>{self._style}</style>")
        main = ui.element("div").classes("page")
        with main, ui.element("nav").props(f'aria-label="{self.translate(compose("Pages"))}"'):
            ui.link(self.translate(compose("Runs")), "/")
            ui.link(self.translate(compose("New experiment")), "/new")
        return main

    def runs(self) -> None:
        """All runs, with a field for words that they must contain."""
        with self._frame():
            ui.html(f"<h1>{self.translate(compose('Runs'))}</h1>", sanitize=False)
            words = ui.input(self.translate(compose("Words in experiment or result"))).classes("words")
            content = ui.html(self.pages.runs(), sanitize=False)

            async def refresh() -> None:
                content.set_content(await asyncio.to_thread(self.pages.runs, words.value or ""))

            words.on("update:model-value", refresh, throttle=TYPING_S, leading_events=False)

    async def run(self, experiment: str, folder: str) -> None:
        """One run; while it goes on, the page is written again every REFRESH_S; charts come later."""
        with self._frame():
            try:
                stored = self.pages.find(experiment, folder)
                content, _ = await asyncio.to_thread(self.pages.run, stored, draws=False)
            except StoreProblem as problem:
                ui.html(self.pages.problem(problem.text), sanitize=False)
                return
            shown = ui.html(content, sanitize=False)

            async def refresh() -> None:
                nonlocal content
                try:
                    new, goes_on = await asyncio.to_thread(self.pages.run, stored)
                except StoreProblem as problem:
                    new, goes_on = self.pages.problem(problem.text), False
                if new != content:
                    content = new
                    shown.set_content(new)
                if not goes_on:
                    timer.deactivate()

            timer = ui.timer(REFRESH_S, refresh)

    async def compare(self, request: Request) -> None:
        """Two runs next to each other."""
        with self._frame():
            names = request.query_params.getlist("run")
            try:
                if len(names) != 2:
                    raise Problem(
                        self.translate(compose("choose two runs; {number} are chosen", number=len(names)))
                    )
                runs = [self.pages.find(*name.partition("/")[::2]) for name in names]
                runs.sort(key=lambda entry: entry.path.name)
                _, answer = await run_command("diff", *(str(entry.path) for entry in runs))
                content = await asyncio.to_thread(self.pages.compare, runs, answer)
            except Problem as problem:
                content = self.pages.problem(problem.text)
            ui.html(content, sanitize=False)

    def new(self, like: str = "") -> None:
        """An editor: all errors while typing, the cost on request, and a start if that is allowed."""
        with self._frame():
            _Editor(self, self._source(like)).show()

    def _source(self, like: str) -> str:
        if like:
            try:
                return self.pages.find(*like.partition("/")[::2]).source()
            except StoreProblem:
                pass
        return self._example

    def report(self, experiment: str, folder: str) -> Response:
        """The report of a run, rendered from its data: a stored page may be another person's."""
        try:
            run = self.pages.find(experiment, folder)
        except StoreProblem as problem:
            return PlainTextResponse(problem.text, status_code=404)
        try:
            return HTMLResponse(self.pages.report(run), headers={"Content-Security-Policy": _REPORT_POLICY})
        except StoreProblem as problem:
            return PlainTextResponse(f"{problem.text}. {problem.fix}", status_code=409)


class _Editor:
    """The page with the text of an experiment."""

    def __init__(self, site: Site, source: str) -> None:
        self._site, self._source, self._translate = site, source, site.translate
        # Starts what `_start` has shown.
        self._start_button: ui.element | None = None

    def show(self) -> None:
        """Put the elements into the page."""
        translate = self._translate
        ui.html(f"<h1>{translate(compose('New experiment'))}</h1>", sanitize=False)
        self._text = ui.textarea(translate(compose("Experiment file (TOML)")), value=self._source).classes(
            "source"
        )
        self._text.props('outlined input-class="source-text" spellcheck=false')
        self._errors = ui.html("", sanitize=False).props('role="status"')
        with ui.element("div").classes("buttons"):
            _button(translate(compose("What does it cost?")), self._check)
        self._cost = ui.html("", sanitize=False)
        if self._site.allow_run:
            with ui.element("div").classes("buttons"):
                self._name = ui.input(translate(compose("Save as")), value="my-question.toml")
                _button(translate(compose("Save and start")), self._start)
            self._start_place = ui.element("div").classes("buttons")
        else:
            off = translate(compose("Starting is off: dbdyno ui --allow-run turns it on."))
            ui.html(f'<p class="legend">{off}</p>', sanitize=False)
        self._text.on("update:model-value", self._read, throttle=TYPING_S, leading_events=False)
        self._read()

    def _read(self) -> bool:
        """Show all errors of the text; whether there is none."""
        try:
            is_confined = not self._site.allow_run
            read_text(self._text.value or "", self._site.folder, is_confined=is_confined)
        except InvalidExperiment as problem:
            self._errors.set_content(self._site.pages.render("errors.html.j2", errors=problem.errors))
            return False
        except Problem as problem:
            self._errors.set_content(self._site.pages.problem(problem.text))
            return False
        self._errors.set_content(self._site.pages.render("errors.html.j2", errors=()))
        return True

    async def _check(self) -> None:
        if self._read():
            await self._print_cost(self._text.value or "")

    async def _print_cost(self, source: str) -> None:
        self._print(self._translate(compose("Checking …")))
        _, output = await check(source, self._site.folder, self._site.pages.results)
        self._print(output)

    def _print(self, text: str) -> None:
        self._cost.set_content(self._site.pages.render("output.html.j2", text=text))

    async def _start(self) -> None:
        """Show what the experiment would execute and read, with a button that starts it."""
        if not self._site.allow_run or not self._read():
            return
        name, source = self._name.value or "", self._text.value or ""
        if re.fullmatch(FILE_NAME, name) is None:
            self._print(f"{name!r} is no name of a file such as my-question.toml")
            return
        await self._print_cost(source)

        async def begin() -> None:
            start.delete()
            await self._begin(name, source)

        if self._start_button is not None:
            self._start_button.delete()
        with self._start_place:
            start = self._start_button = _button(self._translate(compose("Start it")), begin)

    async def _begin(self, name: str, source: str) -> None:
        """Save and start the experiment that was shown."""
        self._start_button = None
        try:
            experiment = read_text(source, self._site.folder, is_confined=False)
            file = save(source, self._site.folder, name)
        except Problem as problem:
            self._print(problem.text)
            return
        before = _folders(self._site.pages.results / experiment.name)
        comparison = await self._site.start(file)
        with self._start_place:
            stop = _button(self._translate(compose("Stop")), comparison.stop)

            def refresh() -> None:
                new = _folders(self._site.pages.results / experiment.name) - before
                link = next((f"/run/{quote(experiment.name)}/{quote(path.name)}" for path in sorted(new)), "")
                content = self._site.pages.render(
                    "started.html.j2", link=link, text=comparison.output, code=comparison.exit_code
                )
                self._cost.set_content(content)
                if comparison.exit_code is not None:
                    timer.deactivate()
                    stop.delete()

            timer = ui.timer(REFRESH_S, refresh)


def _button(text: str, action: Callable[[], Any]) -> ui.element:
    with ui.element("button").classes("plain").props("type=button").on("click", action) as button:
        ui.label(text)
    return button


def _folders(path: Path) -> set[Path]:
    return {entry.parent for entry in path.glob("*/experiment.json")}


def serve(site: Site, place: Listener, started: Callable[[str], object]) -> None:
    """Serve the pages until the process is interrupted; `started` gets the address, with a token that no file
    has. Raises OSError.
    """
    application = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    site.add_to(application)
    ui.run_with(
        application,
        title="dbdyno",
        dark=None,
        show_welcome_message=False,
        tailwind=False,
        language=_LANGUAGES.get(site.pages.language, "en-US"),
    )
    config = uvicorn.Config(
        Guard(application, place), host=place.host, port=place.port, log_level="error", ws_max_size=1 << 22
    )
    query = f"?token={place.token}" if place.has_own_token else ""
    server = _Server(config, lambda port: started(f"http://{place.url_host}:{port}/{query}"))
    asyncio.run(_serve(server, site))


async def _serve(server: uvicorn.Server, site: Site) -> None:
    try:
        await server.serve()
    finally:
        await site.stop()


class _Server(uvicorn.Server):
    """A server that calls `started` with its port as soon as it listens."""

    def __init__(self, config: uvicorn.Config, started: Callable[[int], object]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """See uvicorn."""
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            self._started(self.servers[0].sockets[0].getsockname()[1])


async def run_command(*arguments: str) -> tuple[int, str]:
    """Exit code and output of a command that reads, such as `check`; it is ended after COMMAND_S seconds."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dbdyno", *arguments,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env=passwords.whole_environment(),
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), COMMAND_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return 4, f"dbdyno {arguments[0]} did not end within {COMMAND_S:g} s"
    return process.returncode or 0, output[:OUTPUT_BYTES_MAX].decode(errors="replace")


def read_text(source: str, folder: Path, *, is_confined: bool) -> Experiment:
    """The experiment of a text. Raises Problem with all errors; if it `is_confined`, also for a file outside
    of `folder`, whose lines errors could show to everyone who may use the pages.
    """
    if is_confined:
        # An invalid text names no file yet.
        with contextlib.suppress(ValueError):
            _require_within(folder, _file_keys(parse_toml(source.encode())))
    experiment = read_bytes(source.encode(), folder / "experiment.toml")
    if is_confined:
        _require_within(folder, named_files(experiment))
    return experiment


def _file_keys(value: Any) -> Iterator[tuple[str, str]]:
    """Key and path wherever a document names a file, also by the end of a dotted key."""
    if isinstance(value, list):
        for entry in value:
            yield from _file_keys(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if isinstance(entry, str):
                is_file = key.rpartition(".")[2] in FILE_KEYS
                yield from ((key, path) for path in ([entry] if is_file else CSV_FILE.findall(entry)))
            yield from _file_keys(entry)


def _require_within(folder: Path, named: Iterator[tuple[str, str]]) -> None:
    for key, text in named:
        path = (folder / Path(text).expanduser()).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise Problem(
                f"{key} is {text}, which is not below the current folder of dbdyno ui",
                "Copy the file there; with --allow-run the pages read any file",
            )


async def check(source: str, folder: Path, results: Path) -> tuple[int, str]:
    """What `dbdyno check` says of a text, whose relative paths begin at `folder`. Executes nothing of it."""
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".dbdyno-ui-", suffix=".toml") as file:
        file.write(source)
        file.flush()
        code, output = await run_command("check", file.name, "--static", "--results", str(results))
        return code, output.replace(file.name, "the experiment")


def save(source: str, folder: Path, name: str) -> Path:
    """Write a new experiment file. Raises Problem if there is one with another content."""
    path = folder / name
    try:
        files.create(path, source.encode())
    except FileExistsError as error:
        if path.read_text(encoding="utf-8", errors="replace") != source:
            raise Problem(f"{path} exists, with another content", "Choose another name") from error
    except OSError as error:
        raise Problem(f"{path} cannot be written: {error.strerror}") from error
    return path


class Comparison:
    """A `dbdyno compare` that this process has started."""

    def __init__(self, file: Path, results: Path) -> None:
        self._output: list[str] = []
        self._command = [sys.executable, "-m", "dbdyno", "compare", str(file), "--results", str(results)]
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it; its output is read until it ends."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env=passwords.whole_environment(),
        )
        self._reader = asyncio.create_task(self._read(self._process))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self._output = [*self._output[-199:], line.decode(errors="replace").rstrip("\n")]
        await process.wait()

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return None if self._process is None else self._process.returncode

    @property
    def output(self) -> str:
        """The last lines that it has printed."""
        return "\n".join(self._output)

    async def wait(self) -> None:
        """Wait until it has ended."""
        if self._process is not None:
            await self._process.wait()

    def stop(self) -> None:
        """Interrupt it, as Ctrl-C does: finished trials stay, and --resume continues."""
        if self._process is not None and self._process.returncode is None:
            os.kill(self._process.pid, signal.SIGINT)
