//! What Lua calls to make, bind and set parameters.

use std::ffi::c_int;

use dbdyno_wire::scripted::Type;
use mlua::ffi::{LUA_TBOOLEAN, LUA_TNIL, LUA_TNUMBER, LUA_TSTRING};

use super::arguments::{LUA_TCDATA, statement};
use super::book::Stored;
use super::template::fill;
use crate::raw::{Call, NOTHING, ONE, Raw, Returns};

/// Types of `sysbench.sql.type` that can be bound: the integers, the floating-point numbers, the strings.
const INTEGERS: std::ops::RangeInclusive<i64> = 1..=4;
const DOUBLES: std::ops::RangeInclusive<i64> = 5..=6;
const STRINGS: std::ops::RangeInclusive<i64> = 11..=12;

/// Statement, type, length. Returns the parameter's number; nothing for a type that cannot be bound.
pub(super) struct NewParameter;

impl Raw for NewParameter {
    fn call(call: &Call) -> Returns {
        let (found, number) = (statement(call)?, call.integer(2));
        let (kind, length_max) = match number {
            number if INTEGERS.contains(&number) => (Type::Int, 0),
            number if DOUBLES.contains(&number) => (Type::Double, 0),
            number if STRINGS.contains(&number) => {
                if !call.is_number(3) {
                    return Err("bad argument #2 to 'new' (cannot convert 'nil' to 'int')".into());
                }
                (Type::Text, call.integer(3).max(0) as usize)
            }
            _ => return NOTHING,
        };
        let added = call.context().sql.book.borrow_mut().add_parameter(found, kind, length_max);
        call.push(added as f64);
        ONE
    }
}

/// Statement and parameters.
pub(super) struct Bind;

impl Raw for Bind {
    fn call(call: &Call) -> Returns {
        let (found, count) = (statement(call)?, call.count());
        let mut book = call.context().sql.book.borrow_mut();
        let mut bound = Vec::with_capacity(count as usize - 1);
        for index in 2..=count {
            bound.push(book.place_of(call.field(index, 1)).ok_or("not a parameter of an open statement")?);
        }
        let statement = book.statement_mut(found);
        (statement.bound, statement.types_sent) = (bound, false);
        NOTHING
    }
}

/// Parameter and value.
pub(super) struct Set;

impl Raw for Set {
    #[inline]
    fn call(call: &Call) -> Returns {
        let kind = call.kind(2);
        if kind == LUA_TNUMBER && with_parameter(call, |stored| stored.set_number(call.number(2)))? {
            return NOTHING;
        }
        // What Lua may have to make is made before anything is borrowed: its collector may call the script.
        let (bytes, wide) = match kind {
            LUA_TNUMBER | LUA_TSTRING => (call.bytes(2), None),
            LUA_TCDATA => (None, call.wide_integer(2)),
            LUA_TBOOLEAN => (None, Some(call.truth(2).into())),
            _ => (None, None),
        };
        let misfit = with_parameter(call, |stored| match (stored.kind(), bytes, wide) {
            _ if matches!(kind, LUA_TNIL | -1) => {
                stored.set_null();
                None
            }
            (Type::Text, Some(value), _) => {
                stored.set_text(|text| text.extend_from_slice(value));
                None
            }
            (_, _, Some(number)) if stored.set_integer(number) => None,
            (expected, ..) => Some(expected),
        })?;
        misfit.map_or(NOTHING, |expected| Err(misfit_words(expected, kind)))
    }
}

/// Does `with` to the parameter that is argument 1.
#[inline]
fn with_parameter<T>(call: &Call, with: impl FnOnce(&mut Stored) -> T) -> Result<T, String> {
    let number = call.field(1, 1);
    match call.context().sql.book.borrow_mut().parameter_mut(number) {
        Some(stored) => Ok(with(stored)),
        None => Err("attempt to set a parameter of a closed statement".into()),
    }
}

#[cold]
fn misfit_words(expected: Type, kind: c_int) -> String {
    let word = match kind {
        LUA_TSTRING => "string",
        LUA_TBOOLEAN => "boolean",
        LUA_TCDATA => "cdata",
        _ => "table",
    };
    let wanted = match expected {
        Type::Int => "int64_t",
        Type::Double => "double",
        Type::Text => "const char *",
    };
    format!("cannot convert '{word}' to '{wanted}'")
}

/// Parameter and template.
pub(super) struct SetRandom;

impl Raw for SetRandom {
    #[inline]
    fn call(call: &Call) -> Returns {
        let template = call.bytes(2);
        with_parameter(call, |stored| match (stored.kind(), template) {
            (Type::Text, Some(template)) => {
                stored.set_text(|text| fill(&mut call.context().rng.borrow_mut(), template, text));
                NOTHING
            }
            (Type::Text, None) => Err("a template is a string".into()),
            (Type::Int, _) => Err("Unsupported argument type: 4".into()),
            (Type::Double, _) => Err("Unsupported argument type: 6".into()),
        })?
    }
}
