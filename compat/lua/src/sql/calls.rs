//! The functions that interface.lua calls. A function that needs the server yields with a request.
//!
//! A call that yields returns true if the result has rows, no value if it has none, and false if the request failed.

use std::ffi::c_int;
use std::ops::RangeInclusive;

use dbdyno_sysbench::log::Level;
use dbdyno_wire::scripted::{Rows, Type};
use mlua::ffi::{LUA_TBOOLEAN, LUA_TNIL, LUA_TNONE, LUA_TNUMBER, LUA_TSTRING};
use mlua::{Lua, Table};

use super::bulk::BulkInsert;
use super::objects::{ERROR_NONE, StoredParameter};
use super::request::{Answer, ConnectionId, Request, StatementId};
use crate::api::rand::append;
use crate::context::Counter;
use crate::raw::{self, Call, CallResult, CallReturn, LUA_TCDATA, NO_RESULT, ONE_RESULT};

const CONNECTION_CLOSED: &str = "attempt to use an already closed connection";
const ALREADY_CLOSED: &str = "attempt to close an already closed connection";

// Numbers of the types in `sysbench.sql.type` that a script can bind to a parameter.
const INTEGERS: RangeInclusive<i64> = 1..=4;
const DOUBLES: RangeInclusive<i64> = 5..=6;
const STRINGS: RangeInclusive<i64> = 11..=12;

/// Yields with `request`. If the coroutine cannot yield, blocks the thread until the result is available.
#[inline]
pub(crate) fn request(call: &Call, request: Request) -> CallResult {
    let context = call.context();
    if call.is_yieldable() {
        context.sql.request.set(Some(request));
        return Ok(CallReturn::Yield);
    }
    match context.handler.handle(context, request) {
        Answer::Nothing => NO_RESULT,
        Answer::Flag(flag) => {
            call.push_bool(flag);
            ONE_RESULT
        }
    }
}

/// Logs `alert` and returns false to the script.
fn refuse(call: &Call, alert: &str) -> CallResult {
    call.context().host.log(Level::Alert, alert);
    call.push_bool(false);
    ONE_RESULT
}

fn refuse_closed(call: &Call, connection: ConnectionId) -> CallResult {
    call.context().sql.connection(connection).class = ERROR_NONE;
    refuse(call, CONNECTION_CLOSED)
}

/// The connection that argument 1 names, and whether it is open.
#[inline]
fn connection(call: &Call) -> Result<(ConnectionId, bool), String> {
    let objects = call.context().sql.objects.borrow();
    let id = objects.connection_of(call.field(1, 1)).ok_or("not a connection")?;
    Ok((id, objects.connection(id).is_open))
}

/// The statement that argument 1 names.
#[inline]
fn statement(call: &Call) -> Result<StatementId, String> {
    let id = call.context().sql.objects.borrow().statement_of(call.field(1, 1));
    id.ok_or_else(|| "attempt to use a closed statement".to_owned())
}

/// Creates a connection. Returns its number, and the address of its user's context, which `release` needs.
fn create(call: &Call) -> CallResult {
    call.push(call.context().sql.objects.borrow_mut().add_connection().0.into());
    call.push_context();
    Ok(CallReturn::Values(2))
}

fn reconnect(call: &Call) -> CallResult {
    let (connection, open) = connection(call)?;
    if !open {
        call.context().host.log(Level::Alert, ALREADY_CLOSED);
    }
    request(call, Request::Reconnect(connection))
}

fn disconnect(call: &Call) -> CallResult {
    match connection(call)? {
        (connection, true) => request(call, Request::Disconnect(connection)),
        (_, false) => refuse(call, ALREADY_CLOSED),
    }
}

/// Called when Lua's garbage collector frees a connection. The arguments are the address of its user's context, and its
/// number.
fn release(call: &Call) -> CallResult {
    // The collector may call this while `Sql::objects` is borrowed, so use separate cells.
    let sql = &call.context_at(1).sql;
    sql.unreferenced.borrow_mut().push(ConnectionId(call.integer(2) as u32));
    sql.has_unreferenced.set(true);
    NO_RESULT
}

