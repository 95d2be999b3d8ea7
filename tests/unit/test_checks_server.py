"""P03 and P04 on descriptions of servers, as a server gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.finding import Finding
from dbdyno.servers.server import Description, Server

IDENTITY = {"datadir": "/data/a", "socket": "/run/a.sock", "port": 3310, "pid": 71, "start_unix_us": 1_000}


def description(
    version: str = "10.11.1",
    variables: dict[str, str] | None = None,
    declared: dict[str, str] | None = None,
    **identity: Any,
) -> Description:
    return Description("mariadb", version, {**IDENTITY, **identity}, declared or {}, {}, variables or {})


def context(now: Description, variables: dict[str, Any] | None = None, **known: Any) -> Context:
    variants = (
        Variant(name="A", server=ServerSpec(variables=variables or {})),
        Variant(name="B", server=ServerSpec()),
    )
    experiment = Experiment(
        name="test",
        workloads=(OltpWorkload(name="oltp_point_select"),),
        load=Load(connections=(1,), duration_s=1.0),
        variants=variants,
    )
    return Context(experiment, variant=variants[0], description=now, **known)


def ready(code: str, given: Context) -> list[Finding]:
    return checks.run(Moment.READY, given, [code])


def test_a_first_start_is_compared_with_nobody() -> None:
    assert ready("P03", context(description())) == []


def test_another_start_of_the_same_server_is_the_same_server() -> None:
    assert (
        ready("P03", context(description(pid=72, start_unix_us=2_000), first_description=description())) == []
    )


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (description(datadir="/data/b"), "datadir was /data/a and is /data/b"),
        (description(port=3306), "port was 3310 and is 3306"),
        (description(socket="/run/b.sock"), "socket was /run/a.sock and is /run/b.sock"),
        (description(version="10.11.2"), "version was 10.11.1 and is 10.11.2"),
    ],
)
def test_another_server_is_a_stop(now: Description, words: str) -> None:
    (finding,) = ready("P03", context(now, first_description=description()))
    assert (finding.level, finding.subject) == ("stop", "A")
    assert words in finding.text


PLACE: dict[str, Any] = {"datadir": "/data/b", "socket": "/run/b.sock", "port": 3311}


def test_a_server_may_move_to_the_place_of_its_group() -> None:
    """It then says itself that it is there; a directory's closing slash is no other place."""
    moved = description(variables={"datadir": "/data/b/", "socket": "/run/b.sock", "port": "3311"}, **PLACE)
    assert ready("P03", replace(context(moved, first_description=description()), slot=PLACE)) == []
    postgresql = description(variables={"data_directory": "/data/b", "port": "3311"}, **PLACE)
    assert ready("P03", replace(context(postgresql, first_description=description()), slot=PLACE)) == []


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (description(), "datadir is /data/a instead of /data/b"),
        (description(**{**PLACE, "port": 3310}), "port is 3310 instead of 3311"),
        (description(variables={"datadir": "/data/a/"}, **PLACE), "datadir is /data/a/ instead of /data/b"),
        (description(variables={"data_directory": "/data/a"}, **PLACE), "datadir is /data/a instead"),
        (description(variables={"port": "3310"}, **PLACE), "port is 3310 instead of 3311"),
        (description(variables={"socket": "/run/a.sock"}, **PLACE), "socket is /run/a.sock instead"),
    ],
)
def test_a_server_in_the_place_of_another_group_is_a_stop(now: Description, words: str) -> None:
    (finding,) = ready("P03", replace(context(now, first_description=description()), slot=PLACE))
    assert (finding.level, finding.subject) == ("stop", "A")
    assert words in finding.text


def test_a_server_that_moves_is_still_known_by_its_uuid() -> None:
    now, first = description(server_uuid="2", **PLACE), description(server_uuid="1")
    (finding,) = ready("P03", replace(context(now, first_description=first), slot=PLACE))
    assert finding.level == "stop"
    assert "server_uuid was 1 and is 2" in finding.text
    assert "datadir" not in finding.text


def test_a_server_that_moves_inside_a_group_is_a_stop() -> None:
    inside = replace(context(description(**PLACE)), slot=PLACE, server=cast(Server, Answering(description())))
    (finding,) = checks.run(Moment.AFTER_GROUP, inside, ["P03"])
    assert "datadir was /data/b and is /data/a" in finding.text


def own(**commands: tuple[str, ...]) -> ServerSpec:
    return ServerSpec.model_validate({"kind": "command", "url": "mysql://u@h/db", **commands})


class Answering:
    """A server as far as P03 asks it."""

    def __init__(self, now: Description) -> None:
        self.now = now

    def describe(self) -> Description:
        return self.now


@pytest.mark.parametrize(
    ("state", "spec", "same"),
    [
        ("preserve", ServerSpec(kind="remote", url="mysql://u@h/db"), False),
        ("preserve", own(), False),
        ("restart", own(start=("up",), stop=("down",)), True),
        ("restore", own(restore=("zfs", "rollback")), True),
        ("preserve", own(restore=("zfs", "rollback")), False),
    ],
)
def test_who_is_restarted_by_the_users_own_commands_may_start_anew(
    state: Any, spec: ServerSpec, same: bool
) -> None:
    """Between groups commands may restart the server; within a group nobody may."""
    first, now = description(started_unix_s=1_700_000_000), description(started_unix_s=1_700_000_060)
    given = context(now, first_description=first)
    experiment = given.experiment.model_copy(
        update={
            "design": Design(state=state),
            "variants": (Variant(name="A", server=spec), given.experiment.variants[1]),
        }
    )
    found = ready("P03", replace(given, experiment=experiment, variant=experiment.variants[0]))
    assert [finding.level for finding in found] == ([] if same else ["stop"])
    inside = replace(
        given, experiment=experiment, variant=experiment.variants[0], server=cast(Server, Answering(now))
    )
    (stop,) = checks.run(Moment.AFTER_GROUP, replace(inside, description=first), ["P03"])
    assert "started_unix_s was 1700000000 and is 1700000060" in stop.text


