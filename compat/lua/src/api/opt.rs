//! `sysbench.opt`: the values of all options. For scripts of sysbench 0.5, options are also global variables.

use dbdyno_sysbench::option_definition::Value;
use mlua::{IntoLua, Lua, Table};

use super::cmdline;
use dbdyno_sysbench::Compat;

/// Sets `sysbench.opt`. sysbench 1.0 treats a script that declares no options as a script of 0.5: each option also becomes
/// a global variable, unless a global function has the same name.
pub fn fill(lua: &Lua, compat: Compat, options: &[(String, Value)]) -> mlua::Result<()> {
    let globals = lua.globals();
    let sysbench = globals.get::<Table>("sysbench")?;
    let as_globals = compat == Compat::V1_0 && cmdline::declares_no_options(lua)?;
    let opt = lua.create_table_with_capacity(0, options.len())?;
    for (name, value) in options {
        let name = name.replace('-', "_");
        opt.raw_set(name.as_str(), to_lua(lua, value)?)?;
        // Raw access, because a script may forbid undeclared globals by a metatable.
        if as_globals && !globals.raw_get::<mlua::Value>(name.as_str())?.is_function() {
            globals.raw_set(name, to_lua(lua, value)?)?;
        }
    }
    sysbench.set("opt", opt)
}

fn to_lua(lua: &Lua, value: &Value) -> mlua::Result<mlua::Value> {
    Ok(match value {
        Value::Bool(value) => mlua::Value::Boolean(*value),
        Value::Int(value) => mlua::Value::Number(f64::from(*value)),
        Value::Size(value) => mlua::Value::Number(*value as f64),
        Value::Double(value) => mlua::Value::Number(*value),
        Value::String(value) => value.as_deref().unwrap_or_default().into_lua(lua)?,
        Value::List(values) => lua.create_sequence_from(values.iter().map(String::as_str))?.into_lua(lua)?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::{RecordingHost, state};

    /// Runs `script`, sets the options, runs `code_afterwards` and returns the printed text.
    fn print_after_fill(compat: Compat, script: &str, code_afterwards: &str) -> String {
        let host = Arc::new(RecordingHost { compat, ..RecordingHost::default() });
        let state = state(script, &host);
        let options = [
            ("table-size", Value::Double(100.0)),
            ("threads", Value::Int(4)),
            ("memory", Value::Size(1 << 40)),
            ("debug", Value::Bool(false)),
            ("mysql-host", Value::List(vec!["a".into(), "b".into()])),
            ("mysql_password", Value::String(None)),
            ("report_checkpoints", Value::List(vec![])),
            ("foo", Value::String(Some("x=y".into()))),
            ("tostring", Value::String(Some("no".into()))),
        ];
        let options: Vec<_> = options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        fill(state.lua(), compat, &options).unwrap();
        state.lua().load(code_afterwards).exec().unwrap();
        host.printed.lock().unwrap().clone()
    }

    #[test]
    fn options_have_lua_types() {
        let text = "local o = sysbench.opt
            print(o.table_size, o.threads, o.memory, o.debug, o.mysql_host[2], #o.mysql_host, o.mysql_password == '')
            print(#o.report_checkpoints, o.foo, o.nothing, o['table-size'])
            o.threads = 5 o.new = 1 print(o.threads, o.new)
            setmetatable(o, {__index = function(_, name) return name .. '!' end}) print(o.missing)";
        let expected = "100\t4\t1099511627776\tfalse\tb\t2\ttrue\n0\tx=y\tnil\tnil\n5\t1\nmissing!\n";
        assert_eq!(print_after_fill(Compat::V1_0, "", text), expected);
    }

    #[test]
    fn options_are_globals_if_the_script_declares_none() {
        // As in sysbench, the option `debug` replaces Lua's table `debug`, and the option `tostring` does not replace the function.
        let text = "print(table_size, threads, debug, mysql_host[1], foo, type(tostring), thread_id, test)
            print(mysql_table_engine, myisam_max_rows, DB_ERROR_RESTART_TRANSACTION)";
        let expected = "100\t4\tfalse\ta\tx=y\tfunction\t0\ttest.lua\ninnodb\t1000000\t1\n";
        assert_eq!(print_after_fill(Compat::V1_0, "", text), expected);
    }

    #[test]
    fn a_script_may_forbid_undeclared_globals() {
        let strict = "setmetatable(_G, {__index = function(_, name) error('undeclared ' .. name) end,
            __newindex = function(_, name) error('undeclared ' .. name) end})";
        let output =
            print_after_fill(Compat::V1_0, strict, "print(threads, pcall(function() return nothing end))");
        assert_eq!(output, "4\tfalse\ttest.lua:1: undeclared nothing\n");
    }

    #[test]
    fn options_are_not_globals_if_the_script_declares_options() {
        let text = "print(table_size, threads, foo, type(debug), sysbench.opt.foo)";
        let expected = "nil\tnil\tnil\ttable\tx=y\n";
        assert_eq!(print_after_fill(Compat::V1_0, "sysbench.cmdline.options = {}", text), expected);
        assert_eq!(print_after_fill(Compat::V1_1, "", text), expected);
        assert_eq!(
            print_after_fill(Compat::V1_1, "", "print(thread_id, test, db_query, sb_rand)"),
            "nil\tnil\tnil\tnil\n"
        );
    }
}
