"""Texts in other languages: catalogues, stored texts, and reports in which no text is left untranslated."""

from __future__ import annotations

import gettext
import json
import math
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from string import Formatter

import numpy as np
import polib
import pytest
from markupsafe import Markup
from tests.unit.stored_run import Making, make

from dbdyno import text
from dbdyno.commands.options import require_language
from dbdyno.generate import patterns
from dbdyno.languages import IN_ENGLISH, Translator, languages, translator
from dbdyno.measure.recording import ENGINE_TEXTS, read
from dbdyno.problem import Problem
from dbdyno.report import page as page_module
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import gather
from dbdyno.report.page import page
from dbdyno.report.rendering import RenderedCharts
from dbdyno.report.writing import write
from dbdyno.store import Run, StoreProblem
from dbdyno.store.document import TEXTS, read_texts
from dbdyno.text import Text, as_json, compose, compose_count, from_json, join, recall
from dbdyno.verdict import judge

OTHERS = [code for code in languages() if code != "en"]
ROOT = Path(__file__).parents[2]
HANGUL = re.compile("[가-힣]")


class Brackets(gettext.NullTranslations):
    """A language that puts the words of a pattern in brackets, and not its values."""

    def gettext(self, message: str) -> str:
        parts = []
        for literal, name, form, _ in Formatter().parse(message):
            escaped = literal.replace("{", "{{").replace("}", "}}")
            parts.append(f"⟦{escaped}⟧" if escaped else "")
            parts.append("" if name is None else f"{{{name}{form and ':'}{form}}}")
        return "".join(parts)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)


IN_BRACKETS = Translator(Brackets())


def names(pattern: str) -> set[str]:
    """The places of a pattern."""
    return {name for _, name, _, _ in Formatter().parse(pattern) if name}


@pytest.mark.parametrize("code", OTHERS)
def test_every_pattern_has_a_translation_with_its_values(code: str) -> None:
    path = resources.files("dbdyno.languages").joinpath(f"{code}.po")
    catalogue = polib.pofile(path.read_text(encoding="utf-8"))
    entries = {(entry.msgid, entry.msgid_plural): entry for entry in catalogue}
    assert set(entries) == set(patterns()), "make texts brings the catalogue up to date"
    untranslated = [f"{entry.occurrences[0][0]}: {entry.msgid}" for entry in catalogue.untranslated_entries()]
    assert not untranslated, "\n".join(untranslated)
    for (one, many), entry in entries.items():
        translations = list(entry.msgstr_plural.values()) if many else [entry.msgstr]
        assert not entry.fuzzy, one
        for translation in translations:
            assert names(translation) - {"number"} == names(one) - {"number"}, one
            assert names(translation) <= names(one) | names(many), one


def test_every_pattern_can_be_stored() -> None:
    """A format that `from_json` refuses would make a run unreadable."""
    for one, many in patterns():
        values = dict.fromkeys(names(one) | names(many), 1)
        from_json([one, many or None, {**values, "number": 1}])


def test_a_text_is_its_english_form_until_it_is_said() -> None:
    size = compose("{percent} % higher", percent="38.0")
    whole = join("; ", (compose("{metric} {size}", metric=compose("p99 latency"), size=size), "b"))
    assert whole == "p99 latency 38.0 % higher; b"
    assert translator("ko")(whole) == "p99 지연 시간 38.0 % 높음; b"
    assert IN_ENGLISH(whole) == whole
    assert translator("ko")(compose_count(1, "{number} block", "{number} blocks")) == "블록 1개"
    assert (size + " x", "x " + size) == ("38.0 % higher x", "x 38.0 % higher")
    assert translator("ko")("x " + size) == "x 38.0 % 높음"


def test_a_name_that_is_a_word_of_dbdyno_is_not_translated() -> None:
    text_of = compose("{variant} is faster than {baseline}", variant="throughput", baseline="faster")
    assert translator("ko")(text_of) == "throughput 쪽이 faster보다 빠름"
    assert translator("ko")("faster") == "faster"


def test_markup_in_values_stays_and_everything_else_is_escaped() -> None:
    made = compose("{name} < {code}", name="<b>", code=Markup("<code>x</code>"))
    assert IN_BRACKETS.markup(made) == "&lt;b&gt;⟦ &lt; ⟧<code>x</code>"
    assert IN_BRACKETS.markup("<i>") == "&lt;i&gt;"


