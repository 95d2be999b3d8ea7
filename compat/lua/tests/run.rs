//! Scripts on the event loop, against a server in memory.

mod common;

use common::Run;
use dbdyno_lua::Stat;
use dbdyno_lua::run::{CommandKind, LuaFailure, Report};
use dbdyno_schema::record::EndReason;

/// Opens a connection in each user, and counts rows with it.
const CONNECTED: &str = "
    function thread_init() con = sysbench.sql.driver():connect() end
    local function rows() return con:query('SELECT 1').nrows end ";

#[test]
fn script_functions_run_in_order() {
    let text = "
        print('chunk', sysbench.tid, sysbench.opt)
        function init() print('init', sysbench.opt.threads) end
        function thread_init(id) print('thread_init', id, sysbench.tid) end
        function event(id) print('event', id) end
        function thread_done(id) print('thread_done', id) end
        function done() print('done') end";
    let result = Run { threads: 1, events: Some(2), ..Run::default() }.run(text);
    let lines = "chunk\t0\tnil\ninit\t1\nchunk\t0\tnil\nthread_init\t0\t0\nevent\t0\nevent\t0\nthread_done\t0\ndone\n";
    assert_eq!(result.printed(), lines);
    assert_eq!((result.end.reason, result.records.counts().events), (EndReason::EventLimit, 2));
}

#[test]
fn statements_are_counted_before_during_and_after_the_events() {
    let text = "
        function thread_init() con = sysbench.sql.driver():connect() con:query('SELECT 1') con:query('SET @a = 1') end
        function event() con:query('SELECT 1') con:query('UPDATE t SET a = 1') end
        function thread_done() con:query('SELECT 1') end";
    let result = Run::default().run(text);
    let counts = result.records.counts();
    assert_eq!((counts.events, counts.reads, counts.writes, counts.other), (10, 2 + 10 + 2, 10, 2));
}

#[test]
fn event_that_returns_true_ends_its_user_uncounted() {
    for value in ["0", "{}", "true", "'x'"] {
        let result = Run::default()
            .run(&format!("n = 0 function event() n = n + 1 if n == 3 then return {value} end end"));
        assert_eq!(result.records.counts().events, 4, "{value}");
    }
    for value in ["nil", "false"] {
        assert_eq!(
            Run::default().run(&format!("function event() return {value} end")).records.counts().events,
            10
        );
    }
}

#[test]
fn script_error_ends_the_run_with_its_line_number() {
    let text = "function event(id)\n if id == 1 then error('no more') end end
        function thread_done(id) print('thread_done', id) end function done() print('done') end";
    let result = Run { events: None, ..Run::default() }.run(text);
    assert_eq!(result.end.reason, EndReason::ScriptError);
    assert_eq!(result.logged(), ["Fatal: `thread_run' function failed: test.lua:2: no more"]);
    assert_eq!(result.printed(), "thread_done\t0\ndone\n");
    let result = Run::default().run("function event() end function thread_init() error({}) end");
    assert_eq!(result.logged(), ["Fatal: `thread_init' function failed: (not a string)"]);
}

#[test]
fn restart_event_error_repeats_the_event() {
    let text = "
        local tries = 0
        function sysbench.hooks.before_restart_event(err) print(err.errcode, err.word) end
        function event()
           tries = tries + 1
           if tries < 3 then error({errcode = sysbench.error.RESTART_EVENT, word = 'again'}) end
        end";
    let result = Run { threads: 1, events: Some(1), ..Run::default() }.run(text);
    assert_eq!(result.printed(), "1\tagain\n1\tagain\n");
    assert_eq!((result.records.counts().events, result.records.counts().retries), (1, 2));
}

