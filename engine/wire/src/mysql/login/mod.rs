//! Login on a connected socket: greeting, encryption, authentication, compression.
//!
//! ```text
//! server: greeting ─▶ client: [SSL request, TLS handshake] ─▶ response with the first proof
//!   server: other method / more data ─▶ client: proof   … until OK or error ─▶ [compression begins]
//! ```
//! `mysql_common` writes the client's messages; this file and [`greeting`] read the server's. [`auth`] decides in which
//! form to send the password.
//!
//! Source: "Connection Phase" in the MySQL internals manual, "Connection" in the MariaDB Knowledge Base.

mod auth;
mod greeting;

use bytes::BytesMut;
use dbdyno_schema::plan::Compression;
use dbdyno_schema::record::Session;
use mysql_common::constants::CapabilityFlags;
use mysql_common::packets::{AuthPlugin, HandshakeResponse, SslRequest};
use mysql_common::proto::MySerialize;

use self::auth::{Authenticator, Channel};
use self::greeting::Greeting;
use super::connector::MysqlConnector;
use super::errors::CR_COMPRESSION_WRONGLY_CONFIGURED;
use super::fields::server_error;
use super::message::write_packet;
use crate::login_socket::LoginSocket;
use crate::server_message::sanitize;
use crate::socket::Socket;
use crate::tls::TlsClient;
use crate::{Address, WireError, compressed};

/// Maximum bytes of a login packet; greetings have about 100 bytes, keys about 500.
const PACKET_MAX: usize = 64 * 1024;
/// Maximum packets of the server in one login; the longest login, with a key request, has 6.
const PACKETS_MAX: u32 = 20;
/// Maximum packet length that this client announces.
const MAX_ALLOWED_PACKET: u32 = 16 << 20;
/// The collation utf8mb4_general_ci, which every supported server has.
const COLLATION: u8 = 45;

const CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_PROTOCOL_41
    .union(CapabilityFlags::CLIENT_LONG_PASSWORD)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);

/// A completed login.
pub(super) struct Login {
    pub(super) socket: Socket,
    pub(super) session: Session,
    /// The server's number of this session.
    pub(super) id: u32,
    pub(super) deprecate_eof: bool,
}

/// Logs in on a socket that is connected to `address`.
pub(super) async fn log_in(
    socket: Socket,
    connector: &MysqlConnector,
    address: &Address,
) -> Result<Login, WireError> {
    let mut stream = PacketStream { socket: LoginSocket::new(socket, PACKETS_MAX), sequence: 0 };
    let greeting = stream.read().await?;
    if greeting.first() == Some(&0xff) {
        return Err(server_error(&greeting));
    }
    let greeting = Greeting::read(&greeting)?;
    let (offered, id) = (greeting.capabilities, greeting.id);
    let mut capabilities =
        (offered & requested_capabilities(connector)) | compression_flag(connector.compression, offered)?;
    let is_local = stream.socket.socket.is_local();
    let tls = tls_client(connector, address, offered)?;
    let mut session = Session {
        // MariaDB up to 10.11 puts "5.5.5-" before its version, for replicas that read only the first digit.
        server_version: sanitize(greeting.version).trim_start_matches("5.5.5-").to_owned(),
        compression: compression_name(connector.compression),
        ..Session::default()
    };
    if let Some(tls) = tls {
        capabilities |= CapabilityFlags::CLIENT_SSL;
        let request = SslRequest::new(capabilities, MAX_ALLOWED_PACKET, COLLATION);
        stream.send(|out| request.serialize(out)).await?;
        let (socket, tls_session) = stream.socket.encrypt(tls, address).await?;
        stream.socket = socket;
        session.tls = Some(tls_session.description);
    }
    let channel = Channel {
        password: &connector.options.password,
        is_private: tls.is_some_and(TlsClient::verifies) || matches!(address, Address::Unix(_)),
        is_encrypted: tls.is_some(),
        key: connector.server_public_key.as_ref(),
        may_request_key: is_local || connector.allow_public_key_retrieval,
    };
    let mut authenticator = Authenticator::for_greeting(greeting.plugin, greeting.challenge);
    stream.send_response(connector, &mut authenticator, &channel, capabilities).await?;
    let method = stream.authenticate(authenticator, &channel).await?;
    session.authentication = Some(method.to_owned());
    if !stream.socket.bytes.is_empty() {
        return Err(WireError::Protocol("data after the end of the login".into()));
    }
    let socket = stream.socket.socket;
    Ok(Login {
        socket: match connector.compression {
            Compression::None => socket,
            compression => Socket::Compressed(Box::new(compressed::Stream::new(socket, compression))),
        },
        session,
        id,
        deprecate_eof: capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
    })
}

/// The capabilities to use if the server offers them.
fn requested_capabilities(connector: &MysqlConnector) -> CapabilityFlags {
    let mut flags = CAPABILITIES;
    flags.set(CapabilityFlags::CLIENT_LOCAL_FILES, connector.local_data);
    let several = CapabilityFlags::CLIENT_MULTI_STATEMENTS
        | CapabilityFlags::CLIENT_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PS_MULTI_RESULTS;
    flags.set(several, connector.multi_statements);
    flags.set(CapabilityFlags::CLIENT_FOUND_ROWS, !connector.only_changed_rows);
    flags
}

