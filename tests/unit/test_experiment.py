"""The experiment file: what it may say, what every error says back, and what overrides change."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.experiment.base import format_cpus, format_duration, parse_cpus, parse_duration_s
from dbdyno.experiment.differences import is_identical
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.family import family_size
from dbdyno.experiment.model import Design, Experiment, OltpWorkload, Stop
from dbdyno.experiment.reading import read, read_bytes

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALLEST = """
[experiment]
name = "smallest"
[[workload]]
name = "oltp_read_only"
[load]
connections = [1]
duration = "2s"
[[variant]]
name = "a"
"""
PAIR = f'{SMALLEST}[[variant]]\nname = "b"\n'


def given(text: str, profile: str | None = None, *assignments: str) -> Experiment:
    return read_bytes(text.encode(), Path("test.toml"), profile, assignments)


def errors(text: str, profile: str | None = None, *assignments: str) -> dict[str, str]:
    """Key -> the whole error as a user reads it."""
    with pytest.raises(InvalidExperiment) as caught:
        given(text, profile, *assignments)
    return {error.key: str(error) for error in caught.value.errors}


@pytest.mark.parametrize("value", ["0", "65", "-inf", "1.5", "[1]", '"many"'])
def test_a_wrong_number_of_workers_has_one_error(value: str) -> None:
    (problem,) = errors(f"{SMALLEST}\n[client]\nworkers = {value}\n").items()
    assert problem[0] == "client.workers"
    assert problem[1].endswith('Or write "auto".')


def bundled(experiment: Experiment) -> OltpWorkload:
    """Its first workload, which is one of the OLTP family."""
    workload = experiment.workloads[0]
    assert isinstance(workload, OltpWorkload)
    return workload


def test_every_default_is_filled_in() -> None:
    experiment = given(SMALLEST)
    workload, design, variant = bundled(experiment), experiment.design, experiment.variants[0]
    assert (workload.tables, workload.table_size, workload.point_selects) == (1, 10_000, 10)
    assert (design.blocks, design.state, design.state_per, design.seed) == (8, "restore", "group", 1)
    assert (variant.server.kind, variant.server.product) == ("local", "mariadb")
    assert experiment.load.warmup_s is None
    assert experiment.load.warmup_allowance_s() == 5.0


def test_an_identical_copy_is_the_baseline_again_and_needs_a_comparison() -> None:
    two = f'{SMALLEST}[[variant]]\nname = "b"\nserver.variables = {{ max_error_count = 65 }}\n'
    experiment = given(two, None, "design.identical_copy=true")
    assert [variant.name for variant in experiment.variants] == ["a", "a again", "b"]
    assert is_identical(experiment, experiment.variants[1])
    assert family_size(experiment) == 1
    assert experiment.design.stop is not None
    told = errors(SMALLEST, None, "design.identical_copy=true")
    assert told["design.identical_copy"].endswith(
        "the experiment has only one variant. Leave out identical_copy, or add a variant."
    )
    clash = two.replace('"b"', '"a again"')
    assert "design.identical_copy" in errors(clash, None, "design.identical_copy=true")


def test_a_resolved_experiment_survives_the_store(tmp_path: Path) -> None:
    for path in EXAMPLES.glob("*.toml"):
        # What is unpacked there is the end-to-end tests' to have.
        unpacked = [f'variant.server.basedir="{tmp_path}"'] if "basedir" in path.read_text() else []
        experiment = read(path, assignments=unpacked)
        # Where a statement stood in a .sql file is forgotten there.
        stored = experiment.model_dump_json()
        assert Experiment.model_validate_json(stored).model_dump_json() == stored


def test_the_example_is_the_one_of_its_seed() -> None:
    experiment = read(EXAMPLES / "mariadb-thread-pool.toml")
    assert experiment.load.connections == (10, 20, 40)
    assert (bundled(experiment).tables, bundled(experiment).table_size) == (10, 5_000_000)
    assert [variant.server.variables["thread_handling"] for variant in experiment.variants] == [
        "one-thread-per-connection",
        "pool-of-threads",
    ]


@pytest.mark.parametrize("profile", [None, "quick", "smoke"])
def test_every_profile_of_the_example_can_be_read(profile: str | None) -> None:
    assert read(EXAMPLES / "mariadb-thread-pool.toml", profile).name == "mariadb-thread-pool"


def test_a_profile_changes_all_variants_and_keeps_their_other_settings() -> None:
    experiment = read(EXAMPLES / "mariadb-thread-pool.toml", "quick")
    assert [variant.server.variables["innodb_buffer_pool_size"] for variant in experiment.variants] == [
        "512M"
    ] * 2
    assert experiment.variants[1].server.variables["thread_handling"] == "pool-of-threads"
    assert (experiment.load.duration_s, experiment.load.warmup_s) == (5.0, 2.0)
    assert bundled(experiment).table_size == 20_000


def test_an_assignment_reaches_one_variant_and_beats_the_profile() -> None:
    experiment = read(
        EXAMPLES / "mariadb-thread-pool.toml",
        "quick",
        [
            "variant[pool-of-threads].server.variables.thread_pool_size=4",
            "load.connections=[3]",
            "client.cpus='0'",
        ],
    )
    assert "thread_pool_size" not in experiment.variants[0].server.variables
    assert experiment.variants[1].server.variables["thread_pool_size"] == 4
    assert experiment.load.connections == (3,)
    assert experiment.client.cpus == "0"


def test_a_word_that_is_no_toml_is_text() -> None:
    experiment = given(
        SMALLEST, None, "variant.server.variables.innodb_buffer_pool_size=8G", "load.duration=500ms"
    )
    assert experiment.variants[0].server.variables == {"innodb_buffer_pool_size": "8G"}
    assert experiment.load.duration_s == 0.5


def test_an_equals_sign_in_a_variants_name_is_not_the_assignment() -> None:
    text = SMALLEST.replace('name = "a"', 'name = "pool=4"')
    experiment = given(text, None, "variant[pool=4].server.cpus='2-3'")
    assert experiment.variants[0].server.cpus == "2-3"


def test_all_errors_are_told_at_once() -> None:
    text = """
    [experiment]
    nam = "x"
    [[workload]]
    name = "oltp_read_wrte"
    tabel_size = 3
    tables = "4"
    [[workload]]
    name = "oltp_read_only"
    table_size = 0
    [load]
    connections = [10, 70_000]
    duration = 30
    transport = "tpc"
    [design]
    state = "restor"
    [client]
    cpus = "3-1"
    [[variant]]
    name = "a"
    server = { cpu = "0", variables = { x = [1] }, config = "nope.cnf" }
    """
    told = errors(text)
    assert told["experiment.nam"] == 'experiment.nam = "x": there is no such key. Did you mean name?'
    assert "Did you mean oltp_read_write? " in told["workload[1].name"]
    assert told["workload[oltp_read_wrte].tabel_size"].endswith("Did you mean table_size?")
    assert told["workload[oltp_read_wrte].tables"].endswith('"4": this must be a whole number.')
    assert told["workload[oltp_read_only].table_size"].endswith("0: must be at least 1.")
    assert told["load.connections[2]"].endswith("70000: must be at most 65_535.")
    assert 'a duration needs a unit: "30s"' in told["load.duration"]
    assert told["load.transport"].endswith("Did you mean tcp?")
    assert told["design.state"].endswith("Did you mean restore?")
    assert "is in descending order" in told["client.cpus"]
    assert told["variant[a].server.cpu"].endswith("Did you mean cpus?")
    assert "this must be text, a number, true or false" in told["variant[a].server.variables.x"]
    assert "there is no such file" in told["variant[a].server.config"]
    assert "experiment.name" in told
    assert len(told) == 14


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        (('name = "a"', 'name = "a"\n[[variant]]\nname = "a"'), "variant[a]", "2 of them have this name"),
        (("connections = [1]", "connections = []"), "load.connections", "this is empty"),
        (("connections = [1]", "connections = [1, 1]"), "load.connections", "1: duplicate"),
        (
            ("connections = [1]", "connections = [1, 2]\nrate = [5]"),
            "load",
            "connections is the maximum number of busy connections",
        ),
        (("connections = [1]", "connections = [true]"), "load.connections[1]", "must be a whole number"),
        (('duration = "2s"', 'duration = "100ms"'), "load.duration", "at least 500ms"),
        (('duration = "2s"', 'duration = "2 days"'), "load.duration", "a number and a unit"),
        (('name = "smallest"', 'name = "../up"'), "experiment.name", "letters, digits"),
        (('name = "a"', 'name = "a"\n[override]\nP07 = " "'), "override.P07", "needs a reason"),
        (
            (
                'name = "a"',
                'name = "a"\nserver = { kind = "remote", url = "mysql://u@h/d" }',
            ),
            "design.state",
            'which has no such state. Write state = "reset" or state = "preserve"',
        ),
        (("[load]", "[laod]"), "laod", "Did you mean load?"),
        (("[[variant]]", "[variant]"), "variant", "Write [[variant]]"),
    ],
)
def test_an_error_names_its_key(change: tuple[str, str], key: str, words: str) -> None:
    told = errors(SMALLEST.replace(*change))
    assert key in told
    assert words in told[key]


def test_an_unknown_profile_lists_those_there_are() -> None:
    told = errors(SMALLEST + '[profile.fast]\n"load.duration" = "1s"\n', "quik")
    assert told["--profile quik"].endswith("it has: fast.")


def test_overrides_that_lead_nowhere() -> None:
    told = errors(SMALLEST, None, "load", "lod.duration=1s", "variant[b].server.cpus='0'", "duration=1s")
    assert "it has no =" in told["--set load"]
    assert "Did you mean load?" in told["lod.duration"]
    assert "there is no variant named b" in told["variant[b].server.cpus"]
    assert "section.key" in told["duration"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidExperiment, match="No such file"):
        read(tmp_path / "nope.toml")
    with pytest.raises(InvalidExperiment, match="Is a directory"):
        read(tmp_path)
    assert "invalid TOML" in next(iter(errors("[experiment\n").values()))
    with pytest.raises(InvalidExperiment, match="invalid TOML"):
        read_bytes(b"\xff\xfe", Path("binary.toml"))


def test_paths_are_meant_from_the_files_folder(tmp_path: Path) -> None:
    (tmp_path / "my.cnf").write_text("[mariadbd]\n")
    file = tmp_path / "experiment.toml"
    file.write_text(SMALLEST + 'server = { config = "my.cnf" }\n')
    assert read(file).variants[0].server.config == tmp_path / "my.cnf"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("30s", 30.0), ("1.5m", 90.0), ("2h", 7200.0), (" 5 s ", 5.0), ("4m30s", 270.0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "m", "30s 2m", "1s1s", "5x", "-3s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="a number and a unit"):
        parse_duration_s(text)


@pytest.mark.parametrize("seconds", [9, 245, 3720, 86_400])
def test_a_printed_duration_can_be_written(seconds: float) -> None:
    assert parse_duration_s(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"), [(9.4, "9 s"), (245, "4 min 05 s"), (3725, "1 h 02 min"), (-1, "0 s")]
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(("text", "numbers"), [("0", {0}), ("0-3", {0, 1, 2, 3}), ("8, 0-1", {0, 1, 8})])
def test_cpu_lists(text: str, numbers: set[int]) -> None:
    assert parse_cpus(text) == numbers
    assert parse_cpus(format_cpus(frozenset(numbers))) == numbers


@pytest.mark.parametrize("text", ["", "x", "1-", "-1", "3-1", "0,", "9999"])
def test_cpu_lists_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"CPU|descending"):
        parse_cpus(text)


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ('kind = "docker"', "a server of kind docker: image is missing"),
        ('kind = "remote"', "a server of kind remote: url is missing"),
        ('kind = "remote", url = "u", cpus = "0"', "cpus is for kind = local or docker"),
        ('image = "mysql:8.4.5"', "a server of kind local: image is for kind = docker"),
        ('kind = "command", url = "u", start = ["s"]', "start and stop need each other"),
        ('kind = "remote", url = "u", set_global = true', "set_global needs variables"),
        ('kind = "docker", image = "i", memory = "lots"', "a size is a number and a letter"),
        ('kind = "remote", url = "u", password_env = "A", password_file = "f"', "exclude each other"),
    ],
)
def test_keys_of_a_server_belong_to_its_kind(server: str, words: str) -> None:
    text = SMALLEST.replace('name = "a"', f'name = "a"\nserver = {{ {server} }}')
    assert any(words in error for error in errors(text).values()), errors(text)


def test_servers_of_every_kind_are_read() -> None:
    kinds = {
        "docker": 'kind = "docker", image = "mysql:8.4.5", product = "mysql", memory = "2G", cpu_limit = 1.5',
        "remote": 'kind = "remote", url = "postgresql://u@h/d", variables = { work_mem = "8MB" }',
        "command": 'kind = "command", url = "mysql://u@h/d", start = ["a"], stop = ["b"], '
        'command_timeout = "5s", start_timeout = "4s"',
    }
    for kind, server in kinds.items():
        text = SMALLEST.replace('name = "a"', f'name = "a"\nserver = {{ {server}, after_trial = ["x"] }}')
        text = text.replace("[load]", '[design]\nstate = "reset"\n[load]')
        experiment = given(text)
        spec = experiment.variants[0].server
        assert spec.kind == kind
        assert spec.hooks().after_trial == ("x",)
        # What is stored is read back as it was.
        # Where a statement stood in a .sql file is forgotten there.
        stored = experiment.model_dump_json()
        assert Experiment.model_validate_json(stored).model_dump_json() == stored
    assert (spec.command_timeout_s, spec.start_timeout_s) == (5.0, 4.0)
    assert spec.states() == ("reset", "preserve", "restart")
    assert given(SMALLEST).variants[0].server.states() == ("restore", "restart", "reset", "preserve")


def test_workloads_with_other_tables_need_reset_where_there_is_one_database() -> None:
    text = SMALLEST.replace("[load]", '[[workload]]\nname = "oltp_insert"\ntables = 3\n[load]')
    text = text.replace('name = "a"', 'name = "a"\nserver = { kind = "remote", url = "mysql://u@h/d" }')
    found = errors(text.replace("[load]", '[design]\nstate = "preserve"\n[load]'))
    assert "the workloads have different tables" in found["design.state"]
    given(text.replace("[load]", '[design]\nstate = "reset"\n[load]'))


def test_stop_has_its_defaults_and_the_units_of_the_file() -> None:
    design = given(PAIR + "[design]\nstop = {}").design
    assert design.stop == Stop(half_width_percent=None, max_blocks=20, max_time_s=1800.0, top_up=True)
    assert design.blocks == 20
    text = 'stop = { when = { half_width = "1.5%" }, max_blocks = 30, max_time = "2h", top_up = false }'
    design = given(f"{PAIR}[design]\n{text}").design
    assert design.stop == Stop(half_width_percent=1.5, max_blocks=30, max_time_s=7200.0, top_up=False)
    assert design == Design.model_validate_json(design.model_dump_json())


def test_a_comparison_without_a_number_of_blocks_stops_when_it_is_decided() -> None:
    assert given(f"{PAIR}server.variables.innodb_buffer_pool_size = 1\n").design.stop == Stop()
    # No verdict about one variant, or about identical ones, can be decided.
    assert given(PAIR).design.stop is given(SMALLEST).design.stop is None


def test_one_variant_cannot_stop_when_it_is_decided() -> None:
    assert "one variant has no comparison" in errors(SMALLEST + "[design]\nstop = {}")["design.stop"]


def test_errors_of_stop_name_its_keys() -> None:
    text = 'stop = { when = "never", max_time = 3, max_block = 3 }'
    told = errors(f"{SMALLEST}[design]\n{text}")
    assert told["design.stop.when"].endswith('Write when = "decided" or when = { half_width = "1%" }.')
    assert told["design.stop.max_time"].endswith('"3s", "3ms" or "3m".')
    assert told["design.stop.max_block"].endswith("Did you mean max_blocks?")
    assert (
        "must be below 100"
        in errors(f'{SMALLEST}[design]\nstop.when.half_width = "100%"')["design.stop.when"]
    )


def test_blocks_and_stop_exclude_each_other_and_the_later_of_two_changes_counts() -> None:
    both = f"{SMALLEST}[design]\nblocks = 4\nstop = {{ max_blocks = 9 }}"
    assert "drop blocks and write stop.max_blocks" in errors(both)["design.blocks"]
    stopping, fixed = f"{PAIR}[design]\nstop = {{ max_blocks = 9 }}", f"{PAIR}[design]\nblocks = 9"
    one = given(stopping, None, "design.blocks=1").design
    assert (one.blocks, one.stop) == (1, None)
    assert given(fixed, None, "design.stop.max_time=1h").design.stop == Stop(max_time_s=3600.0)
    changed = f'{fixed}\n[profile.q]\n"design.stop.max_blocks" = 3'
    assert given(changed, "q").design.blocks == 3
    assert "design.blocks" in errors(f'{changed}\n"design.blocks" = 3', "q")


@pytest.mark.parametrize(
    ("section", "key", "fix"),
    [
        ("load", "threads = [2]", "Its name here is connections."),
        ("load", "blocks = 3", "It belongs in [design]."),
        ("design", 'product = "mysql"', "It belongs in server of [[variant]]."),
        ("client", "table_size = 5", "It belongs in [[workload]]."),
        ("client", "cpuss = 5", "Did you mean cpus?"),
    ],
)
def test_a_key_in_the_wrong_table_names_the_right_one(section: str, key: str, fix: str) -> None:
    text = f"""
    [experiment]
    name = "x"
    [[workload]]
    name = "oltp_read_only"
    [[variant]]
    name = "a"
    [{section}]
    {key}
    """
    assert errors(text)[f"{section}.{key.partition(' ')[0]}"].endswith(f"there is no such key. {fix}")
