//! The interface of sysbench 0.5, which 1.0 includes: globals for the database, the thread and the script.

use mlua::{Function, Lua, Table};

use crate::compile;
use crate::context::Context;
use dbdyno_sysbench::Compat;

const CODE: &str = include_str!("lua/legacy.lua");

/// Installs a stub for each function in [`NAMES`]. The first call of a stub compiles all these functions; a Lua state that
/// never calls a stub thus does not store their code. Stubs use tail calls, so that error messages name the script's line.
const STUBS: &str = "
local sysbench, compile, names = ...
local db, functions = { DB_ERROR_NONE = 0, DB_ERROR_RESTART_TRANSACTION = 1, DB_ERROR_FAILED = 2 }
for name, value in pairs(db) do _G[name] = value end
for name in names:gmatch('%S+') do
   db[name] = function(...)
      functions = functions or compile(sysbench)
      return functions[name](...)
   end
   _G['db_' .. name] = db[name]
end
sysbench.db = db
mysql_table_engine = 'innodb'
myisam_max_rows = 1000000
";

/// The functions of sysbench 0.5, without the prefix `db_`.
const NAMES: &str = "connect disconnect query bulk_insert_init bulk_insert_next bulk_insert_done prepare bind_param \
                     bind_result execute store_results free_results close";

pub(super) fn install(lua: &Lua, context: &Context) -> mlua::Result<()> {
    if context.config.compat != Compat::V1_0 {
        return Ok(());
    }
    let globals = lua.globals();
    globals.set("thread_id", context.tid)?;
    globals.set("test", context.host.script_path())?;
    let compile = lua.create_function(|lua, sysbench: Table| {
        compile::load(lua, "sysbench.compat.lua", CODE.as_bytes())?.call::<Table>(sysbench)
    })?;
    let stubs: Function = compile::load(lua, "sysbench.compat.lua", STUBS.as_bytes())?;
    stubs.call((globals.get::<Table>("sysbench")?, compile, NAMES))
}

#[cfg(test)]
mod tests {
    use crate::testing::printed;