/// The TLS client to use with this server at this address; `None` for no encryption.
fn tls_client<'a>(
    connector: &'a MysqlConnector,
    address: &Address,
    offered: CapabilityFlags,
) -> Result<Option<&'a TlsClient>, WireError> {
    let is_offered = offered.contains(CapabilityFlags::CLIENT_SSL);
    match connector.options.tls_for(address) {
        Some(tls) if !is_offered && tls.is_required() => {
            Err(tls.not_offered_error(address, "give the server a certificate (ssl_cert, ssl_key)"))
        }
        tls => Ok(tls.filter(|_| is_offered)),
    }
}

fn compression_flag(
    compression: Compression,
    offered: CapabilityFlags,
) -> Result<CapabilityFlags, WireError> {
    let (flag, name) = match compression {
        Compression::None => return Ok(CapabilityFlags::empty()),
        Compression::Zlib => (CapabilityFlags::CLIENT_COMPRESS, "zlib"),
        Compression::Zstd { .. } => (CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM, "zstd"),
    };
    if offered.contains(flag) {
        return Ok(flag);
    }
    Err(WireError::refused(
        CR_COMPRESSION_WRONGLY_CONFIGURED,
        format!("the server offers no {name} compression"),
        "use another compression or none; see protocol_compression_algorithms in MySQL; MariaDB supports only zlib",
    ))
}

fn compression_name(compression: Compression) -> Option<String> {
    match compression {
        Compression::None => None,
        Compression::Zlib => Some("zlib".into()),
        Compression::Zstd { level } => Some(format!("zstd {level}")),
    }
}

/// The packets of a login.
struct PacketStream {
    socket: LoginSocket,
    /// Number of the next packet to send.
    sequence: u8,
}

impl PacketStream {
    async fn read(&mut self) -> Result<Vec<u8>, WireError> {
        self.socket.count_message()?;
        loop {
            if let Some((number, payload)) = take_packet(&mut self.socket.bytes)? {
                self.sequence = number.wrapping_add(1);
                return Ok(payload);
            }
            self.socket.receive().await?;
        }
    }

    async fn send(&mut self, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
        let mut out = Vec::new();
        write_packet(&mut out, self.sequence, body);
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&out).await
    }

    async fn send_response(
        &mut self,
        connector: &MysqlConnector,
        authenticator: &mut Authenticator,
        channel: &Channel<'_>,
        capabilities: CapabilityFlags,
    ) -> Result<(), WireError> {
        let response = HandshakeResponse::new(
            Some(authenticator.answer(channel)?),
            (5, 7, 0), // A version for which the library selects utf8mb4_general_ci.
            Some(connector.options.user.as_bytes()),
            Some(connector.options.database.as_bytes()),
            Some(AuthPlugin::from_bytes(authenticator.name().as_bytes())),
            capabilities,
            None,
            MAX_ALLOWED_PACKET,
        );
        self.send(|out| {
            response.serialize(out);
            if let Compression::Zstd { level } = connector.compression {
                out.push(level);
            }
        })
        .await
    }

    /// Replies to the server until it accepts the account. Returns the name of the last authentication method.
    async fn authenticate(
        &mut self,
        mut authenticator: Authenticator,
        channel: &Channel<'_>,
    ) -> Result<&'static str, WireError> {
        loop {
            let payload = self.read().await?;
            let answer = match payload.split_first() {
                Some((0x00, _)) => return Ok(authenticator.name()),
                Some((0xff, _)) => return Err(server_error(&payload)),
                Some((0x01, data)) => authenticator.answer_data(data, channel)?,
                Some((0xfe, request)) => {
                    let end = request.iter().position(|&byte| byte == 0).unwrap_or(request.len());
                    let challenge = request.get(end + 1..).unwrap_or_default();
                    authenticator = Authenticator::for_plugin(&request[..end], challenge)?;
                    Some(authenticator.answer(channel)?)
                }
                other => {
                    let packet = other.map_or_else(
                        || "an empty packet".into(),
                        |(byte, _)| format!("a packet of type 0x{byte:02x}"),
                    );
                    return Err(WireError::Protocol(format!("{packet} during a login")));
                }
            };
            if let Some(answer) = answer {
                self.send(|out| out.extend_from_slice(&answer)).await?;
            }
        }
    }
}

/// Removes the first packet from `bytes` and returns it with its sequence number; `None` while it is incomplete.
fn take_packet(bytes: &mut BytesMut) -> Result<Option<(u8, Vec<u8>)>, WireError> {
    let Some(&[a, b, c, sequence]) = bytes.first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes([a, b, c, 0]) as usize;
    if length > PACKET_MAX {
        return Err(WireError::Protocol(format!("a login packet of {length} bytes")));
    }
    if bytes.len() < 4 + length {
        return Ok(None);
    }
    let packet = bytes.split_to(4 + length);
    Ok(Some((sequence, packet[4..].to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_removed_one_by_one() {
        // The server's packets after a fast caching_sha2_password: the end of the proof, and OK right after it.
        let mut bytes = BytesMut::from(b"\x02\0\0\x02\x01\x03\x03\0\0\x03\0\0".as_slice());
        assert_eq!(take_packet(&mut bytes).unwrap(), Some((2, vec![1, 3])));
        assert_eq!(take_packet(&mut bytes).unwrap(), None);
        bytes.extend_from_slice(&[0]);
        assert_eq!(take_packet(&mut bytes).unwrap(), Some((3, vec![0, 0, 0])));
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_compression_that_is_not_offered_is_refused() {
        let offered = CapabilityFlags::CLIENT_COMPRESS;
        assert_eq!(compression_flag(Compression::Zlib, offered).unwrap(), offered);
        let refused = compression_flag(Compression::Zstd { level: 3 }, offered);
        assert!(matches!(refused, Err(WireError::Refused { text, .. }) if text.contains("zstd")));
    }
}
