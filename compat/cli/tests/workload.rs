//! Runs plans whose workload is a Lua script, and checks the records. The target is the null server.

#![allow(clippy::disallowed_methods)] // A test starts processes.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use dbdyno_schema::Record;
use dbdyno_schema::record::{End, EndReason, PhaseName};
use serde_json::{Value, json};

/// Writes a script. Each test has its own script, because tests run concurrently.
fn script(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn plan(path: &PathBuf, options: Value) -> Value {
    json!({
        "schema": 1,
        "target": {"protocol": "null"},
        "workload": {"name": "lua", "script": {"path": path, "options": options}},
        "load": {"connections": 3},
        "phases": {"warmup_us": 50_000, "measure_us": 100_000},
        "loading": {"streams": 2},
        "seed": 1,
    })
}

fn compat(command: &str, plan: &Value) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dbdyno-compat"))
        .arg(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("{plan}\n").as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// The last record. Every other line must be a record too.
fn end(output: &Output) -> End {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let records: Vec<Record> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    assert!(matches!(records.first(), Some(Record::Hello(_))), "{}", stderr(output));
    let Some(Record::End(end)) = records.into_iter().last() else { panic!("no end: {text}") };
    *end
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A script whose commands print the options that they read.
const PRINTS_OPTIONS: &str = "
    sysbench.cmdline.options = { size = {'Rows', 10}, fast = {'Faster', true}, level = {'Isolation', 'RR'} }
    local function show(command)
        local o = sysbench.opt
        io.write(table.concat({command, sysbench.tid, o.threads, o.size, tostring(o.fast), o.level, o.db_driver}, ' ') .. '\\n')
    end
    sysbench.cmdline.commands = {
        prepare = { function() show('prepare') end, sysbench.cmdline.PARALLEL_COMMAND },
        prewarm = { function() show('prewarm') end }
    }
    function cleanup() show('cleanup') end
    function thread_init() print('in') con = sysbench.sql.driver():connect() end
    function event() con:query('SELECT 1') con:query('UPDATE t SET a = 1') con:query('BEGIN') end";

#[test]
fn commands_of_the_script_print_to_standard_error() {
    let path = script("told.lua", PRINTS_OPTIONS);
    let plan = plan(&path, json!({"size": 25, "fast": false}));
    for (command, lines) in [
        ("prepare", vec!["prepare 0 2 25 false RR mysql", "prepare 1 2 25 false RR mysql"]),
        ("prewarm", vec!["prewarm 0 3 25 false RR mysql"]),
        ("cleanup", vec!["cleanup 0 3 25 false RR mysql"]),
    ] {
        let output = compat(command, &plan);
        assert_eq!((output.status.code(), end(&output).reason), (Some(0), EndReason::Done), "{command}");
        let text = stderr(&output);
        let mut printed: Vec<&str> = text.lines().collect();
        printed.sort_unstable();
        assert_eq!(printed, lines);
    }
}

#[test]
fn a_run_counts_reads_writes_and_others() {
    let path = script("run.lua", PRINTS_OPTIONS);
    let mut plan = plan(&path, json!({}));
    plan["prewarm"] = json!("scan");
    let output = compat("run", &plan);
    let end = end(&output);
    assert_eq!((output.status.code(), end.reason), (Some(0), EndReason::TimeLimit));
    let counts = &end.phases[&PhaseName::Measure].counts;
    let kinds = [counts.reads, counts.writes, counts.other];
    assert!(counts.events > 100 && kinds.iter().all(|&kind| kind.abs_diff(counts.events) <= 3), "{kinds:?}");
    assert_eq!(stderr(&output), "prewarm 0 3 10 true RR mysql\nin\nin\nin\n");
}

#[test]
fn all_invalid_options_are_reported_together() {
    let path = script("options.lua", PRINTS_OPTIONS);
    let wrong = json!({"size": "ten", "fast": 1, "level": 3, "sizes": 1, "threads": 8});
    for command in ["prepare", "run", "cleanup"] {
        let output = compat(command, &plan(&path, wrong.clone()));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{command}");
        let text = stderr(&output);
        for line in [
            "workload.script.options.fast is 1; the script declares true or false",
            "workload.script.options.level is 3; the script declares a string",
            "workload.script.options.size is \"ten\"; the script declares a number",
            "workload.script.options.sizes is not an option of the script; it declares fast, level, size",
            "workload.script.options.threads is a sysbench option, not one of the script: set it in the",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}

#[test]
fn a_script_that_defines_no_options_reads_them_as_globals() {
    let text = "function prepare() print(rows + 1, level, threads) end";
    let output = compat("prepare", &plan(&script("old.lua", text), json!({"rows": 4, "level": "RC"})));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "5\tRC\t3\n");
}

#[test]
fn a_validator_of_the_script_can_refuse_a_value() {
    let text = "sysbench.cmdline.options = { n = {'A number', 1, sysbench.cmdline.ARG_INT, function(_, value)
            return tonumber(ffi.string(value)) < 5 end} }";
    let path = script("validated.lua", text);
    assert_eq!(compat("prepare", &plan(&path, json!({"n": 4}))).status.code(), Some(0));
    let refused = compat("prepare", &plan(&path, json!({"n": 5})));
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("invalid option: --n=5"), "{}", stderr(&refused));
}

#[test]
fn a_script_that_raises_ends_with_its_message_and_line() {
    let text = "function prepare()\n error('no room') end\nfunction event()\n\n error('enough') end";
    let plans = [
        plan(&script("raises.lua", text), json!({})),
        plan(&script("init.lua", &format!("function init() error('not today') end {text}")), json!({})),
    ];
    for (plan, command, place) in [
        (&plans[0], "prepare", "raises.lua:2: no room"),
        (&plans[0], "run", "raises.lua:5: enough"),
        (&plans[1], "run", "init.lua:1: not today"),
    ] {
        let output = compat(command, plan);
        let end = end(&output);
        assert_eq!((output.status.code(), end.reason), (Some(4), EndReason::ScriptError));
        assert!(end.failure.unwrap().text.contains(place));
    }
}

#[test]
fn missing_commands_and_files_are_reported() {
    let path = script("bare.lua", "function event() end");
    let bare = plan(&path, json!({}));
    for command in ["prepare", "cleanup"] {
        assert_eq!(end(&compat(command, &bare)).reason, EndReason::Done, "{command}");
    }
    let output = compat("prewarm", &bare);
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(end(&output).failure.unwrap().text, "the script has no command prewarm");
    let kept = plan(&script("kept.lua", "function prepare() end"), json!({}));
    assert_eq!(end(&compat("cleanup", &kept)).failure.unwrap().text, "the script has no command cleanup");
    let idle = compat("run", &kept);
    assert_eq!(idle.status.code(), Some(4));
    assert_eq!(end(&idle).failure.unwrap().text, "cannot find the event() function in kept.lua");
    let missing = compat("run", &plan(&PathBuf::from("/nowhere/x.lua"), json!({})));
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("cannot open /nowhere/x.lua"));
}

#[test]
fn a_script_can_restart_an_event_and_require_modules_of_its_folder() {
    script("beside_the_script.lua", "return 'found'");
    let text = "local found, times = require('beside_the_script'), 0
        function event()
            times = times + 1
            if times == 2 then error({errcode = sysbench.error.RESTART_EVENT}) end
            assert(found == 'found')
        end";
    let mut plan = plan(&script("restarts.lua", text), json!({}));
    plan["load"] = json!({"connections": 1});
    plan["phases"] = json!({"warmup_us": 0, "measure_us": 5_000_000, "events": 30});
    let end = end(&compat("run", &plan));
    assert_eq!(end.reason, EndReason::EventLimit);
    let counts = &end.phases[&PhaseName::Measure].counts;
    assert_eq!((counts.events, counts.retries), (30, 1));
}

#[test]
fn a_plan_without_a_script_is_refused() {
    let mut plan = plan(&PathBuf::from("x.lua"), json!({}));
    plan["workload"] = json!({"name": "oltp_read_only"});
    let output = compat("run", &plan);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(stderr(&output).starts_with("dbdyno-compat: dbdyno-compat runs only plans with a Lua script"));
}
