//! What Lua calls to read results.

use std::ffi::c_int;

use dbdyno_wire::scripted::Rows;

use super::arguments::{CLOSED, connection, refuse, want};
use super::book::ERROR_NONE;
use super::request::Request;
use crate::Counter;
use crate::front::Level;
use crate::raw::{Call, NOTHING, ONE, Pushed, Raw, Returns};

/// Of a connection's last result: rows, columns, the counter it was counted under.
pub(super) struct ResultNumbers;

impl Raw for ResultNumbers {
    fn call(call: &Call) -> Returns {
        let (connection, _) = connection(call)?;
        let book = call.context().sql.book.borrow();
        let found = book.connection(connection);
        call.push(found.row_count as f64);
        call.push(found.rows.columns.into());
        call.push(Counter::Read as usize as f64);
        Ok(Pushed::Values(3))
    }
}

/// The next row of a connection's last result as a table; nil at its end.
pub(super) struct FetchRow;

impl Raw for FetchRow {
    fn call(call: &Call) -> Returns {
        let (connection, _) = connection(call)?;
        let sql = &call.context().sql;
        // The rows are taken out while strings are made of them: Lua's collector may call the script.
        let (live, empty, rows, position) = {
            let mut book = sql.book.borrow_mut();
            let found = book.connection_mut(connection);
            let position = found.next_row;
            // A further result's rows lie behind its end.
            found.next_row = found.rows_end.min(position + 1);
            let empty = found.row_count == 0 || found.rows.ends.is_empty();
            let position = (position < found.rows_end).then_some(position);
            (found.result_is_live, empty, std::mem::take(&mut found.rows), position)
        };
        let refusal = match position.and_then(|position| rows.row(position)) {
            _ if !live => Some("attempt to fetch row from an invalid result set"),
            None if empty => Some("attempt to fetch row from an empty result set"),
            None => None,
            Some(row) => {
                push_row(call, &rows, row);
                sql.book.borrow_mut().connection_mut(connection).rows = rows;
                return ONE;
            }
        };
        sql.book.borrow_mut().connection_mut(connection).rows = rows;
        if let Some(refusal) = refusal {
            call.context().front.log(Level::Alert, refusal);
        }
        call.push_nil();
        ONE
    }
}

/// Pushes a table of strings, with nothing where a column is NULL.
fn push_row(call: &Call, rows: &Rows, row: &[u8]) {
    call.push_table(rows.columns as c_int);
    rows.each_column(row, |(position, column)| {
        if let Some(bytes) = column {
            call.push_bytes(bytes);
            call.set_field(position as c_int + 1);
        }
    });
}

/// Whether a connection's last statement has further results.
pub(super) struct MoreResults;

impl Raw for MoreResults {
    fn call(call: &Call) -> Returns {
        let (connection, _) = connection(call)?;
        let more = !call.context().sql.book.borrow().connection(connection).parts.is_empty();
        call.push_bool(more);
        ONE
    }
}

/// Goes on to the next of them; nothing where there is none.
pub(super) struct NextResult;

impl Raw for NextResult {
    fn call(call: &Call) -> Returns {
        let (connection, open) = connection(call)?;
        if !open {
            call.context().sql.book.borrow_mut().connection_mut(connection).class = ERROR_NONE;
            return refuse(call, CLOSED);
        }
        if call.context().sql.book.borrow().connection(connection).parts.is_empty() {
            return NOTHING;
        }
        want(call, Request::NextResult(connection))
    }
}

/// Frees a connection's last result; false where there is none.
pub(super) struct Free;

impl Raw for Free {
    fn call(call: &Call) -> Returns {
        let (connection, _) = connection(call)?;
        let was_live = {
            let mut book = call.context().sql.book.borrow_mut();
            let found = book.connection_mut(connection);
            if found.parts.is_empty() {
                found.rows.clear();
            }
            std::mem::replace(&mut found.result_is_live, false)
        };
        if !was_live {
            return refuse(call, "attempt to free an invalid result set");
        }
        NOTHING
    }
}
