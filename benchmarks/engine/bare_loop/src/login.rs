//! Logging in and preparing, with blocking reads: neither is measured.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;

use dbdyno_wire::mysql::message::write_packet;
use dbdyno_wire::mysql::skim::server_error;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, HandshakePacket, HandshakeResponse};
use mysql_common::proto::{MyDeserialize, MySerialize};

pub(crate) fn log_in(
    stream: &mut TcpStream,
    user: &str,
    password: &str,
    database: &str,
) -> Result<(), Box<dyn Error>> {
    let greeting = read_packet(stream)?;
    let greeting = HandshakePacket::deserialize((), &mut ParseBuf(&greeting))?;
    let scramble = scramble_native(&greeting.nonce(), password.as_bytes()).map(|answer| answer.to_vec());
    let response = HandshakeResponse::new(
        scramble,
        (5, 7, 0),
        Some(user.as_bytes()),
        Some(database.as_bytes()),
        Some(AuthPlugin::MysqlNativePassword),
        CapabilityFlags::CLIENT_PROTOCOL_41
            | CapabilityFlags::CLIENT_LONG_PASSWORD
            | CapabilityFlags::CLIENT_TRANSACTIONS
            | CapabilityFlags::CLIENT_SECURE_CONNECTION
            | CapabilityFlags::CLIENT_PLUGIN_AUTH
            | CapabilityFlags::CLIENT_CONNECT_WITH_DB,
        None,
        16 << 20,
    );
    let mut out = Vec::new();
    write_packet(&mut out, 1, |out| response.serialize(out));
    stream.write_all(&out)?;
    match read_packet(stream)?.first() {
        Some(0) => Ok(()),
        _ => Err("the account does not log in with mysql_native_password".into()),
    }
}

/// Reads the answer to a prepare and returns the statement's id.
pub(crate) fn prepared(stream: &mut TcpStream) -> Result<u32, Box<dyn Error>> {
    let answer = read_packet(stream)?;
    let &[0x00, a, b, c, d, e, f, g, h, ..] = answer.as_slice() else { return Err("not prepared".into()) };
    // Each group of definitions is followed by an end marker.
    for definitions in [u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h])] {
        for _ in 0..if definitions == 0 { 0 } else { definitions + 1 } {
            read_packet(stream)?;
        }
    }
    Ok(u32::from_le_bytes([a, b, c, d]))
}

fn read_packet(stream: &mut TcpStream) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut payload)?;
    if payload.first() == Some(&0xff) {
        return Err(server_error(&payload).into());
    }
    Ok(payload)
}
