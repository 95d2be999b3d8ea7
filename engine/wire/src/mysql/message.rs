//! Messages of the client. Every function appends one message to a buffer.
//!
//! Source: the client/server protocol chapters of the MariaDB Knowledge Base and of the MySQL internals manual.

use dbdyno_schema::placeholders::Quoting;

use crate::scripted::{Parameter, Type};
use crate::{Value, placeholders};

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_CLOSE: u8 = 0x19;

const TYPE_DOUBLE: u8 = 0x05;
const TYPE_LONGLONG: u8 = 0x08;
const TYPE_VAR_STRING: u8 = 0xfd;

/// Maximum bytes of a packet's payload. A message continues in the next packet after a packet of this length.
const PAYLOAD_MAX: usize = 0xff_ffff;

/// Appends a message whose payload `body` writes. The packet has number `sequence`; a long message is split into
/// several packets.
pub fn write_packet(out: &mut Vec<u8>, sequence: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let header = out.len();
    out.extend_from_slice(&[0, 0, 0, sequence]);
    body(out);
    write_header(out, header);
}

/// Ends the session.
pub fn quit(out: &mut Vec<u8>) {
    write_packet(out, 0, |out| out.push(COM_QUIT));
}

/// Runs a statement given as text.
pub fn query(out: &mut Vec<u8>, sql: &[u8]) {
    write_packet(out, 0, |out| {
        out.push(COM_QUERY);
        out.extend_from_slice(sql);
    });
}

/// Runs a statement given as text, with a literal of one of `values` in place of each `?`.
pub fn query_with(out: &mut Vec<u8>, template: &str, values: &[Value]) {
    write_packet(out, 0, |out| {
        out.push(COM_QUERY);
        placeholders::fill(out, template, values, Quoting::Mysql);
    });
}

/// Prepares a statement.
pub fn prepare(out: &mut Vec<u8>, sql: &[u8]) {
    write_packet(out, 0, |out| {
        out.push(COM_STMT_PREPARE);
        out.extend_from_slice(sql);
    });
}

/// Closes a prepared statement.
pub fn close_statement(out: &mut Vec<u8>, statement_id: u32) {
    write_packet(out, 0, |out| {
        out.push(COM_STMT_CLOSE);
        out.extend_from_slice(&statement_id.to_le_bytes());
    });
}

/// Runs a prepared statement. The server remembers the types of the parameters, so `send_types` is necessary only for
/// the first execution.
pub fn execute(out: &mut Vec<u8>, statement_id: u32, values: &[Value], send_types: bool) {
    write_packet(out, 0, |out| {
        out.push(COM_STMT_EXECUTE);
        out.extend_from_slice(&statement_id.to_le_bytes());
        out.push(0); // No cursor.
        out.extend_from_slice(&1u32.to_le_bytes()); // Iterations, always 1.
        if values.is_empty() {
            return;
        }
        let nulls = out.len();
        out.resize(nulls + values.len().div_ceil(8), 0);
        out.push(send_types.into());
        if send_types {
            for value in values {
                let code = match value {
                    Value::Int(_) => TYPE_LONGLONG,
                    Value::Null | Value::Text(_) | Value::Verbatim(_) => TYPE_VAR_STRING,
                };
                out.extend_from_slice(&[code, 0]);
            }
        }
        for (position, value) in values.iter().enumerate() {
            match value {
                Value::Null => out[nulls + position / 8] |= 1 << (position % 8),
                Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
                Value::Text(text) | Value::Verbatim(text) => {
                    write_length(out, text.len() as u64);
                    out.extend_from_slice(text);
                }
            }
        }
    });
}