    /// A driver that prints its calls. A statement that contains `restart` or `bad` fails.
    const DRIVER: &str = "
        local function record(name, ...)
           local fields = {name}
           for index = 1, select('#', ...) do fields[#fields + 1] = tostring((select(index, ...))) end
           print(table.concat(fields, ' '))
        end
        local function fail_if_requested(text)
           if text:find('restart') then error({errcode = sysbench.error.RESTART_EVENT}) end
           if text:find('bad') then error('SQL error, errno = 1') end
        end
        local connection = {}
        function connection:query(text)
           record('query', text) fail_if_requested(text)
           if text:find('SELECT') then return {free = function() record('free') end} end
        end
        function connection:bulk_insert_init(text) record('init', text) fail_if_requested(text) end
        function connection:bulk_insert_next(text) record('next', text) fail_if_requested(text) end
        function connection:bulk_insert_done() record('done') end
        function connection:disconnect() record('disconnect') end
        function connection:prepare(text)
           record('prepare', text) fail_if_requested(text)
           return {
              bind_create = function(_, kind, length)
                 record('create', kind, length)
                 return {set = function(_, value) record('set', value) end}
              end,
              bind_param = function(_, ...) record('bind', select('#', ...)) end,
              execute = function() record('execute') fail_if_requested(text) return {free = function() record('free') end} end,
              close = function() record('close') end
           }
        end
        function sysbench.sql.driver()
           return {connect = function() record('connect') return connection end, name = function() return 'mysql' end}
        end
    ";

    fn run(text: &str) -> String {
        printed(&format!("{DRIVER} {text}"))
    }

    #[test]
    fn connection_opens_at_first_use() {
        let text = "print(db_driver) db_query('SELECT 1') print(db_driver) db_query('UPDATE') db_connect()
            db_disconnect() db_disconnect() print(select('#', db_query('x')), sysbench.db.query == db_query)";
        let expected = "nil\nconnect\nquery SELECT 1\nfree\nmysql\nquery UPDATE\ndisconnect\nconnect\nquery x\n0\ttrue\n";
        assert_eq!(run(text), expected);
    }

    #[test]
    fn errors_have_the_messages_of_0_5_and_restarts_pass_through() {
        let text = "db_connect()
            print(pcall(function() db_query('bad') end))
            print(select(2, pcall(db_query, 'restart')).errcode)
            print(pcall(function() db_bulk_insert_next('bad') end))
            print((select(2, pcall(db_query)):gsub('^.-bad', 'bad')))
            print((select(2, pcall(db_prepare, 'bad')):gsub('^.-db_', 'db_')))";
        let output = run(text);
        let lines: Vec<_> =
            output.lines().filter(|line| !line.starts_with("query") && !line.starts_with("next")).collect();
        assert!(
            lines[1].starts_with("false\ttest.lua:") && lines[1].ends_with(": db_query() failed"),
            "{output}"
        );
        assert_eq!(lines[2], "1");
        assert!(
            lines[3].starts_with("false\ttest.lua:") && lines[3].ends_with(": db_bulk_insert_next() failed"),
            "{output}"
        );
        assert_eq!(lines[4], "bad argument #1 to 'db_query' (string expected, got no value)");
        assert_eq!(lines[6], "db_prepare() failed");
    }

    #[test]
    fn bulk_inserts_call_the_driver() {
        let text = "db_bulk_insert_init('INSERT') db_bulk_insert_next('(1)') db_bulk_insert_next('(2)') db_bulk_insert_done()";
        assert_eq!(run(text), "connect\ninit INSERT\nnext (1)\nnext (2)\ndone\n");
    }

    #[test]
    fn bound_values_are_read_at_each_execution() {
        // BIGINT is 4 and CHAR 11.
        let text = "
            local values = {1, 'abc'}
            local statement = db_prepare('INSERT')
            db_bind_param(statement, values)
            values[1] = 10 values[2] = 'xyz' local rows = db_execute(statement)
            db_store_results(rows) db_free_results(rows) db_free_results(rows)
            values[2] = 'longer' db_execute(statement)
            values[1] = '12' values[2] = nil db_execute(statement)
            values[2] = 5 db_execute(statement)
            db_bind_result(statement, {0}) db_close(statement) db_close(statement)";
        let bound = |length: usize| format!("create 4 nil\ncreate 11 {length}\nbind 2\n");
        let expected = format!(
            "connect\nprepare INSERT\n{}set 10\nset xyz\nexecute\nfree\n{}set 10\nset longer\nexecute\n\
             set 12\nset longer\nexecute\nset 12\nset 5\nexecute\nclose\n",
            bound(3),
            bound(6)
        );
        assert_eq!(run(text), expected);
    }

    #[test]
    fn handles_are_typed_userdata() {
        let text = "
            local statement = db_prepare('SELECT') local rows = db_execute(statement)
            print(type(statement), type(rows))
            print(pcall(db_execute, rows)) print(pcall(db_store_results)) print(pcall(db_bind_param, statement, 5))
            print(pcall(db_bind_param, statement, {{}}))
            print(pcall(db_execute, newproxy()))
            db_close(statement) print(pcall(db_execute, statement))";
        let output = run(text);
        let lines: Vec<_> = output.lines().skip(3).collect();
        assert_eq!(lines[0], "userdata\tuserdata");
        for (line, end) in lines[1..].iter().zip([
            "(sysbench.stmt expected, got userdata)",
            "(sysbench.rs expected, got no value)",
            "table was expected",
            "Unsupported variable type: table",
            "(sysbench.stmt expected, got userdata)",
        ]) {
            assert!(line.starts_with("false\t") && line.ends_with(end), "{line}");
        }
        assert!(lines.last().unwrap().ends_with("the statement is closed"), "{output}");
    }
}
