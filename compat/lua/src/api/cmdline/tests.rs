//! Options and commands as scripts see them.

use std::sync::Arc;

use super::*;
use crate::raw::ReturnValue;
use crate::task::Progress;
use crate::testing::{RecordingHost, printed, state};

fn host_with(argv: &[&str]) -> Arc<RecordingHost> {
    let argv: Vec<_> = std::iter::once("sysbench").chain(argv.iter().copied()).map(str::to_owned).collect();
    Arc::new(RecordingHost { argv, command: Some("run".into()), ..RecordingHost::default() })
}

fn declare(options: &str) -> Result<Option<Vec<OptionDefinition>>, OptionsError> {
    let state = state(&format!("sysbench.cmdline.options = {options}"), &host_with(&[]));
    declared_options(state.lua())
}

#[test]
fn script_sees_the_command_line() {
    let host = host_with(&["x.lua", "run", "--threads=2"]);
    let text = "local c = sysbench.cmdline
        print(c.argv[0], c.argv[1], c.argv[2], c.argv[3], #c.argv, c.command, c.script_path, c.options, c.commands)
        print(c.ARG_NULL, c.ARG_BOOL, c.ARG_INT, c.ARG_SIZE, c.ARG_DOUBLE, c.ARG_STRING, c.ARG_LIST, c.ARG_FILE, c.ARG_MAX)
        print(c.PARALLEL_COMMAND)";
    state(text, &host);
    let expected =
        "sysbench\tx.lua\trun\t--threads=2\t3\trun\ttest.lua\tnil\tnil\n0\t1\t2\t3\t4\t5\t6\t7\t8\ntrue\n";
    assert_eq!(*host.printed.lock().unwrap(), expected);
}

#[test]
fn option_types_are_inferred_or_declared() {
    let found = declare(
        "{ zed = {'Z', 5}, ['with-dash'] = {'d', 'abc'}, flag = {'f', true}, list = {'l', {'a', 'b', 3}}, none = {'n'},
           int = {'i', 7, sysbench.cmdline.ARG_INT}, size = {'s', '16M', sysbench.cmdline.ARG_SIZE},
           third = {'t', 1 / 3}, off = {'o', false}, empty = {'e', ''}, nothing = {'x', {}},
           named = {'q', 5, 'SB_ARG_TYPE_INT'}, file = {'y', nil, sysbench.cmdline.ARG_FILE} }",
    );
    let found = found.unwrap().unwrap();
    let short: Vec<_> = found
        .iter()
        .map(|one| (one.name.as_str(), one.kind, one.default.as_deref().unwrap_or("-")))
        .collect();
    let expected = [
        ("empty", Kind::String, ""),
        ("file", Kind::File, "-"),
        ("flag", Kind::Bool, "on"),
        ("int", Kind::Int, "7"),
        ("list", Kind::List, "a,b,3"),
        ("named", Kind::Int, "5"),
        ("none", Kind::String, "-"),
        ("nothing", Kind::List, ""),
        ("off", Kind::Bool, "off"),
        ("size", Kind::Size, "16M"),
        ("third", Kind::Double, "0.33333333333333"),
        ("with-dash", Kind::String, "abc"),
        ("zed", Kind::Double, "5"),
    ];
    assert_eq!(short, expected);
    assert_eq!(found[2].help.as_deref(), Some("f"));
    assert_eq!(declare("nil").unwrap(), None);
    assert_eq!(declare("{}").unwrap(), Some(vec![]));
}

#[test]
fn invalid_declarations_get_sysbenchs_messages() {
    let script = |options: &str| match declare(options) {
        Err(OptionsError::Script(text)) => text,
        other => panic!("{options}: {other:?}"),
    };
    for (options, expected) in [
        ("5", "wrong type for sysbench.cmdline.options: number"),
        ("{5}", "wrong table structure in sysbench.cmdline.options"),
        ("{a = 5}", "wrong table structure in sysbench.cmdline.options"),
        ("{[1] = {'x', 1}}", "wrong table structure in sysbench.cmdline.options"),
        ("{a = {}}", "nil description for option a"),
        ("{a = {5}}", "cannot convert 'number' to 'const char *'"),
        ("{a = {'x', {1}, sysbench.cmdline.ARG_LIST}}", "wrong type for list option a"),
        ("{a = {'x', {{}}}}", "invalid value (table) at index 1 in table for 'concat'"),
        ("{a = {'x', print}}", "cannot convert 'function' to 'const char *'"),
        ("{a = {'x', 1, 'INT'}}", "cannot convert 'string' to 'sb_arg_type_t'"),
        ("{a = {'x', 1, nil, 5}}", "cannot convert 'number' to 'bool (*)()'"),
    ] {
        assert_eq!(script(options), expected, "{options}");
    }
    for (number, expected) in [("99", "99"), ("0", "0"), ("-1", "-1"), ("8", "8")] {
        let refused = declare(&format!("{{a = {{'x', 1, {number}}}}}")).unwrap_err();
        assert_eq!(refused, OptionsError::Usage(format!("Unknown argument type: {expected}")));
    }
}