#[test]
fn statements_work_in_coroutines_metamethods_and_callbacks() {
    let text = format!(
        "{CONNECTED}
        function event()
           assert(pcall(rows) and select(2, xpcall(rows, print)) == 1)
           -- Left through coroutines of the script's own.
           local inner = coroutine.wrap(function() coroutine.yield(rows() + 1) return coroutine.wrap(rows)() + 5 end)
           assert(inner() == 2 and inner() == 6)
           local failing = coroutine.create(function() rows() error('inside') end)
           local fine, words = coroutine.resume(failing)
           assert(not fine and words:find('inside') and coroutine.status(failing) == 'dead')
           -- Metamethods and iterators.
           local asking = setmetatable({{}}, {{__index = rows, __call = rows, __eq = rows}})
           assert(asking.x == 1 and asking() == 1)
           for count in rows do assert(count == 1) break end
           -- Inside functions of Lua's own library, which cannot be left.
           assert((('aaa'):gsub('a', function() return rows() end)) == '111')
           local list = {{3, 1, 2}}
           table.sort(list, function(a, b) rows() return a < b end)
           assert(table.concat(list) == '123')
           string.gsub('x', 'x', function()
              local other = sysbench.sql.driver():connect()
              local st = other:prepare('SELECT ?')
              local p = st:bind_create(sysbench.sql.type.INT)
              st:bind_param(p) p:set(1)
              assert(st:execute().nrows == 1)
              st:close() other:disconnect()
           end)
        end"
    );
    let result = Run::default().run(&text);
    assert_eq!((result.logged(), result.records.counts().events), (vec![], 10));
    let result = Run { threads: 3, workers: 1, one_thread_per_user: Some(true), ..Run::default() }.run(&text);
    assert_eq!((result.logged(), result.records.counts().events), (vec![], 10));
}

#[test]
fn parameters_accept_values_of_their_type() {
    let text = "
        local con = sysbench.sql.driver():connect()
        local st = con:prepare('INSERT INTO t VALUES (?, ?, ?)')
        local types = sysbench.sql.type
        local n, f, s = st:bind_create(types.INT), st:bind_create(types.DOUBLE), st:bind_create(types.CHAR, 3)
        st:bind_param(n, f, s)
        for _, value in ipairs {1, 1.5, true, 2^53, 5LL, 7ULL} do n:set(value) f:set(value) st:execute() end
        n:set(nil) f:set(nil) s:set(nil) st:execute()
        s:set('abcdef') s:set(12) s:set_rand_str('##@@')
        print(pcall(n.set, n, 'x')) print(pcall(n.set, n, {})) print(pcall(s.set, s, {}))
        print(pcall(n.set_rand_str, n, '#')) print(pcall(st.bind_create, st, 99))
        st:close()
        print(pcall(n.set, n, 1)) print(pcall(st.execute, st))
        function event() end";
    let (_, host) = Run::default().load(text).unwrap();
    let expected = "false\tcannot convert 'string' to 'int64_t'\nfalse\tcannot convert 'table' to 'int64_t'\n\
        false\tcannot convert 'table' to 'const char *'\nfalse\tUnsupported argument type: 4\n\
        false\tUnsupported argument type: 99\nfalse\tattempt to set a parameter of a closed statement\n\
        false\t[string \"sysbench.sql.lua\"]:N: attempt to use a closed statement\n";
    let printed = host.printed.lock().unwrap().clone();
    let line = printed.split("lua\"]:").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
    assert_eq!(printed.replace(&format!(":{line}:"), ":N:"), expected);
}

#[test]
fn custom_thread_run_counts_its_events() {
    let text = "
        local C = ffi.C
        function thread_run(id)
           while C.sb_more_events(id) do
              C.sb_event_start(id) con:query('SELECT 1') C.sb_event_stop(id)
           end
           print('left')
        end
        function event() end
        function thread_init() con = sysbench.sql.driver():connect() end";
    let result = Run::default().run(text);
    assert_eq!((result.records.counts().events, result.records.counts().reads), (10, 10));
    assert_eq!(result.printed(), "left\nleft\n");
}

