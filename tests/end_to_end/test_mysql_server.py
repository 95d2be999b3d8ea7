"""The MySQL that tests run against is what they think it is, and never outlives them."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pymysql
import pytest
from tests.end_to_end.mysql_server import DATABASE, USER, MySQLServer, Start

PROJECT = Path(__file__).parents[2]


def test_it_is_mysql_and_not_root(mysql: MySQLServer) -> None:
    variables = mysql.variables()
    assert tuple(int(part) for part in variables["version"].split("-")[0].split(".")[:2]) >= (9, 7)
    assert "MariaDB" not in variables["version"]
    assert psutil.Process(mysql.pid).uids().effective != 0
    plugins = dict(mysql.sql("SELECT user, plugin FROM mysql.user WHERE user <> ''"))
    assert plugins[USER] == plugins["root"] == "caching_sha2_password"


def test_it_listens_on_loopback_only(mysql: MySQLServer) -> None:
    listening = [
        connection.laddr
        for connection in psutil.Process(mysql.pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert [(address.ip, address.port) for address in listening] == [("127.0.0.1", mysql.port)]


def test_root_has_a_password(mysql: MySQLServer) -> None:
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        pymysql.connect(unix_socket=str(mysql.socket), user="root", password="")


def test_options_restart_and_end(start_mysql: Start) -> None:
    server = start_mysql("optioned", "--plugin-load-add=thread_pool.so", "--thread_pool_size=2")
    assert server.variables()["thread_pool_size"] == "2"
    server.sql(f"CREATE TABLE {DATABASE}.kept (id INT PRIMARY KEY)")
    server.stop()
    server.start()
    assert server.sql(f"SELECT COUNT(*) FROM {DATABASE}.kept") == [(0,)]
    server.close()
    assert not server.directory.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


def test_it_dies_with_a_killed_test(tmp_path: Path, results: Path) -> None:
    script = tmp_path / "hold.py"
    script.write_text(
        "import pathlib, sys, time\n"
        "from dbdyno.servers.workspace import Workspace\n"
        "from tests.end_to_end.mysql_server import starting\n"
        "with starting(Workspace.open(pathlib.Path(sys.argv[1]))) as start:\n"
        "    print(start('held').pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, str(script), str(results / "held")],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{PROJECT / 'lab'}:{PROJECT}", "PATH": "/usr/sbin:/usr/bin:/bin"},
    )
    assert holder.stdout is not None
    server = psutil.Process(int(holder.stdout.readline()))
    try:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        deadline = time.monotonic() + 30
        while server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, "the server outlived its test"
            time.sleep(0.05)
    except psutil.NoSuchProcess:
        pass
