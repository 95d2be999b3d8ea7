//! What a session does with anything a server says after a sound login: LOAD DATA LOCAL with its two answers, a
//! prepare and an execution, rows that are kept.
//!
//! Input: which of these, then segments, each after its length in two bytes; the client may speak between them.

use dbdyno_schema::plan::Compression;
use dbdyno_wire::bulk::BulkLoad;
use dbdyno_wire::mysql::MysqlConnection;
use dbdyno_wire::mysql::message::write_packet;
use dbdyno_wire::scripted::Type;
use dbdyno_wire::{Connection, Value, WireError};
use tokio::net::UnixStream;

use super::server;

/// What MariaDB 10.11 says to a client that it lets in, and its OK.
const WELCOME: &[u8] = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81\x15\
    \0\0\0\0\0\0\x1d\0\0\0ijklmnopqrst\0mysql_native_password\0";
const OK: &[u8] = b"\0\0\0\x02\0\0\0";
/// Rows that a LOAD DATA sends.
const ROWS: usize = 1000;

/// Logs in and asks.
///
/// # Panics
/// When more rows are sent than asked for.
pub fn check(input: &[u8]) {
    let [what, rest @ ..] = input else { return };
    let mut welcome = Vec::new();
    write_packet(&mut welcome, 0, |out| out.extend_from_slice(WELCOME));
    write_packet(&mut welcome, 2, |out| out.extend_from_slice(OK));
    let mut segments = vec![welcome];
    let mut rest = rest;
    while let [low, high, more @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(more.len());
        let (segment, after) = more.split_at(length);
        segments.push(segment.to_vec());
        rest = after;
    }
    let connector = server::connector("", Compression::None, false);
    server::run(async {
        let (client, other) = UnixStream::pair().expect("a socket pair");
        let ask = async {
            let mut connection =
                connector.connect_over(client, &server::address(false)).await.expect("a sound login");
            // Any error will do; what counts is that it is one.
            let _ = ask(&mut connection, *what).await;
        };
        tokio::join!(ask, server::say_in_turn(other, segments));
    });
}

async fn ask(connection: &mut MysqlConnection, what: u8) -> Result<(), WireError> {
    match what % 4 {
        0 => {
            let mut sent = 0;
            let rows = |out: &mut Vec<u8>, _most: usize| {
                out.extend_from_slice(b"1,a;");
                sent += 1;
                sent < ROWS
            };
            let loaded = connection.load("LOAD DATA LOCAL INFILE 'dbdyno' INTO TABLE t", rows).await;
            assert!(loaded.is_err() || sent == ROWS);
        }
        1 => {
            connection.prepare("SELECT ?", &[Type::Int]).await?;
            connection.execute(0, &[Value::Int(1)]).await?;
            connection.execute(0, &[Value::Int(2)]).await?;
        }
        2 => {
            connection.rows("SELECT 1").await?;
        }
        _ => {
            connection.query(b"BEGIN").await?;
            connection.execute_text("SELECT ?", &[Value::Int(1)]).await?;
        }
    }
    Ok(())
}
