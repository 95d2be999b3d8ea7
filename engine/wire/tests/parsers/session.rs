//! A MySQL session after a correct login, with a server that sends the input: LOAD DATA LOCAL, a prepared statement, a
//! result whose rows are kept, or statements sent as text.
//!
//! Input: a byte that selects one of these, then segments, each preceded by its length in two bytes. The client can send
//! between two segments.

use dbdyno_schema::plan::Compression;
use dbdyno_wire::bulk::BulkLoad;
use dbdyno_wire::mysql::MysqlConnection;
use dbdyno_wire::mysql::message::write_packet;
use dbdyno_wire::scripted::Type;
use dbdyno_wire::{Connection, Value, WireError};
use tokio::net::UnixStream;

use super::server;

/// The greeting of MariaDB 10.11, and the OK that ends its login.
const GREETING: &[u8] = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81\x15\
    \0\0\0\0\0\0\x1d\0\0\0ijklmnopqrst\0mysql_native_password\0";
const OK: &[u8] = b"\0\0\0\x02\0\0\0";
/// Number of rows that the LOAD DATA sends.
const ROWS: usize = 1000;

/// Logs in and executes the selected statements.
///
/// # Panics
/// If a LOAD DATA succeeds without sending all rows.
pub fn check(input: &[u8]) {
    let [selector, rest @ ..] = input else { return };
    let mut login = Vec::new();
    write_packet(&mut login, 0, |out| out.extend_from_slice(GREETING));
    write_packet(&mut login, 2, |out| out.extend_from_slice(OK));
    let mut segments = vec![login];
    let mut rest = rest;
    while let [low, high, more @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(more.len());
        let (segment, after) = more.split_at(length);
        segments.push(segment.to_vec());
        rest = after;
    }
    let connector = server::connector("", Compression::None, false);
    server::run(async {
        let (client, server_end) = UnixStream::pair().expect("a socket pair");
        let client_task = async {
            let mut connection =
                connector.connect_over(client, &server::address(false)).await.expect("a correct login");
            // Every error is allowed; a panic is not.
            let _ = execute(&mut connection, *selector).await;
        };
        tokio::join!(client_task, server::send_segments(server_end, segments));
    });
}

async fn execute(connection: &mut MysqlConnection, selector: u8) -> Result<(), WireError> {
    match selector % 4 {
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
            connection.query_rows("SELECT 1").await?;
        }
        _ => {
            connection.query(b"BEGIN").await?;
            connection.execute_text("SELECT ?", &[Value::Int(1)]).await?;
        }
    }
    Ok(())
}
