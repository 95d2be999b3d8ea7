//! Greeting and authentication, with the messages of `mysql_common`.
//!
//! `mysql_native_password` is the one method of this version. A server that asks for another gets no secret.

use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, HandshakePacket, HandshakeResponse};
use mysql_common::proto::{MyDeserialize, MySerialize};

use super::fields::{server_error, words};
use super::message::packet;
use super::{Trouble, lost};
use crate::WireError;
use crate::socket::Socket;

const NATIVE: &[u8] = b"mysql_native_password";

/// Longest packet of a login that is believed; greetings have some 100 bytes.
const PACKET_MAX: usize = 64 * 1024;
/// Largest packet this client announces.
const MAX_ALLOWED_PACKET: u32 = 16 << 20;

/// What the login found out.
pub(super) struct Session {
    pub(super) server_version: String,
    pub(super) deprecate_eof: bool,
}

pub(super) async fn log_in(
    socket: &mut Socket,
    user: &str,
    password: &str,
    database: &str,
    local_data: bool,
) -> Result<Session, WireError> {
    let (sequence, greeting) = read_packet(socket).await?;
    if greeting.first() == Some(&0xff) {
        return Err(server_error(&greeting));
    }
    if greeting.first() != Some(&10) {
        let version = greeting.first().map_or_else(|| "nothing".into(), u8::to_string);
        return Err(WireError::Protocol(format!("a greeting of protocol version {version}, and not 10")));
    }
    let greeting = HandshakePacket::deserialize((), &mut ParseBuf(&greeting))
        .map_err(|error| WireError::Protocol(format!("not a MySQL greeting: {error}")))?;
    let wanted = CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_CONNECT_WITH_DB
        | CapabilityFlags::CLIENT_DEPRECATE_EOF;
    let wanted = if local_data { wanted | CapabilityFlags::CLIENT_LOCAL_FILES } else { wanted };
    let capabilities = greeting.capabilities() & wanted;
    let response = HandshakeResponse::new(
        scramble(password, &greeting.nonce()),
        (5, 7, 0), // Only chooses utf8mb4, which every supported server has.
        Some(user.as_bytes()),
        Some(database.as_bytes()),
        Some(AuthPlugin::MysqlNativePassword),
        capabilities,
        None,
        MAX_ALLOWED_PACKET,
    );
    send(socket, sequence.wrapping_add(1), |out| response.serialize(out)).await?;
    finish(socket, password).await?;
    Ok(Session {
        // MariaDB up to 10.11 puts "5.5.5-" in front, for replicas that read the first digit only.
        server_version: words(greeting.server_version_ref()).trim_start_matches("5.5.5-").to_owned(),
        deprecate_eof: capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
    })
}

/// Follows the server through the rest of the login.
async fn finish(socket: &mut Socket, password: &str) -> Result<(), WireError> {
    loop {
        let (sequence, payload) = read_packet(socket).await?;
        match payload.split_first() {
            Some((0x00, _)) => return Ok(()),
            Some((0xff, _)) => return Err(server_error(&payload)),
            Some((0xfe, request)) => {
                let (plugin, nonce) = match request.iter().position(|&byte| byte == 0) {
                    Some(end) => (&request[..end], &request[end + 1..]),
                    None => (request, [].as_slice()),
                };
                if plugin != NATIVE {
                    return Err(unsupported(plugin));
                }
                let answer =
                    scramble(password, nonce.strip_suffix(b"\0").unwrap_or(nonce)).unwrap_or_default();
                send(socket, sequence.wrapping_add(1), |out| out.extend_from_slice(&answer)).await?;
            }
            other => {
                let first = other.map_or_else(|| "nothing".into(), |(byte, _)| format!("0x{byte:02x}"));
                return Err(WireError::Protocol(format!("{first} in the middle of a login")));
            }
        }
    }
}

fn scramble(password: &str, nonce: &[u8]) -> Option<Vec<u8>> {
    scramble_native(nonce, password.as_bytes()).map(|answer| answer.to_vec())
}

fn unsupported(plugin: &[u8]) -> WireError {
    WireError::Unsupported(format!(
        "the account logs in with {}, and this version of dbdyno knows mysql_native_password only",
        words(plugin)
    ))
}

async fn send(socket: &mut Socket, sequence: u8, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
    let mut out = Vec::new();
    packet(&mut out, sequence, body);
    socket.send(&out).await.map_err(lost)
}

/// Reads one packet; during a login the server never sends a second one unasked.
async fn read_packet(socket: &mut Socket) -> Result<(u8, Vec<u8>), WireError> {
    let mut bytes = Vec::new();
    let packet = socket.receive(|piece| {
        bytes.extend_from_slice(piece);
        let Some(&[a, b, c, sequence]) = bytes.first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        if length > PACKET_MAX {
            return Err(Trouble::Wire(WireError::Protocol(format!("a login packet of {length} bytes"))));
        }
        Ok((bytes.len() >= 4 + length).then(|| (sequence, bytes[4..4 + length].to_vec())))
    });
    packet.await.map_err(Trouble::into_wire)
}