/// As [`execute`], with the parameters of a script: an iterator of unknown length, so the bitmap of NULLs takes one more
/// pass than in [`execute`], which is on the hot path.
pub fn execute_with<'a>(
    out: &mut Vec<u8>,
    statement_id: u32,
    parameters: impl Iterator<Item = Parameter<'a>> + Clone,
    send_types: bool,
) {
    write_packet(out, 0, |out| {
        out.push(COM_STMT_EXECUTE);
        out.extend_from_slice(&statement_id.to_le_bytes());
        out.extend_from_slice(&[0, 1, 0, 0, 0]); // No cursor; iterations, always 1.
        let nulls = out.len();
        for (position, parameter) in parameters.clone().enumerate() {
            if position % 8 == 0 {
                out.push(0);
            }
            if let Parameter::Null(_) = parameter {
                out[nulls + position / 8] |= 1 << (position % 8);
            }
        }
        if out.len() > nulls {
            out.push(send_types.into());
            if send_types {
                for parameter in parameters.clone() {
                    let code = match parameter.kind() {
                        Type::Int => TYPE_LONGLONG,
                        Type::Double => TYPE_DOUBLE,
                        Type::Text => TYPE_VAR_STRING,
                    };
                    out.extend_from_slice(&[code, 0]);
                }
            }
            for parameter in parameters {
                match parameter {
                    Parameter::Null(_) => {}
                    Parameter::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
                    Parameter::Double(number) => out.extend_from_slice(&number.to_le_bytes()),
                    Parameter::Text(text) => {
                        write_length(out, text.len() as u64);
                        out.extend_from_slice(text);
                    }
                }
            }
        }
    });
}

/// Writes the packet header at offset `header`, for the last message in `out`.
#[inline]
fn write_header(out: &mut Vec<u8>, header: usize) {
    let length = out.len() - header - 4;
    if length < PAYLOAD_MAX {
        out[header..header + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    } else {
        split_packet(out, header);
    }
}

#[cold]
fn split_packet(out: &mut Vec<u8>, header: usize) {
    let first = out[header + 3];
    let payload = out.split_off(header + 4);
    out.truncate(header);
    // The last packet must be shorter than the maximum, so it may be empty.
    let pieces = payload.len() / PAYLOAD_MAX + 1;
    for number in 0..pieces {
        let piece = &payload[number * PAYLOAD_MAX..payload.len().min((number + 1) * PAYLOAD_MAX)];
        out.extend_from_slice(&(piece.len() as u32).to_le_bytes()[..3]);
        out.push(first.wrapping_add(number as u8));
        out.extend_from_slice(piece);
    }
}

/// Appends a length-encoded integer.
fn write_length(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=250 => out.push(value as u8),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&value.to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_a_command_byte_and_the_text() {
        let mut out = Vec::new();
        query(&mut out, b"DO 1");
        assert_eq!(out, b"\x05\x00\x00\x00\x03DO 1");
    }

    #[test]
    fn a_long_message_is_split_into_packets() {
        for (length, pieces) in
            [(PAYLOAD_MAX - 2, 1), (PAYLOAD_MAX - 1, 2), (PAYLOAD_MAX, 2), (2 * PAYLOAD_MAX - 1, 3)]
        {
            let mut out = b"before".to_vec();
            let sql = vec![b'x'; length]; // The command byte precedes it.
            write_packet(&mut out, 7, |out| {
                out.push(COM_QUERY);
                out.extend_from_slice(&sql);
            });
            let (mut rest, mut whole) = (&out[6..], Vec::new());
            for number in 0..pieces {
                let size = usize::from(rest[0]) | usize::from(rest[1]) << 8 | usize::from(rest[2]) << 16;
                assert_eq!(
                    (rest[3], size == PAYLOAD_MAX),
                    (7 + number as u8, number + 1 < pieces),
                    "{length}"
                );
                whole.extend_from_slice(&rest[4..4 + size]);
                rest = &rest[4 + size..];
            }
            assert!(rest.is_empty(), "{length}");
            assert_eq!((whole[0], &whole[1..]), (COM_QUERY, &sql[..]));
        }
    }

    #[test]
    fn execute_sends_types_only_on_request() {
        let values = [Value::Int(7), Value::Text(b"ab".to_vec())];
        let mut first = Vec::new();
        execute(&mut first, 3, &values, true);
        let head = b"\x17\x03\x00\x00\x00\x00\x01\x00\x00\x00\x00";
        assert_eq!(&first[4..15], head);
        assert_eq!(&first[15..], b"\x01\x08\x00\xfd\x00\x07\x00\x00\x00\x00\x00\x00\x00\x02ab");
        let mut second = Vec::new();
        execute(&mut second, 3, &values, false);
        assert_eq!(&second[15..], b"\x00\x07\x00\x00\x00\x00\x00\x00\x00\x02ab");
        assert_eq!(second[0] as usize, second.len() - 4);
        let mut third = Vec::new();
        execute(&mut third, 3, &[Value::Int(7), Value::Null], true);
        assert_eq!(&third[14..], b"\x02\x01\x08\x00\xfd\x00\x07\x00\x00\x00\x00\x00\x00\x00");
    }
}