#[test]
fn unscheduled_events_count_and_abandoned_events_do_not() {
    let text = "
        local C = ffi.C
        function event() end
        function thread_run(id)
           for i = 1, 3 do C.sb_event_start(id) C.sb_event_stop(id) C.sb_event_stop(id) end
           C.sb_more_events(id) C.sb_more_events(id) C.sb_event_start(id) C.sb_event_start(id) C.sb_event_stop(id)
        end";
    assert_eq!(Run::default().run(text).records.counts().events, 8);
}

#[test]
fn counts_of_the_script_are_in_the_records() {
    let text = "
        ffi.cdef[[void sb_counter_inc(int, sb_counter_type);]]
        function event() for type = 0, 5 do ffi.C.sb_counter_inc(sysbench.tid, type) end end";
    let result = Run::default().run(text);
    let counts = result.records.counts();
    assert_eq!((counts.reads, counts.writes, counts.other, counts.reconnects), (10, 10, 10, 10));
    assert_eq!(counts.errors.values().sum::<u64>(), 10);
}

#[test]
fn blocking_a_shared_thread_is_reported() {
    let sleeping = "ffi.cdef[[int usleep(unsigned);]] function event() ffi.C.usleep(120000) end";
    let run =
        |one_thread_per_user| Run { events: Some(4), one_thread_per_user, ..Run::default() }.run(sleeping);
    let shared = run(Some(false));
    assert!(shared.records.warnings().contains(&"script-blocks"), "{:?}", shared.records.warnings());
    // The declaration of usleep alone chooses threads.
    let own = run(None);
    assert!(!own.records.warnings().contains(&"script-blocks"), "{:?}", own.records.warnings());
    let busy = "function event() local end_at = os.clock() + 0.15 while os.clock() < end_at do end end";
    let result = Run { events: Some(2), ..Run::default() }.run(busy);
    assert!(result.records.warnings().contains(&"script-blocks"), "{:?}", result.records.warnings());
}

#[test]
fn commands_run_in_the_main_state_or_in_all_users() {
    let text = "
        sysbench.cmdline.commands = {
           alone = {function() print('alone', sysbench.tid) end},
           all = {function() con = sysbench.sql.driver():connect() con:query('SELECT 1') print('all', sysbench.tid) end,
                  sysbench.cmdline.PARALLEL_COMMAND},
           refusing = {function() return false end},
           failing = {function() error('here') end, sysbench.cmdline.PARALLEL_COMMAND},
        }
        function cleanup() print('cleanup') end";
    let (main, host) = Run { threads: 3, ..Run::default() }.load(text).unwrap();
    let printed = || {
        let text = std::mem::take(&mut *host.printed.lock().unwrap());
        let mut lines: Vec<String> = text.lines().map(Into::into).collect();
        lines.sort();
        lines
    };
    assert_eq!(main.command("alone"), Some(CommandKind::Serial));
    assert_eq!((main.command("all"), main.command("cleanup")), (Some(CommandKind::Parallel), None));
    main.run_command("alone").unwrap();
    assert_eq!(printed(), ["alone\t0"]);
    main.run_command("all").unwrap();
    assert_eq!(printed(), ["all\t0", "all\t1", "all\t2"]);
    main.call("cleanup").unwrap();
    assert_eq!(printed(), ["cleanup"]);
    assert_eq!(main.run_command("refusing"), Err(LuaFailure::ReturnedFalse));
    let failure = main.run_command("failing").unwrap_err().to_string();
    assert_eq!(failure, "`sysbench.cmdline.call_command' function failed: test.lua:7: here");
    assert_eq!(main.call("help"), Err(LuaFailure::MissingFunction("help".into())));
}

#[test]
fn each_kind_of_report_has_its_own_state() {
    let text = "
        function event() end
        function sysbench.hooks.report_intermediate(stat) print('interval', sysbench.tid, stat.events, sysbench.opt.threads) end
        function sysbench.hooks.report_cumulative(stat) print('all', sysbench.tid, stat.events) end";
    let (main, host) = Run::default().load(text).unwrap();
    assert!(main.has_report(Report::Interval) && main.has_report(Report::Final));
    let stat = |events| Stat { events, ..Stat::default() };
    main.report(Report::Interval, &stat(1)).unwrap();
    main.report(Report::Checkpoint, &stat(2)).unwrap();
    main.report(Report::Final, &stat(3)).unwrap();
    assert_eq!(*host.printed.lock().unwrap(), "interval\t2\t1\t2\nall\t2\t2\nall\t0\t3\n");
}