fn query(call: &Call) -> CallResult {
    let (connection, open) = connection(call)?;
    let sql = call.string(2, "query")?;
    if !open {
        return refuse_closed(call, connection);
    }
    let mut objects = call.context().sql.objects.borrow_mut();
    objects.text.clear();
    objects.text.extend_from_slice(sql);
    drop(objects);
    request(call, Request::Query(connection))
}

/// Creates a statement with the text in argument 2, and returns its number.
fn new_statement(call: &Call) -> CallResult {
    let (connection, open) = connection(call)?;
    let sql = call.string(2, "query")?;
    if !open {
        return refuse_closed(call, connection);
    }
    let id = call.context().sql.objects.borrow_mut().add_statement(connection, sql);
    call.push(id.0.into());
    ONE_RESULT
}

#[inline]
fn execute(call: &Call) -> CallResult {
    let id = statement(call)?;
    let objects = call.context().sql.objects.borrow();
    let connection = objects.statement(id).connection;
    let open = objects.connection(connection).is_open;
    drop(objects);
    if open { request(call, Request::Execute(id)) } else { refuse_closed(call, connection) }
}

/// Frees a statement's number, after the server has closed the statement.
fn remove_statement(call: &Call) -> CallResult {
    let id = statement(call)?;
    call.context().sql.objects.borrow_mut().remove_statement(id);
    NO_RESULT
}

/// Arguments: statement, type, length. Returns the parameter's number, or nothing if the type cannot be bound.
fn new_parameter(call: &Call) -> CallResult {
    let (statement, number) = (statement(call)?, call.integer(2));
    let (kind, length_max) = match number {
        number if INTEGERS.contains(&number) => (Type::Int, 0),
        number if DOUBLES.contains(&number) => (Type::Double, 0),
        number if STRINGS.contains(&number) => {
            if !call.is_number(3) {
                return Err("bad argument #2 to 'new' (cannot convert 'nil' to 'int')".into());
            }
            (Type::Text, call.integer(3).max(0) as usize)
        }
        _ => return NO_RESULT,
    };
    let parameter = call.context().sql.objects.borrow_mut().add_parameter(statement, kind, length_max);
    call.push(parameter as f64);
    ONE_RESULT
}

/// Arguments: statement, parameters.
fn bind(call: &Call) -> CallResult {
    let (statement, count) = (statement(call)?, call.argument_count());
    let mut objects = call.context().sql.objects.borrow_mut();
    let index = |argument| objects.parameter_index(call.field(argument, 1));
    let parameters: Option<Vec<u32>> = (2..=count).map(index).collect();
    objects.statement_mut(statement).bind(parameters.ok_or("not a parameter of an open statement")?);
    NO_RESULT
}

/// Arguments: parameter, value.
#[inline]
fn set(call: &Call) -> CallResult {
    let kind = call.kind(2);
    if kind == LUA_TNUMBER && with_parameter(call, |parameter| parameter.set_number(call.number(2)))? {
        return NO_RESULT;
    }
    // Convert before borrowing: Lua's collector may run and call the script.
    let (bytes, wide) = match kind {
        LUA_TNUMBER | LUA_TSTRING => (call.bytes(2), None),
        LUA_TCDATA => (None, call.wide_integer(2)),
        LUA_TBOOLEAN => (None, Some(call.is_true(2).into())),
        _ => (None, None),
    };
    let mismatch = with_parameter(call, |parameter| match (parameter.kind(), bytes, wide) {
        _ if matches!(kind, LUA_TNIL | LUA_TNONE) => {
            parameter.set_null();
            None
        }
        (Type::Text, Some(value), _) => {
            parameter.set_text(|text| text.extend_from_slice(value));
            None
        }
        (_, _, Some(number)) if parameter.set_integer(number) => None,
        (expected, ..) => Some(expected),
    })?;
    mismatch.map_or(NO_RESULT, |expected| Err(mismatch_message(call, expected, 2)))
}