@pytest.mark.parametrize(
    "entry",
    [
        "text",
        ["{a}"],
        ["{a}", None, {}],
        ["{a.__class__}", None, {"a": "x"}],
        ["{a[0]}", None, {"a": "x"}],
        # The names of values are the stranger's too.
        ["{a.__class__}", None, {"a.__class__": 1, "a": "x"}],
        [
            "{a.__new__.__globals__[re].enum.sys.modules[os].environ}",
            None,
            {"a.__new__.__globals__[re].enum.sys.modules[os].environ": 1, "a": ["x", None, {}]},
        ],
        ["{a[0]}", "{a[0]}", {"a[0]": 1, "a": "x", "number": 2}],
        ["{}", None, {"": "x"}],
        ["{0}", None, {"0": "x"}],
        ["{a!r}", None, {"a": "x"}],
        ["{a:>999999999}", None, {"a": "x"}],
        ["{a:{b}}", None, {"a": 1.0, "b": "9"}],
        ["{a", None, {"a": "x"}],
        ["{number}", "{number}", {"number": "x"}],
        ["{a}", None, {"a": {"b": 1}}],
    ],
)
def test_a_stored_text_has_plain_places_and_values(entry: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(entry)


def judged(folder: Path) -> Run:
    """A judged run with findings before and after its trials."""
    check: dict[str, object] = {
        "code": "P04", "level": "note", "text": str(compose("{key} not set", key="x")), "evidence": {},
        "subject": "", "override": None, "fix": "",
    }  # fmt: skip
    run = make(folder, Making(findings=[check], speed=lambda trial, _: 100 if trial.variant == "a" else 80))
    judge(run)
    return run


def test_another_process_can_translate_what_a_run_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = judged(tmp_path)
    monkeypatch.setattr(text, "_KNOWN", {})
    # verdict.json has plain English, whatever the language of a report.
    (sentence,) = (
        one["curve"]["sentence"] for one in json.loads((run.path / "verdict.json").read_text())["comparisons"]
    )
    assert recall(sentence) is sentence
    written = write(run, language="ko")
    assert written == run.path / "ko" / "report.html"
    shown = written.read_text()
    assert '<html lang="ko">' in shown
    assert "모든 부하에서 b 쪽이 a보다 느림: 처리량" in shown
    # The page carries the English sentence for `dbdyno replicate`, and shows it nowhere.
    assert sentence not in Shown(shown).text
    assert "x 설정 안 함." in shown
    assert "b 쪽이 a보다 느림" in (run.path / "ko" / "report.md").read_text()
    assert (
        json.loads((run.path / "verdict.json").read_text())["comparisons"][0]["curve"]["sentence"] == sentence
    )


def test_a_run_without_its_texts_is_shown_in_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = judged(tmp_path)
    (run.path / TEXTS).unlink()
    monkeypatch.setattr(text, "_KNOWN", {})
    markdown = as_markdown(gather(run), language="ko")
    assert "**b is slower than a at every load: throughput" in markdown
    assert "| 부하 | a | b | 변화 |" in markdown


def test_damaged_texts_are_named(tmp_path: Path) -> None:
    (tmp_path / TEXTS).write_text('{"schema": 1, "texts": [["{a.b}", null, {"a": "x"}]]}')
    with pytest.raises(StoreProblem, match=r"texts\.json is damaged"):
        read_texts(tmp_path)


def test_a_text_survives_its_file() -> None:
    a = compose_count(2, "{number} block", "{number} blocks")
    made = compose("{a} and {b:.1f}, {c:,}, {d:g}", a=a, b=1.25, c=np.int64(1000), d=math.inf)
    again = from_json(json.loads(json.dumps(as_json(made), allow_nan=False)))
    assert (again, again.pattern) == ("2 blocks and 1.2, 1,000, inf", made.pattern)
    assert isinstance(again.values["a"], Text)


class Shown(HTMLParser):
    """The text that readers see, without that of files, names and the environment."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self._hidden = 0
        self._open: list[bool] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("meta", "br", "link"):
            return
        found = dict(attrs)
        is_hidden = tag in ("style", "template", "pre", "code", "svg") or found.get("id") == "environment"
        self._open.append(is_hidden)
        self._hidden += is_hidden
        for name in ("aria-label", "alt", "title"):
            self.text += f" {found.get(name) or ''} "

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 — the library's name.
        if self._open:
            self._hidden -= self._open.pop()

    def handle_data(self, data: str) -> None:
        self.text += f" {data} " if not self._hidden else ""


def outside(text: str) -> str:
    """What is in no brackets."""
    depth, kept = 0, []
    for character in text:
        depth += (character == "⟦") - (character == "⟧")
        kept.append(character if depth == 0 and character != "⟧" else " ")
    return "".join(kept)


# Names, values and units that no language translates.
UNTRANSLATED = {
    "oltp_read_write", "name-of-a", "name-of-b", "made", "fast", "mariadb", "tcp", "restore", "group", "min",
    "thread_handling", "as-", "utc", "z-r", "kib", "mib", "gib",
}  # fmt: skip


def english_words(shown: str) -> set[str]:
    words = re.findall(r"[A-Za-z][A-Za-z_-]{2,}", outside(shown))
    return {word for word in words if word.lower() not in UNTRANSLATED}


@pytest.mark.parametrize("blocks", [2, 8])
def test_no_text_of_the_report_is_left_untranslated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    making = Making(
        blocks=blocks,
        names=("name-of-a", "name-of-b"),
        speed=lambda trial, _: 100 if trial.variant == "name-of-a" else 80,
    )
    run = make(tmp_path, making)
    judge(run)
    monkeypatch.setattr(page_module, "translator", lambda _: IN_BRACKETS)
    shown = Shown(page(gather(run), [], RenderedCharts(), "brackets")).text
    assert "⟦" in shown
    assert english_words(shown) == set()


def test_a_language_without_texts_is_refused() -> None:
    assert require_language("ko") == "ko"
    with pytest.raises(Problem) as error:
        require_language("../../etc/passwd")
    assert "Choose one of en, ko" in error.value.fix


def test_korean_has_no_english_sentence() -> None:
    catalogue = polib.pofile(
        resources.files("dbdyno.languages").joinpath("ko.po").read_text(encoding="utf-8")
    )
    for entry in catalogue:
        words = re.sub(r"`[^`]*`|\{[^}]*\}", "", entry.msgid)
        translation = entry.msgstr or entry.msgstr_plural.get(0, "")
        if len(re.findall(r"\b[a-z]{3,}\b", words)) >= 3 and not words.startswith(("ulimit", "SET ")):
            assert HANGUL.search(translation), entry.msgid


def test_the_warnings_of_the_load_generator_are_those_of_its_code() -> None:
    """Every text of a warning that a run of the engine or of a script may write has a pattern."""
    found: list[str] = []
    for file in [*ROOT.glob("engine/runner/src/**/*.rs"), *ROOT.glob("compat/lua/src/**/*.rs")]:
        code = re.sub(r"\\\n\s*", "", file.read_text(encoding="utf-8"))
        for start in re.finditer(r"Warning \{\n?\s*code:", code):
            warning = code[start.start() : code.index(".into()", code.index("fix:", start.start()))]
            # Loading writes this one, without records.
            if "table-kept" not in warning:
                found += re.findall(r'(?:text|fix):\s*(?:format!\(\s*)?"((?:[^"\\]|\\.)*)"', warning)

    def without_names(texts: Iterable[str]) -> list[str]:
        return sorted(re.sub(r"\{[^}]*\}", "{}", text).replace('\\"', '"') for text in texts)

    # The other arguments of format! follow the text.
    assert without_names(found) == without_names(ENGINE_TEXTS)


def test_a_warning_of_the_load_generator_is_translated() -> None:
    text = "server gone since second 3 for 2 of 8 connections: Lost connection"
    data = {"code": "server-gone", "text": text, "hint": "look for the cause in the server's error log"}
    (warning,) = read([{"type": "warning", "data": data}]).warnings
    assert warning["text"] == text
    assert (
        translator("ko")(warning["text"]) == "3초부터 커넥션 8개 중 2개의 서버 연결이 끊김: Lost connection"
    )
    assert translator("ko")(warning["hint"]) == "서버의 오류 로그에서 원인을 찾으십시오"
