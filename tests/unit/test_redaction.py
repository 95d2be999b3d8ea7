"""Passwords in text: the forms in which they are written, and everywhere that a document's text gets to."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.unit.test_read_command import run

from dbdyno.commands.init import init
from dbdyno.problem import Problem
from dbdyno.reading.document import parse
from dbdyno.redaction import redact, redact_document, until_password

SECRET = "hunter2S"
FORMS = (
    "sysbench oltp_read_only --mysql-password={} --threads=4 run",
    "sysbench oltp_read_only --pgsql-password={} --threads=4 run",
    "sysbench oltp_read_only --mysql-password='{} and more' --threads=4 run",
    'mysqlslap --password="{} x" --query="SELECT 1" -c 4',
    "mysql -u root -p{} sbtest",
    "  -uroot -p'{}' \\",
    "mysql -u root -p {}",
    "mysqladmin -u root password {}",
    "mysqladmin -u root password '{}'",
    "PGPASSWORD={} pgbench -c 4 -T 60",
    "MYSQL_PWD={}",
    "export DB_PASS={}",
    "export X_SECRET='{}'",
    "ENV MYSQL_ROOT_PASSWORD {}",
    "docker run -e MYSQL_ROOT_PASSWORD={} mysql:8.4",
    "mysql://user:{}@host:3306/db",
    "postgresql://user:p@ss{}@host/db",
    "root:{}@tcp(127.0.0.1:3306)/db",
    "host=x password={} user=y",
    "CREATE USER a IDENTIFIED BY '{}'",
    "CREATE USER a IDENTIFIED WITH mysql_native_password BY '{}';",
    "ALTER USER a WITH ENCRYPTED PASSWORD '{}'",
    "SET PASSWORD FOR 'a'@'b' = '{}';",
    "SET PASSWORD = PASSWORD('{}')",
    "CHANGE MASTER TO MASTER_PASSWORD='{}', MASTER_PORT=1",
    "ALTER USER a IDENTIFIED BY 'x1' REPLACE '{}'",
    "password: {}",
    "- password: {}",
    "password = {}",
    "password={}",
    "spring.datasource.password={}",
    '{{"user": "a", "password": "{}", "threads": 4}}',
    "'password' => '{}',",
    "<password>{}</password>",
    "redis-cli -h x -a {} ping",
    "requirepass {}",
    "--requirepass {}",
    "sshpass -p {} ssh host",
    "curl -u user:{} http://x",
    "Authorization: Bearer {}",
    "h:5432:db:user:{}",
    "**Password**: {}",
    "Enter password: {}",
    "비밀번호: {}",
    "api_key: {}",
)
# Where a document has it: a heading above a result, a cell, code, prose, pages.
RESULT = "\n| threads | TPS |\n|--|--|\n| 4 | 100 |\n| 8 | 200 |\n"
PLACES = {
    "line": "{}\n",
    "heading": "# a\n" + RESULT + "\n# {}\n" + RESULT,
    "bold": "**{}**\n" + RESULT,
    "code": "```\n$ {}\n```\n" + RESULT,
    "cell": "| server | TPS |\n|--|--|\n| {} | 100 |\n| b | 200 |\n",
    "prose": "The old server did `{}` and is 20 % faster than the new one.\n",
    "setting": "[mysqld]\ninit_connect = {}\nport=1\n",
    "page": "<html><body><h1>{}</h1><table><tr><th>threads</th><th>TPS</th></tr>"
    "<tr><td>4</td><td>100</td></tr></table></body></html>",
    "cell of a page": "<html><table><tr><th>server</th><th>TPS</th></tr>"
    "<tr><td>{}</td><td>100</td></tr></table>",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_password_of_each_form_is_replaced(form: str) -> None:
    text = redact(form.format(SECRET))
    assert SECRET not in text
    assert "…" in text
    assert SECRET not in redact_document(f"before\n{form.format(SECRET)}\nafter\n")


@pytest.mark.parametrize("place", PLACES)
def test_no_output_and_no_stored_file_has_a_password_of_a_document(place: str, tmp_path: Path) -> None:
    """All forms in one place; a failure names the form."""
    paths = []
    for number, form in enumerate(FORMS):
        text = form.format(f"{SECRET}{number}x")
        path = tmp_path / f"document-{number}.md"
        path.write_text(PLACES[place].replace("{}", text) + "\nsysbench oltp_read_only --threads=4 run\n")
        paths.append(path)
    results = tmp_path / "results"
    printed = [run(*paths, output=one, results=results) for one in ("text", "json", "md")]
    texts = {"output": "".join(one.stdout + one.stderr for one in printed)}
    texts |= {str(path): path.read_text() for path in results.rglob("*") if path.is_file()}
    assert len(texts) > 2 * len(FORMS)
    shown = {
        form: path
        for number, form in enumerate(FORMS)
        for path, text in texts.items()
        if f"{SECRET}{number}x" in text
    }
    assert not shown


@pytest.mark.parametrize("text", ["--mysql-password=$PW run", "--mysql-password=<password>", "-p3306:3306"])
def test_what_stands_for_a_password_stays(text: str) -> None:
    assert redact(f"mysql {text}") == f"mysql {text}"


@pytest.mark.parametrize(
    "text",
    [
        "password_history = 0",
        "bypass = on",
        "a passed: 10",
        "mkdir -p a; pgbench -p5432",
        "the password is on a command line",
        "GRANT ALL ON *.* TO 'u'@'%'",
        "[ 10s ] thds: 4 tps: 3.00",
        "git@github.com:a/b",
        "sysbench --mysql-password= run",
        "disconnect_on_expired_password = ON",
    ],
)
def test_other_text_is_not_changed(text: str) -> None:
    assert redact(text) == text


def test_a_line_of_a_file_may_have_a_value_with_blanks() -> None:
    assert redact(f"  password: two {SECRET} words\nport: 1") == "  password: …\nport: 1"


def test_pages_write_names_and_values_in_several_cells_and_lines() -> None:
    page = (
        f"<html><table><tr>\n<td>password</td>\n<td>{SECRET}</td></tr></table>"
        f"<p>&quot;password&quot;: &quot;{SECRET}&quot;"
    )
    document = parse(page.encode(), "a.html")
    assert SECRET not in "".join(document.texts) + document.source
    assert redact_document('{"password":\n  "x y"}') == '{"password":\n  "…"}'


def test_a_statement_is_shown_up_to_its_password() -> None:
    assert until_password("ALTER USER a IDENTIFIED BY 'x' ACCOUNT LOCK") == "ALTER USER a IDENTIFIED BY …"


@pytest.mark.parametrize(
    "unit", ["-p", "password=", "password: ", "://a:", "a:b@", "mysql -p ", "'\\", "identified by '"]
)
def test_a_long_text_takes_a_time_in_proportion(unit: str) -> None:
    began = time.process_time()
    redact_document((unit * 200_000)[:200_000])
    assert time.process_time() - began < 5


def test_init_writes_and_prints_no_password(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = f"sysbench oltp_read_only --mysql-password={SECRET} --mysql-user=u --threads=4 run"
    script = tmp_path / "a.sh"
    script.write_text(
        f"PGPASSWORD={SECRET}\n{call} --foo={SECRET}x --mysql-password='{SECRET}'\n".replace(
            f"--foo={SECRET}x", ""
        )
    )
    for number, origin in enumerate((call, str(script))):
        file = tmp_path / f"{number}.toml"
        init(file, origin, tmp_path)
        assert SECRET not in file.read_text()
        assert "DBDYNO_PASSWORD" in file.read_text()
    with pytest.raises(Problem) as refused:
        init(tmp_path / "x.toml", f"mysql -u root -p{SECRET}", tmp_path)
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err + str(refused.value) + refused.value.fix