/// Calls `change` with the parameter that argument 1 names.
#[inline]
fn with_parameter<T>(call: &Call, change: impl FnOnce(&mut StoredParameter) -> T) -> Result<T, String> {
    let number = call.field(1, 1);
    match call.context().sql.objects.borrow_mut().parameter_mut(number) {
        Some(parameter) => Ok(change(parameter)),
        None => Err("attempt to set a parameter of a closed statement".into()),
    }
}

#[cold]
fn mismatch_message(call: &Call, expected: Type, argument: c_int) -> String {
    let expected = match expected {
        Type::Int => "int64_t",
        Type::Double => "double",
        Type::Text => "const char *",
    };
    format!("cannot convert '{}' to '{expected}'", call.type_name(argument))
}

/// Arguments: parameter, template.
#[inline]
fn set_random(call: &Call) -> CallResult {
    let template = call.bytes(2);
    with_parameter(call, |parameter| match (parameter.kind(), template) {
        (Type::Text, Some(template)) => {
            parameter.set_text(|text| append(&mut call.context().rng.borrow_mut(), template, text));
            NO_RESULT
        }
        (Type::Text, None) => Err("the template must be a string".into()),
        (Type::Int, _) => Err("Unsupported argument type: 4".into()),
        (Type::Double, _) => Err("Unsupported argument type: 6".into()),
    })?
}

/// Returns class, number, state and message of a connection's last error.
fn last_error(call: &Call) -> CallResult {
    let (connection, _) = connection(call)?;
    let (class, error) = {
        let connection = call.context().sql.connection(connection);
        (connection.class, connection.error.clone())
    };
    call.push(class as f64);
    call.push(error.code.into());
    call.push_bytes(error.state.as_bytes());
    call.push_bytes(error.message.as_bytes());
    Ok(CallReturn::Values(4))
}

fn bulk_init(call: &Call) -> CallResult {
    let (connection, open) = connection(call)?;
    let prefix = call.string(2, "query")?;
    if open {
        call.context().sql.connection(connection).bulk = Some(BulkInsert::new(prefix));
    } else {
        // In sysbench this call succeeds.
        call.context().host.log(Level::Alert, CONNECTION_CLOSED);
    }
    NO_RESULT
}

#[inline]
fn bulk_next(call: &Call) -> CallResult {
    let (connection, open) = connection(call)?;
    let row = call.string(2, "query")?;
    let is_full = {
        let mut objects = call.context().sql.objects.borrow_mut();
        let mut out = std::mem::take(&mut objects.text);
        let is_full = objects.connection_mut(connection).bulk.as_mut().map(|bulk| bulk.add(row, &mut out));
        objects.text = out;
        is_full
    };
    match is_full {
        _ if !open => refuse(call, CONNECTION_CLOSED),
        None => refuse(call, "attempt to call bulk_insert_next() before bulk_insert_init()"),
        Some(true) => request(call, Request::Query(connection)),
        Some(false) => NO_RESULT,
    }
}

fn bulk_done(call: &Call) -> CallResult {
    let (connection, open) = connection(call)?;
    if !open {
        return refuse(call, CONNECTION_CLOSED);
    }
    let has_rows = {
        let mut objects = call.context().sql.objects.borrow_mut();
        let mut out = std::mem::take(&mut objects.text);
        let bulk = objects.connection_mut(connection).bulk.take();
        let has_rows = bulk.is_some_and(|mut bulk| bulk.finish(&mut out));
        objects.text = out;
        has_rows
    };
    if has_rows { request(call, Request::Query(connection)) } else { NO_RESULT }
}

/// Logs argument 1 as a FATAL line.
fn fatal(call: &Call) -> CallResult {
    let text = String::from_utf8_lossy(call.bytes(1).unwrap_or_default()).into_owned();
    call.context().host.log(Level::Fatal, &text);
    NO_RESULT
}

/// Returns the number of rows, the number of columns and the counter of a connection's last result.
fn result_numbers(call: &Call) -> CallResult {
    let (connection, _) = connection(call)?;
    let connection = call.context().sql.connection(connection);
    call.push(connection.row_count as f64);
    call.push(connection.rows.columns.into());
    call.push(Counter::Read as usize as f64);
    Ok(CallReturn::Values(3))
}