#[test]
fn each_option_has_its_own_validator() {
    let text = "
        local function accept(which, good)
           return function(name, value)
              print(which, type(name), ffi.string(name), ffi.string(value)) return ffi.string(value) == good
           end
        end
        sysbench.cmdline.options = { aaa = {'A', 'x', nil, accept('A', '5')}, ['b-b'] = {'B', 'y', nil, accept('B', 'good')},
           c = {'C', 'z'}, raises = {'R', 'r', nil, function() error('no') end}, nothing = {'N', '', nil, function() end} }";
    let run = |argv: &[&str]| {
        let host = host_with(argv);
        let state = state(text, &host);
        let result = read(state.lua(), state.context());
        (result, host.printed.lock().unwrap().clone())
    };
    let (fine, output) = run(&["x.lua", "run", "--aaa=5", "--b_b=good", "--c=z", "aaa=4"]);
    assert_eq!((fine, output.as_str()), (Ok(()), "A\tcdata\taaa\t5\nB\tcdata\tb_b\tgood\n"));
    let refused = |argument: &str| run(&["x.lua", argument]).0.unwrap_err();
    assert_eq!(refused("--b-b=bad"), OptionsError::Usage("invalid option: --b-b=bad".into()));
    assert_eq!(refused("--aaa"), OptionsError::Usage("invalid option: --aaa".into()));
    assert_eq!(refused("--nothing=1"), OptionsError::Usage("invalid option: --nothing=1".into()));
    assert_eq!(refused("--unknown"), OptionsError::Usage("invalid option: --unknown".into()));
    assert!(matches!(refused("--raises=1"), OptionsError::Script(text) if text == "test.lua:8: no"));
}

#[test]
fn script_without_options_accepts_unknown_options() {
    let host = host_with(&["x.lua", "--unknown"]);
    let state = state("", &host);
    assert_eq!(read(state.lua(), state.context()), Ok(()));
    assert_eq!(*host.declared.lock().unwrap(), None);
}

#[test]
fn commands_are_called_by_name() {
    let text = "local c = sysbench.cmdline
        print(c.command_defined('a'), c.command_parallel('a'), c.call_command('a'))
        c.commands = { a = {function() print('A') return 5 end}, f = {function() return false end},
           p = {function() end, c.PARALLEL_COMMAND}, odd = {print, 1}, empty = {}, number = {7} }
        for _, name in ipairs {'a', 'f', 'p', 'odd', 'empty', 'nowhere'} do
           print(name, c.command_defined(name), c.command_parallel(name), c.call_command(name))
        end
        c.commands = 5 print(c.command_defined('a'))";
    let expected = "false\tfalse\tfalse\nA\na\ttrue\tfalse\ttrue\nf\ttrue\tfalse\tfalse\np\ttrue\ttrue\ttrue\n\nodd\ttrue\tfalse\ttrue
empty\tfalse\tfalse\tfalse\nnowhere\tfalse\tfalse\tfalse\nfalse\n";
    assert_eq!(printed(text), expected);
}

#[test]
fn commands_run_as_coroutines() {
    let text = "local c = sysbench.cmdline
        c.commands = { good = {function() return 0 end}, none = {function() end}, bad = {function() return false end},
           both = {function() return true end, true}, number = {7}, raises = {function() error({}) end} }";
    let state = state(text, &host_with(&[]));
    let call = |name: &str| {
        let (mut task, parallel) = state.command(name).unwrap().unwrap();
        (task.start(&[]), parallel)
    };
    assert!(matches!(call("good"), (Progress::Returned(ReturnValue::True), false)));
    assert!(matches!(call("none"), (Progress::Returned(ReturnValue::True), false)));
    assert!(matches!(call("bad"), (Progress::Returned(ReturnValue::False), false)));
    assert!(matches!(call("both"), (Progress::Returned(ReturnValue::True), true)));
    let Progress::Failed(error) = call("number").0 else { panic!("a number is no function") };
    let text = error.to_string();
    assert!(text.starts_with("[string \"sysbench.cmdline.lua\"]:"), "{text}");
    assert!(text.ends_with("attempt to call a number value"), "{text}");
    let Progress::Failed(error) = call("raises").0 else { panic!("an error is an error") };
    assert_eq!(error.to_string(), "(not a string)");
    assert!(state.command("nowhere").unwrap().is_none());
}

#[test]
fn script_can_print_its_options() {
    let host = host_with(&[]);
    let text = "sysbench.cmdline.options = { b = {'B', 1}, a = {'A'} } sysbench.cmdline.print_test_options()
        sysbench.cmdline.options = 5 print(pcall(sysbench.cmdline.print_test_options))";
    state(text, &host);
    let output = host.printed.lock().unwrap().clone();
    let mut lines = output.lines();
    assert!(lines.next().unwrap().contains("\"a\"") && output.contains("help: Some(\"B\")"), "{output}");
    assert_eq!(lines.next(), Some("false\twrong type for sysbench.cmdline.options: number"));
}
