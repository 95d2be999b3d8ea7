//! What Lua calls. Each function notes a request and leaves its coroutine, or does at once what needs no server.
//!
//! What a call returns after a request is for `interface.lua` alone: nothing where there are no rows, true where there
//! are, false where it failed.

use std::rc::Rc;

use mlua::{Function, Lua, Table};

use super::arguments::{CLOSED, connection, refuse, statement, text, want};
use super::book::ERROR_NONE;
use super::bulk::Bulk;
use super::parameters::{Bind, NewParameter, Set, SetRandom};
use super::request::{ConnectionId, Request};
use super::results::{FetchRow, Free, MoreResults, NextResult, ResultNumbers};
use crate::Context;
use crate::chunks;
use crate::front::Level;
use crate::program::{Compat, Program};
use crate::raw::{self, Call, NOTHING, ONE, Pushed, Raw, Returns};

/// A new connection: its number, for `connect`, and whose it is, for `abandon`.
struct Create;

impl Raw for Create {
    fn call(call: &Call) -> Returns {
        call.push(call.context().sql.book.borrow_mut().add_connection().0.into());
        call.push_owner();
        Ok(Pushed::Values(2))
    }
}

struct Connect;

impl Raw for Connect {
    fn call(call: &Call) -> Returns {
        want(call, Request::Connect(connection(call)?.0))
    }
}

struct Reconnect;

impl Raw for Reconnect {
    fn call(call: &Call) -> Returns {
        let (connection, open) = connection(call)?;
        if !open {
            call.context().front.log(Level::Alert, "attempt to close an already closed connection");
        }
        want(call, Request::Reconnect(connection))
    }
}

struct Disconnect;

impl Raw for Disconnect {
    fn call(call: &Call) -> Returns {
        match connection(call)? {
            (connection, true) => want(call, Request::Disconnect(connection)),
            (_, false) => refuse(call, "attempt to close an already closed connection"),
        }
    }
}

/// A connection that the script has forgotten.
struct Abandon;

impl Raw for Abandon {
    fn call(call: &Call) -> Returns {
        // The collector may call this from anywhere, in the middle of everything: nothing else is touched.
        let sql = &call.owner(1).sql;
        sql.abandoned.borrow_mut().push(ConnectionId(call.integer(2) as u32));
        sql.has_abandoned.set(true);
        NOTHING
    }
}

struct Query;

impl Raw for Query {
    fn call(call: &Call) -> Returns {
        let (connection, open) = connection(call)?;
        let sql = text(call, 2, "query")?;
        {
            let mut book = call.context().sql.book.borrow_mut();
            if open {
                book.text.clear();
                book.text.extend_from_slice(sql);
            } else {
                book.connection_mut(connection).class = ERROR_NONE;
            }
        }
        if open { want(call, Request::Query(connection)) } else { refuse(call, CLOSED) }
    }
}

/// Argument 2 is the text. Returns the statement's number first.
struct NewStatement;

impl Raw for NewStatement {
    fn call(call: &Call) -> Returns {
        let (connection, open) = connection(call)?;
        let sql = text(call, 2, "query")?;
        if !open {
            call.context().sql.book.borrow_mut().connection_mut(connection).class = ERROR_NONE;
            return refuse(call, CLOSED);
        }
        let added = call.context().sql.book.borrow_mut().add_statement(connection, sql);
        call.push(added.0.into());
        ONE
    }
}

struct Prepare;

impl Raw for Prepare {
    fn call(call: &Call) -> Returns {
        want(call, Request::Prepare(statement(call)?))
    }
}

struct Execute;

impl Raw for Execute {
    #[inline]
    fn call(call: &Call) -> Returns {
        let found = statement(call)?;
        let sql = &call.context().sql;
        let open = {
            let mut book = sql.book.borrow_mut();
            let connection = book.statement(found).connection;
            let connection = book.connection_mut(connection);
            if !connection.open {
                connection.class = ERROR_NONE;
            }
            connection.open
        };
        if open { want(call, Request::Execute(found)) } else { refuse(call, CLOSED) }
    }
}

struct Forget;

impl Raw for Forget {
    fn call(call: &Call) -> Returns {
        want(call, Request::Forget(statement(call)?))
    }
}

/// After [`Forget`]: the number is free.
struct Remove;

impl Raw for Remove {
    fn call(call: &Call) -> Returns {
        let found = statement(call)?;
        call.context().sql.book.borrow_mut().remove_statement(found);
        NOTHING
    }
}

/// Of a connection's last error: class, number, state, words.
struct LastError;

impl Raw for LastError {
    fn call(call: &Call) -> Returns {
        let (connection, _) = connection(call)?;
        let (class, error) = {
            let book = call.context().sql.book.borrow();
            let found = book.connection(connection);
            (found.class, found.error.clone())
        };
        call.push(class as f64);
        call.push(error.code.into());
        call.push_bytes(error.state.as_bytes());
        call.push_bytes(error.message.as_bytes());
        Ok(Pushed::Values(4))
    }
}

struct BulkInit;

impl Raw for BulkInit {
    fn call(call: &Call) -> Returns {
        let (connection, open) = connection(call)?;
        let prefix = text(call, 2, "query")?;
        if !open {
            // sysbench takes it for done.
            call.context().front.log(Level::Alert, CLOSED);
            return NOTHING;
        }
        call.context().sql.book.borrow_mut().connection_mut(connection).bulk = Some(Bulk::new(prefix));
        NOTHING
    }
}