/// Returns the next row of a connection's last result as a table, or nil after the last row.
fn fetch_row(call: &Call) -> CallResult {
    let (id, _) = connection(call)?;
    let sql = &call.context().sql;
    // Take the rows out while creating strings: Lua's collector may run and call the script.
    let (live, empty, rows, position) = {
        let mut connection = sql.connection(id);
        let position = connection.next_row;
        // The rows of the next result begin at `rows_end`.
        connection.next_row = connection.rows_end.min(position + 1);
        let empty = connection.row_count == 0 || connection.rows.ends.is_empty();
        let position = (position < connection.rows_end).then_some(position);
        (connection.result_is_live, empty, std::mem::take(&mut connection.rows), position)
    };
    let row = position.and_then(|position| rows.row(position)).filter(|_| live);
    let is_last = row.is_none();
    match row {
        Some(row) => push_row(call, &rows, row),
        None => call.push_nil(),
    }
    sql.connection(id).rows = rows;
    let alert = |text| call.context().host.log(Level::Alert, text);
    if !live {
        alert("attempt to fetch row from an invalid result set");
    } else if is_last && empty {
        alert("attempt to fetch row from an empty result set");
    }
    ONE_RESULT
}

/// Pushes a row as a table of strings. A column that is NULL has no field.
fn push_row(call: &Call, rows: &Rows, row: &[u8]) {
    call.push_table(rows.columns as c_int);
    rows.for_each_column(row, |(position, column)| {
        if let Some(bytes) = column {
            call.push_bytes(bytes);
            call.set_field(position as c_int + 1);
        }
    });
}

/// Returns whether a connection's last statement has further results.
fn more_results(call: &Call) -> CallResult {
    let (connection, _) = connection(call)?;
    call.push_bool(!call.context().sql.connection(connection).result_sets.is_empty());
    ONE_RESULT
}

fn next_result(call: &Call) -> CallResult {
    let (connection, open) = connection(call)?;
    if !open {
        return refuse_closed(call, connection);
    }
    if call.context().sql.connection(connection).result_sets.is_empty() {
        return NO_RESULT;
    }
    request(call, Request::NextResult(connection))
}

/// Frees a connection's last result.
fn free(call: &Call) -> CallResult {
    let (connection, _) = connection(call)?;
    let was_live = {
        let mut connection = call.context().sql.connection(connection);
        if connection.result_sets.is_empty() {
            connection.rows.clear();
        }
        std::mem::replace(&mut connection.result_is_live, false)
    };
    if was_live { NO_RESULT } else { refuse(call, "attempt to free an invalid result set") }
}

/// The functions, by their names in interface.lua.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    macro_rules! functions {
        ($($name:literal => $function:expr),* $(,)?) => {
            $(table.raw_set($name, raw::function(lua, $function)?)?;)*
        };
    }
    functions! {
        "create" => create,
        "connect" => |call| request(call, Request::Connect(connection(call)?.0)),
        "reconnect" => reconnect,
        "disconnect" => disconnect,
        "release" => release,
        "query" => query,
        "new_statement" => new_statement,
        "prepare" => |call| request(call, Request::Prepare(statement(call)?)),
        "execute" => execute,
        "close_statement" => |call| request(call, Request::CloseStatement(statement(call)?)),
        "remove_statement" => remove_statement,
        "new_parameter" => new_parameter,
        "bind" => bind,
        "set" => set,
        "set_random" => set_random,
        "last_error" => last_error,
        "result_numbers" => result_numbers,
        "fetch_row" => fetch_row,
        "free" => free,
        "bulk_init" => bulk_init,
        "bulk_next" => bulk_next,
        "bulk_done" => bulk_done,
        "more_results" => more_results,
        "next_result" => next_result,
        "fatal" => fatal,
        "use_database" => |call| {
            call.context().handler.use_database();
            NO_RESULT
        },
    }
    Ok(table)
}
