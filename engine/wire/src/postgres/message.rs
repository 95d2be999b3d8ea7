//! Messages of the client. Every function appends one or several messages to a buffer.
//!
//! Source: chapter "Frontend/Backend Protocol" of the PostgreSQL manual.

use std::io::Write;

use dbdyno_schema::placeholders::Quoting;

use crate::scripted::{Parameter, Type};
use crate::{Value, placeholders};

// Object ids of parameter types, from pg_type.
const INT8: u32 = 20;
const FLOAT8: u32 = 701;
const VARCHAR: u32 = 1043;

/// Execute of the unnamed portal without a row limit, and Sync.
const EXECUTE_AND_SYNC: &[u8] = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
const SYNC: &[u8] = b"S\0\0\0\x04";

/// The format codes that select the binary format for all values.
const ALL_BINARY: [u8; 4] = [0, 1, 0, 1];

/// Appends a message of type `kind` whose payload `body` writes.
pub fn write_message(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    body(out);
    let length = (out.len() - begin - 1) as u32;
    out[begin + 1..begin + 5].copy_from_slice(&length.to_be_bytes());
}

/// Ends the session.
pub fn terminate(out: &mut Vec<u8>) {
    write_message(out, b'X', |_| {});
}

/// Runs statements given as text, up to the first zero byte.
pub fn query(out: &mut Vec<u8>, sql: &[u8]) {
    write_message(out, b'Q', |out| write_string(out, sql));
}

/// Runs a statement given as text, with a literal of one of `values` in place of each `?`.
pub fn query_with(out: &mut Vec<u8>, template: &str, values: &[Value]) {
    write_message(out, b'Q', |out| {
        placeholders::fill(out, template, values, Quoting::Postgresql);
        out.push(0);
    });
}

/// Replaces every `?`, even in strings, by `$1`, `$2`, … Returns the new statement and the number of parameters.
pub fn number_placeholders(sql: &[u8]) -> (Vec<u8>, u16) {
    let mut out = Vec::with_capacity(sql.len() + 16);
    let mut count = 0u16;
    for &byte in sql {
        if byte == b'?' && count < u16::MAX {
            count += 1;
            let _ = write!(out, "${count}"); // Writing to a Vec cannot fail.
        } else {
            out.push(byte);
        }
    }
    (out, count)
}

/// Prepares statement number `name`, with parameters `$1`, `$2`, …, and requests a description of its result.
pub fn parse(out: &mut Vec<u8>, name: u32, sql: &[u8], types: impl ExactSizeIterator<Item = Type>) {
    write_message(out, b'P', |out| {
        write_statement_name(out, name);
        write_string(out, sql);
        out.extend_from_slice(&(types.len() as u16).to_be_bytes());
        for kind in types {
            let number = match kind {
                Type::Int => INT8,
                Type::Double => FLOAT8,
                Type::Text => VARCHAR,
            };
            out.extend_from_slice(&number.to_be_bytes());
        }
    });
    write_message(out, b'D', |out| {
        out.push(b'S');
        write_statement_name(out, name);
    });
}

/// Closes the statement with number `name`, which need not exist.
pub fn close(out: &mut Vec<u8>, name: u32) {
    write_message(out, b'C', |out| {
        out.push(b'S');
        write_statement_name(out, name);
    });
}

/// Ends a request. The server replies when it has processed all messages so far.
pub fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(SYNC);
}

/// Runs prepared statement number `name`: Bind, Execute and Sync.
#[inline]
pub fn execute(out: &mut Vec<u8>, name: u32, values: &[Value]) {
    write_message(out, b'B', |out| {
        out.push(0); // The unnamed portal.
        write_statement_name(out, name);
        out.extend_from_slice(&ALL_BINARY);
        out.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for value in values {
            match value {
                Value::Null => out.extend_from_slice(&(-1i32).to_be_bytes()),
                Value::Int(number) => write_value(out, &number.to_be_bytes()),
                Value::Text(text) | Value::Verbatim(text) => write_value(out, text),
            }
        }
        out.extend_from_slice(&ALL_BINARY);
    });
    out.extend_from_slice(EXECUTE_AND_SYNC);
}