struct BulkNext;

impl Raw for BulkNext {
    #[inline]
    fn call(call: &Call) -> Returns {
        let (connection, open) = connection(call)?;
        let row = text(call, 2, "query")?;
        let full = {
            let mut book = call.context().sql.book.borrow_mut();
            let mut out = std::mem::take(&mut book.text);
            let full = book.connection_mut(connection).bulk.as_mut().map(|bulk| bulk.add(row, &mut out));
            book.text = out;
            full
        };
        match full {
            _ if !open => refuse(call, CLOSED),
            None => refuse(call, "attempt to call bulk_insert_next() before bulk_insert_init()"),
            Some(true) => want(call, Request::Query(connection)),
            Some(false) => NOTHING,
        }
    }
}

struct BulkDone;

impl Raw for BulkDone {
    fn call(call: &Call) -> Returns {
        let (connection, open) = connection(call)?;
        if !open {
            return refuse(call, CLOSED);
        }
        let rest = {
            let mut book = call.context().sql.book.borrow_mut();
            let mut out = std::mem::take(&mut book.text);
            let bulk = book.connection_mut(connection).bulk.take();
            let rest = bulk.is_some_and(|mut bulk| bulk.finish(&mut out));
            book.text = out;
            rest
        };
        if rest { want(call, Request::Query(connection)) } else { NOTHING }
    }
}

/// The script uses a driver.
struct Used;

impl Raw for Used {
    fn call(call: &Call) -> Returns {
        call.context().world.database_is_used();
        NOTHING
    }
}

/// Logs a fatal line.
struct Fatal;

impl Raw for Fatal {
    fn call(call: &Call) -> Returns {
        let text = String::from_utf8_lossy(call.bytes(1).unwrap_or_default()).into_owned();
        call.context().front.log(Level::Fatal, &text);
        NOTHING
    }
}

/// What interface.lua has returned.
#[derive(Clone)]
struct Interface {
    /// Makes `sysbench.sql` of one more user of the state.
    of_user: Function,
    /// What all users find in `ffi.C`.
    exported: Table,
}

/// Functions of exported.lua that sysbench 1.0 declares to scripts.
const EXPORTED: &str = "db_create db_destroy db_connection_create db_connection_close db_connection_reconnect \
    db_connection_free db_bulk_insert_init db_bulk_insert_next db_bulk_insert_done db_query db_fetch_row db_prepare \
    db_bind_param db_bind_result db_execute db_close db_free_results sb_lua_set_test_args sb_print_test_options";
/// And those of 1.1.
const EXPORTED_NEWER: &str = " db_more_results db_next_result db_stmt_next_result";

pub(crate) fn install(lua: &Lua, context: &Rc<Context>) -> mlua::Result<()> {
    let known = lua.app_data_ref::<Interface>().map(|interface| interface.of_user.clone());
    let of_user = match known {
        Some(of_user) => of_user,
        None => {
            let made = interface(lua, &context.program)?;
            lua.set_app_data(made.clone());
            made.of_user
        }
    };
    let sql: Table = of_user.call(())?;
    lua.globals().get::<Table>("sysbench")?.set("sql", sql)
}

/// What `ffi.C` has of this, for all users of the state.
pub(crate) fn exported(lua: &Lua) -> Table {
    let interface = lua.app_data_ref::<Interface>().expect("`install` comes first");
    interface.exported.clone()
}

fn interface(lua: &Lua, program: &Program) -> mlua::Result<Interface> {
    let raw = lua.create_table()?;
    macro_rules! functions {
        ($($name:literal => $function:ty),* $(,)?) => {
            $(raw.raw_set($name, raw::function::<$function>(lua)?)?;)*
        };
    }
    functions! {
        "create" => Create, "connect" => Connect, "reconnect" => Reconnect, "disconnect" => Disconnect,
        "abandon" => Abandon, "query" => Query, "new_statement" => NewStatement, "prepare" => Prepare,
        "execute" => Execute, "forget" => Forget, "remove" => Remove, "new_parameter" => NewParameter,
        "bind" => Bind, "set" => Set, "set_random" => SetRandom, "last_error" => LastError,
        "result_numbers" => ResultNumbers, "fetch_row" => FetchRow, "free" => Free, "bulk_init" => BulkInit,
        "bulk_next" => BulkNext, "bulk_done" => BulkDone, "fatal" => Fatal, "used" => Used,
        "more_results" => MoreResults, "next_result" => NextResult,
    }
    let newer = program.compat == Compat::V11;
    raw.raw_set("driver", program.database.driver.as_str())?;
    raw.raw_set("fault", program.database.fault.as_deref())?;
    raw.raw_set("newer", newer)?;
    raw.raw_set("exported", [EXPORTED, if newer { EXPORTED_NEWER } else { "" }].concat())?;
    let compile = |lua: &Lua, ()| chunks::load(lua, "sysbench.sql.lua", include_bytes!("exported.lua"));
    raw.raw_set("compile_exported", lua.create_function(compile)?)?;
    let chunk = chunks::load(lua, "sysbench.sql.lua", include_bytes!("interface.lua"))?;
    let (of_user, exported) = chunk.call(raw)?;
    Ok(Interface { of_user, exported })
}
