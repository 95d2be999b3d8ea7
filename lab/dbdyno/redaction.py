"""Passwords in text that is shown or stored: commands, settings, URLs, statements and documents.

`redact` knows the forms in which programs, files and SQL name a password, and replaces its value. A
placeholder, such as `<password>` or `$PASS`, is kept.
"""

from __future__ import annotations

import re

REDACTED = "…"
_LINES_BELOW = 2
# What documents write in place of a password, switches that are called so, and words after an option that
# asks for the password.
_PLACEHOLDER = re.compile(
    r"[\"'`]?(?:<[^<>]{0,60}>|\[[^\[\]]{0,60}\]|"
    r"x{3,40}|X{3,40}|\*{1,40}|\.{2,40}|…|\$[\w{(\[].{0,100}|%\w{1,40}%|"
    r"pass(?:word|wd)?(?:\(.{0,200})?|yourpassword|your[_-]password|비밀번호|密码|パスワード|-.{0,200}|=.{0,200}|[|>&;].{0,200}|"
    r"on|off|true|false|yes|no|null|none|prepare|run|cleanup|and|or|is|as|for|in|of|the|using)?[\"'`,;.)\\]{0,3}",
    re.IGNORECASE,
)
# The end of a name that is one of a password; it is not a longer word such as "passed".
_NAME = (
    r"(?:pass(?:word|wd|phrase|wort)?|pwd|secret|(?:api|access|secret|private|account)[_-]?key|(?:[_-]|auth)token|"
    r"requirepass|masterauth|contraseña|mot de passe|senha|пароль|비밀번호|암호|密码|パスワード)"
    r"(?:[_-]?\d{1,2})?"
)
_TAG = r"<[^<>]{0,200}>"
_QUOTED = r"\"(?:[^\"\\\n]|\\.){0,500}+\"|'(?:[^'\\\n]|\\.|''){0,500}+'|`[^`\n]{0,500}`"
# A value in quotes, or the characters up to a blank, a tag or a bar.
_WORD = rf"(?:{_QUOTED}|[^\s<|\"'`][^\s<|]{{0,500}}+|[\"'`][^\s<|]{{0,500}}+)"
# A shell ends a word where another command begins.
_SHELL_WORD = rf"(?:{_QUOTED}|[^\s<>|;&\"'`,)}}\]][^\s<>|;&\"'`]{{0,500}}+|[\"'`][^\s<|]{{0,500}}+)"
_NAMES = (
    *("pass", "pwd", "secret", "token", "key", "masterauth"),
    *("contraseña", "senha", "пароль", "비밀번호", "암호", "密码", "パスワード"),
)
# Texts of which a form has one, in lower case, which are found faster than the form; the form, and the value.
_FORMS = tuple(
    (hints, re.compile(rf"(?P<before>{before})(?P<secret>{secret})", re.IGNORECASE | re.MULTILINE))
    for hints, before, secret in (
        # user:password@host, with and without a scheme.
        (("://",), r"://[^\s/:@\"'<>]{0,100}:", r"[^\s\"'<>]{1,300}(?=@)"),
        (("@",), r"(?<![\w.:/-])[\w.%-]{1,64}:", r"[^\s/:@\"'<>(]{1,100}(?=@[\w(/\[])"),
        # A line of a file, whose value may have blanks: "password: two words".
        (
            _NAMES,
            rf"^[ \t#>*-]{{0,40}}[\"'`]?[\w.-]{{0,60}}{_NAME}[\"'`]?[*_`]{{0,4}}"
            rf"(?:[ \t]{{0,60}}:[ \t]{{1,60}}|[ \t]{{1,60}}=[ \t]{{1,60}})[*_]{{0,4}}",
            rf"(?:{_QUOTED}|[^\s\"'|<{{\[][^\n|<]{{0,500}}+)",
        ),
        # --password=x, MYSQL_PWD=x, "password": "x", password => 'x', | password | x |, <password>x.
        (
            _NAMES,
            rf"{_NAME}>|{_NAME}[\"'`*_]{{0,4}}(?:\s{{0,4}}(?:{_TAG}\s{{0,4}}){{1,4}}[:=|]?(?:\s{{0,4}}{_TAG}){{0,4}}|"
            rf"[ \t]{{0,60}}(?::=|=>|[:|│]|=(?!=))[ \t]{{0,60}}[*_]{{0,4}}(?:{_TAG}\s{{0,4}}){{0,4}}|"
            rf"[\"']\s{{0,60}}:\s{{0,60}}(?=\"))",
            _SHELL_WORD,
        ),
        # --password x, requirepass x, ENV MYSQL_ROOT_PASSWORD x, the password is x.
        (
            _NAMES,
            rf"(?:--[\w-]{{0,60}}{_NAME}|\b(?:requirepass|masterauth)|\bmysqladmin\b[^|;&\n]{{0,300}}\spassword|"
            rf"\b(?:ENV|ARG|setenv)\s{{1,9}}\w{{0,60}}{_NAME})\s{{1,9}}",
            _WORD,
        ),
        # SQL.
        (
            ("identified",),
            r"\bIDENTIFIED\s{1,9}(?:(?:WITH|VIA)\s{1,9}[\w\"'`]{1,64}\s{1,9})?(?:BY|AS|USING)\s{1,9}(?:PASSWORD\s{0,9}\(?\s{0,9})?",
            r"[\"'](?:[^\"'\\]|\\.|''){0,500}+[\"']?|[^\s;\"'<]{1,300}",
        ),
        (
            ("password",),
            r"\bPASSWORD(?:\s{1,9}FOR\s{1,9}[^\s=]{1,200})?(?:\s{0,9}[=(]\s{0,9}|\s{1,9})(?:PASSWORD\s{0,9}\(\s{0,9})?",
            r"[\"'](?:[^\"'\\]|\\.|''){0,500}+[\"']?",
        ),
        (
            ("replace",),
            r"\b(?:IDENTIFIED|PASSWORD)\b[^;\n]{0,300}\bREPLACE\s{1,9}(?=')",
            r"'(?:[^'\\]|\\.|''){1,500}+'",
        ),
        # Short options of clients: -pSECRET, redis-cli -a SECRET, curl -u user:SECRET.
        (("-p",), r"(?<![^\s\"'`(<>=|])-p", r"(?:[^\s\d\-\"'<][^\s<|]{0,200}+|[\"'][^\"'\n]{1,200}[\"']?)"),
        (
            ("-p",),
            r"(?:\b(?:mysql|mariadb)[\w-]{0,20}\b[^|;&\n]{0,300}|-u\s?[\w.\"'-]{1,64}\s[^|;&\n]{0,300})(?<=\s)-p",
            r"(?!\d{1,5}:)\d[^\s<|]{0,200}+",
        ),
        (
            (" -p ",),
            r"\b(?:sshpass|mongo\w{0,10}|(?:mysql|mariadb)[\w-]{0,20})\b[^|;&\n]{0,300}(?<=\s)-p\s{1,9}",
            _WORD,
        ),
        (("redis-",), r"\bredis-\w{1,20}\b[^|;&\n]{0,300}(?<=\s)-a\s{0,9}", _WORD),
        (
            ("auth",),
            r"^[ \t]{0,9}(?:[\w.:>-]{1,60}>\s{0,9})?AUTH\s{1,9}(?:default\s{1,9})?(?=\S)",
            r"[^\s<|:]{1,200}$",
        ),
        (("-u",), r"(?<!\S)-(?:u|-user)[ =]{0,9}[\"']?[\w.@-]{1,64}[:%]", r"[^\s\"'<|]{1,200}"),
        (
            ("bearer", "authorization"),
            r"\bAuthorization:\s{0,9}\w{1,20}\s{1,9}|\bBearer\s{1,9}",
            r"[\w.~+/=-]{6,2000}",
        ),
        # A line of .pgpass.
        (
            (":5432:", ":6432:", ":3306:", ":*:"),
            r"(?<!\S)[^:\s]{1,200}+:(?:\d{1,5}|\*):[^:\s]{1,64}+:[^:\s]{1,64}+:",
            r"[^\s<|*`]{1,200}",
        ),
    )
)
# A password or its hash, and what follows it in a statement.
_IN_STATEMENT = re.compile(
    r"(\bIDENTIFIED\b.{0,200}?\b(?:BY|AS)|(?<!\w)\w{0,60}PASSWORD(?:\s{1,9}FOR\s{1,9}\S{1,200})?\s{0,9}(?:=|\(|(?=['\"$]))).*",
    re.IGNORECASE | re.DOTALL,
)