#[test]
fn the_chunk_runs_once_for_each_kind_of_report() {
    let text = "print(sysbench.tid, sysbench.opt) function event() end";
    let chunks = |interval_ms, marks_ms: &[u64]| {
        let run =
            Run { threads: 1, events: Some(1), interval_ms, marks_ms: marks_ms.to_vec(), ..Run::default() };
        let result = run.run(text);
        assert_eq!(result.end.reason, EndReason::EventLimit);
        result.printed().replace("\tnil\n", " ")
    };
    assert_eq!(chunks(0, &[]), "0 0 ");
    assert_eq!(chunks(1000, &[]), "0 1 0 ");
    assert_eq!(chunks(0, &[2000, 3000]), "0 1 0 ");
    assert_eq!(chunks(1000, &[2000]), "0 1 1 0 ");
    let failing = "if sysbench.tid == 1 then error('no reports') end function event() end";
    let result = Run { threads: 1, interval_ms: 1000, ..Run::default() }.run(failing);
    assert_eq!(result.end.reason, EndReason::ScriptError);
    assert_eq!(result.logged(), ["Fatal: test.lua:1: no reports"]);
}

#[test]
fn c_functions_behave_like_methods() {
    // So many users share a state.
    let text = "
        local C = ffi.C
        local function query(text) return C.db_query(con, text, #text) end
        function thread_init()
           con = C.db_connection_create(C.db_create(nil))
           st = C.db_prepare(con, 'UPDATE t SET a = ?', 18)
           value, bind = ffi.new('int32_t[1]', 5), ffi.new('sql_bind[1]')
           bind[0].type, bind[0].buffer = sysbench.sql.type.INT, value
           assert(C.db_bind_param(st, bind, 1) == 0)
        end
        function event(id)
           local rs = query('SELECT 1')
           local row = C.db_fetch_row(rs)
           assert(rs.nrows == 1 and row ~= nil and row.values[0].ptr == nil and C.db_fetch_row(rs) == nil)
           assert(C.db_free_results(rs) == 0 and C.db_free_results(rs) == 1 and C.db_free_results(query('SET @a = 1')) == 1)
           assert(C.db_execute(st) == nil and con.error == 0)
           value[0] = id st:execute()
           assert(not pcall(function() return C.db_more_results end))
        end
        function thread_done() assert(C.db_close(st) == 0 and C.db_connection_close(con) == 0) C.db_connection_free(con) end";
    let result = Run { threads: 20, events: Some(100), ..Run::default() }.run(text);
    assert_eq!(result.end.reason, EndReason::EventLimit, "{:?}", result.logged());
    let counts = result.records.counts();
    assert_eq!((counts.reads, counts.writes, counts.other), (100, 200, 100));
}

#[test]
fn unreferenced_connections_are_closed() {
    let text = "
        function event() local con = sysbench.sql.driver():connect() con:query('SELECT 1') con = nil collectgarbage() end";
    let result = Run { events: Some(5000), ..Run::default() }.run(text);
    assert_eq!((result.logged(), result.records.counts().reads), (vec![], 5000));
}

#[test]
fn script_without_event_function_fails() {
    let result = Run::default().run("x = 1");
    assert_eq!(result.logged(), ["Fatal: cannot find the event() function in test.lua"]);
    assert_eq!((result.end.reason, result.records.0.len()), (EndReason::ScriptError, 0));
    let failure = Run::default().load("x = = 1").err().unwrap();
    assert_eq!(failure.to_string(), "test.lua:1: unexpected symbol near '='");
}