/// As [`execute`], with the parameters of a script: an iterator of unknown length, so their number is written last.
/// [`execute`], which is on the hot path, knows it in advance.
pub fn execute_with<'a>(
    out: &mut Vec<u8>,
    name: u32,
    parameters: impl Iterator<Item = Parameter<'a>> + Clone,
) {
    write_message(out, b'B', |out| {
        out.push(0);
        write_statement_name(out, name);
        out.extend_from_slice(&ALL_BINARY);
        let count = out.len();
        out.extend_from_slice(&[0, 0]);
        let mut parameters_written = 0u16;
        for parameter in parameters {
            parameters_written += 1;
            match parameter {
                Parameter::Null(_) => out.extend_from_slice(&(-1i32).to_be_bytes()),
                Parameter::Int(number) => write_value(out, &number.to_be_bytes()),
                Parameter::Double(number) => write_value(out, &number.to_be_bytes()),
                Parameter::Text(text) => write_value(out, text),
            }
        }
        out[count..count + 2].copy_from_slice(&parameters_written.to_be_bytes());
        out.extend_from_slice(&ALL_BINARY);
    });
    out.extend_from_slice(EXECUTE_AND_SYNC);
}

/// Ends the data of a COPY.
pub fn copy_done(out: &mut Vec<u8>) {
    write_message(out, b'c', |_| {});
}

#[inline]
fn write_value(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
}

/// Appends a null-terminated string. The string is cut at the first zero byte in it, because a server would stop
/// reading there.
fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    out.extend_from_slice(&text[..end]);
    out.push(0);
}

/// Appends the name of statement number `name`.
#[inline]
fn write_statement_name(out: &mut Vec<u8>, name: u32) {
    out.push(b's');
    out.extend_from_slice(itoa::Buffer::new().format(name).as_bytes());
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_its_text_up_to_the_first_zero_byte() {
        let mut out = Vec::new();
        query(&mut out, b"BEGIN\0; DROP");
        assert_eq!(out, b"Q\0\0\0\x0aBEGIN\0");
    }

    #[test]
    fn placeholders_are_numbered() {
        assert_eq!(number_placeholders(b"SELECT ?, ?"), (b"SELECT $1, $2".to_vec(), 2));
    }

    #[test]
    fn an_execution_is_bind_execute_and_sync() {
        let values = [Value::Int(7), Value::Text(b"ab".to_vec())];
        let mut out = Vec::new();
        execute(&mut out, 12, &values);
        let bind = b"\0s12\0\0\x01\0\x01\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x07\0\0\0\x02ab\0\x01\0\x01";
        assert_eq!(out[0], b'B');
        assert_eq!(u32::from_be_bytes(out[1..5].try_into().unwrap()) as usize, bind.len() + 4);
        assert_eq!(&out[5..5 + bind.len()], bind);
        assert_eq!(&out[5 + bind.len()..], EXECUTE_AND_SYNC);
        let mut other = Vec::new();
        execute_with(&mut other, 12, [Parameter::Int(7), Parameter::Text(b"ab")].into_iter());
        assert_eq!(other, out);
        let mut null = Vec::new();
        execute_with(&mut null, 12, [Parameter::Null(Type::Int)].into_iter());
        assert_eq!(&null[5 + 9..5 + 15], b"\0\x01\xff\xff\xff\xff");
    }

    #[test]
    fn a_prepare_has_the_name_and_the_parameter_types() {
        let mut out = Vec::new();
        parse(&mut out, 3, b"SELECT $1", [Type::Int].into_iter());
        assert_eq!(out, b"P\0\0\0\x17s3\0SELECT $1\0\0\x01\0\0\0\x14D\0\0\0\x08Ss3\0");
    }
}