def test_a_start_time_that_one_of_the_two_descriptions_lacks_says_nothing() -> None:
    told, untold = description(started_unix_s=1_700_000_000), description()
    assert ready("P03", context(told, first_description=untold)) == []
    assert ready("P03", context(untold, first_description=told)) == []


def test_one_process_cannot_be_two_variants() -> None:
    (finding,) = ready("P03", context(description(datadir="/data/c"), peers={"B": description()}))
    assert finding.level == "stop"
    assert "the same server process answers for A and B (pid 71)" in finding.text
    # A new start, or a process id that was given out again, is another process.
    assert ready("P03", context(description(start_unix_us=9), peers={"B": description()})) == []


def test_two_databases_of_one_server_share_its_cache() -> None:
    def at(url: str) -> Description:
        return description(url=url, hostname="h", started_unix_s=100, pid=None, start_unix_us=None)

    (finding,) = ready("P03", context(at("mysql://u@h/a"), peers={"B": at("mysql://u@h/b")}))
    assert (finding.level, finding.evidence) == ("warn", {"databases": ["a", "b"]})
    assert "are two databases of one server (a, b)" in finding.text
    # One database under two names.
    (finding,) = ready("P03", context(at("mysql://u@h/a"), peers={"B": at("mysql://u@127.0.0.1/a")}))
    assert finding.level == "stop"
    assert "lead to the same server" in finding.text


def test_the_same_software_has_one_version() -> None:
    peers = {"B": description(version="10.6.1", pid=5)}
    (finding,) = ready("P03", context(description(), peers=peers))
    assert finding.evidence == {"version": {"A": "10.11.1", "B": "10.6.1"}}


def test_settings_in_effect_have_no_finding() -> None:
    now = description(variables={"innodb_buffer_pool_size": "8589934592", "skip_name_resolve": "ON"})
    assert ready("P04", context(now, {"innodb-buffer-pool-size": "8G", "skip_name_resolve": True})) == []


def test_options_are_effective_in_any_spelling() -> None:
    variables = {"log_bin": "ON", "key_buffer_size": "8388608", "slow_query_log": "OFF"}
    declared = {"log-bin": "shop-bin", "key_buffer": "8M", "disable-slow-query-log": True}
    assert ready("P04", context(description(variables=variables), declared)) == []


def test_an_option_that_the_server_may_ignore_is_a_note() -> None:
    (finding,) = ready("P04", context(description(), {"loose-innodb-other": 4}))
    assert finding.level == "note"
    assert "does not know loose-innodb-other and ignores it" in finding.text


def test_an_option_of_a_file_without_a_value_is_the_servers_choice() -> None:
    variables = {"myisam_recover_options": "DEFAULT"}
    assert (
        ready("P04", context(description(variables=variables, declared={"myisam_recover_options": ""}))) == []
    )
    assert len(ready("P04", context(description(variables=variables), {"myisam_recover_options": ""}))) == 1


def test_an_adjusted_setting_is_a_stop_with_both_values_and_the_rule() -> None:
    now = description(variables={"thread_stack": "131072"})
    (finding,) = ready("P04", context(now, {"thread_stack": 100000}))
    assert finding.level == "stop"
    assert "thread_stack is 131072, adjusted by the server from the declared 100000" in finding.text
    assert "131072 to 67108864, a multiple of 1024" in finding.text


def test_an_adjustment_nobody_knows_points_to_the_log() -> None:
    now = description(variables={"lock_wait_timeout": "86400"})
    (finding,) = ready("P04", context(now, {"lock_wait_timeout": 100000}))
    assert finding.level == "stop"
    assert finding.evidence["rule"] is None
    assert "error log" in finding.text


def test_a_rounded_size_is_a_note() -> None:
    now = description(variables={"key_buffer_size": "999424"})
    (finding,) = ready("P04", context(now, {"key_buffer_size": 1000001}))
    assert (finding.level, finding.evidence["rule"]) == ("note", "rounded to a multiple of 4096")


def test_a_variable_the_server_does_not_have_is_a_stop() -> None:
    (finding,) = ready("P04", context(description(), {"innodb_buffer_pool_instances": 4}))
    assert finding.level == "stop"
    assert "the running server has no variable innodb_buffer_pool_instances" in finding.text
    assert "ignores it" in finding.text


def test_a_skipping_option_shows_in_the_variable_it_switches_off() -> None:
    off, on = ({"slow_query_log": value} for value in ("OFF", "ON"))
    assert ready("P04", context(description(variables=off), {"skip-slow-query-log": True})) == []
    assert len(ready("P04", context(description(variables=on), {"skip-slow-query-log": True}))) == 1


def test_what_a_configuration_file_declares_is_read_back_too() -> None:
    now = description(declared={"max_connections": "5"}, variables={"max_connections": "10"})
    (finding,) = ready("P04", context(now))
    assert finding.evidence == {
        "variable": "max_connections",
        "declared": "5",
        "effective": "10",
        "rule": "10 to 100000, and lower if open_files_limit is too small",
    }