def until_password(sql: str) -> str:
    """A statement up to the password in it."""
    return _IN_STATEMENT.sub(rf"\1 {REDACTED}", sql)


def redact(text: str, kinds: list[str] | None = None) -> str:
    """The text with … in place of each password in it, which is added to `found`."""
    lower = text.lower()

    def replacement(match: re.Match[str]) -> str:
        secret = match["secret"]
        if _PLACEHOLDER.fullmatch(secret):
            return match[0]
        quote = secret[0] if secret[0] in "\"'`" else ""
        if kinds is not None:
            kinds.append(secret.strip("\"'`"))
        # A quote that does not end the value belongs to the text around it.
        is_quoted = bool(quote) and len(secret) > 1 and secret.endswith(quote)
        return match["before"] + quote + REDACTED + (quote if is_quoted else "")

    for hints, form in _FORMS:
        if any(hint in lower for hint in hints):
            text = form.sub(replacement, text)
    return text


def redact_document(text: str) -> str:
    """A long text with … in place of each password; only the lines that may have one are searched."""
    lower = text.lower()
    if len(lower) != len(text):
        return redact(text)
    parts: list[str] = []
    end = 0
    for start in sorted(_candidates(lower)):
        if start < end:
            continue
        first = max(end, lower.rfind("\n", 0, start) + 1)
        last = start
        # Pages and files write some values on the lines below their names.
        for _ in range(_LINES_BELOW + 1):
            last = lower.find("\n", last) + 1 or len(lower)
        parts += [text[end:first], redact(text[first:last])]
        end = last
    return "".join([*parts, text[end:]])


def _candidates(lower: str) -> set[int]:
    """Places in the lines that may have a password, at most one of each line and hint."""
    places: set[int] = set()
    for hint in {hint for hints, _ in _FORMS for hint in hints}:
        start = lower.find(hint)
        while start >= 0:
            places.add(start)
            line_end = lower.find("\n", start)
            start = lower.find(hint, line_end) if line_end >= 0 else -1
    return places
