//! From a connected socket to a session: greeting, encryption, authentication, compression.
//!
//! ```text
//! server: greeting ─▶ client: [SSL request, TLS handshake] ─▶ response with the first proof
//!   server: other method / more data ─▶ client: proof   … until OK or error ─▶ [compression begins]
//! ```
//! What the client says is written by `mysql_common`; what the server says is read here, in [`greeting`] and below.
//! What may be told to whom is decided in [`auth`].
//!
//! Source: "Connection Phase" in the MySQL internals manual, "Connection" in the MariaDB Knowledge Base.

mod auth;
mod greeting;

use dbdyno_schema::plan::Compression;
use dbdyno_schema::record::Session;
use mysql_common::constants::CapabilityFlags;
use mysql_common::packets::{AuthPlugin, HandshakeResponse, SslRequest};
use mysql_common::proto::MySerialize;

use self::auth::{Channel, Proof};
use self::greeting::Greeting;
use super::connector::MysqlConnector;
use super::fields::{server_error, words};
use super::message::packet;
use crate::Address;
use crate::socket::Socket;
use crate::tls::{self, TlsClient};
use crate::trouble::{Trouble, lost};
use crate::{WireError, compressed};

/// Longest packet of a login that is believed; greetings have some 100 bytes, keys some 500.
const PACKET_MAX: usize = 64 * 1024;
/// Packets of one login; the longest way, with a key asked for, has 6.
const PACKETS_MAX: u32 = 20;
/// Largest packet this client announces.
const MAX_ALLOWED_PACKET: u32 = 16 << 20;
/// utf8mb4_general_ci, which every supported server has.
const COLLATION: u8 = 45;
/// Error number of MySQL's own clients for a compression that cannot be had.
const CR_COMPRESSION_WRONGLY_CONFIGURED: u16 = 2065;

const WANTED: CapabilityFlags = CapabilityFlags::CLIENT_PROTOCOL_41
    .union(CapabilityFlags::CLIENT_LONG_PASSWORD)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);

/// What the login found out.
pub(super) struct LoggedIn {
    pub(super) socket: Socket,
    pub(super) session: Session,
    pub(super) deprecate_eof: bool,
}

/// Logs in on a socket that is connected to `address`.
pub(super) async fn log_in(
    socket: Socket,
    connector: &MysqlConnector,
    address: &Address,
) -> Result<LoggedIn, WireError> {
    let mut line = Line { socket, bytes: Vec::new(), sequence: 0, left: PACKETS_MAX };
    let greeting = line.read().await?;
    if greeting.first() == Some(&0xff) {
        return Err(server_error(&greeting));
    }
    let greeting = Greeting::read(&greeting)?;
    let offered = greeting.capabilities;
    let mut capabilities = (offered & wanted(connector)) | compression_flag(connector.compression, offered)?;
    let is_local = line.socket.is_local();
    let tls = encryption(connector, address, offered)?;
    let mut session = Session {
        // MariaDB up to 10.11 puts "5.5.5-" in front, for replicas that read the first digit only.
        server_version: words(greeting.version).trim_start_matches("5.5.5-").to_owned(),
        compression: compression_words(connector.compression),
        ..Session::default()
    };
    if let Some(tls) = tls {
        capabilities |= CapabilityFlags::CLIENT_SSL;
        let request = SslRequest::new(capabilities, MAX_ALLOWED_PACKET, COLLATION);
        line.send(|out| request.serialize(out)).await?;
        let words;
        (line, words) = line.encrypt(tls, address).await?;
        session.tls = Some(words);
    }
    let channel = Channel {
        password: &connector.password,
        is_private: tls.is_some_and(TlsClient::verifies) || matches!(address, Address::Unix(_)),
        is_encrypted: tls.is_some(),
        key: connector.server_public_key.as_ref(),
        may_ask_key: is_local || connector.allow_public_key_retrieval,
    };
    let mut proof = Proof::of_greeting(greeting.plugin, greeting.challenge);
    line.respond(connector, &mut proof, &channel, capabilities).await?;
    let authentication = line.follow(proof, &channel).await?;
    session.authentication = Some(authentication.to_owned());
    Ok(LoggedIn {
        socket: match connector.compression {
            Compression::None => line.end()?,
            chosen => Socket::Compressed(Box::new(compressed::Stream::new(line.end()?, chosen))),
        },
        session,
        deprecate_eof: capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
    })
}

/// What is asked for, as far as the server offers it.
fn wanted(connector: &MysqlConnector) -> CapabilityFlags {
    let mut wanted = WANTED;
    wanted.set(CapabilityFlags::CLIENT_LOCAL_FILES, connector.local_data);
    let several = CapabilityFlags::CLIENT_MULTI_STATEMENTS
        | CapabilityFlags::CLIENT_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PS_MULTI_RESULTS;
    wanted.set(several, connector.multi_statements);
    wanted
}

/// The TLS to use with this server at this address, if any.
fn encryption<'a>(
    connector: &'a MysqlConnector,
    address: &Address,
    offered: CapabilityFlags,
) -> Result<Option<&'a TlsClient>, WireError> {
    let Some(tls) = &connector.tls else { return Ok(None) };
    let is_offered = offered.contains(CapabilityFlags::CLIENT_SSL);
    if !is_offered && tls.is_demanded() {
        return Err(tls::refused(
            format!("{address}: the server offers no TLS, and tls mode {} demands it", tls.mode()),
            "give the server a certificate (ssl_cert, ssl_key), or use tls mode preferred or disabled",
        ));
    }
    // What stays inside one machine is encrypted on demand only, as MySQL's own clients do.
    let is_wanted = tls.is_demanded() || matches!(address, Address::Tcp(..));
    Ok((is_offered && is_wanted).then_some(tls))
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
    Err(WireError::Refused {
        code: CR_COMPRESSION_WRONGLY_CONFIGURED,
        text: format!("the server offers no {name} compression"),
        way_out: "use another compression or none; MySQL has protocol_compression_algorithms, MariaDB has zlib only"
            .into(),
    })
}

fn compression_words(compression: Compression) -> Option<String> {
    match compression {
        Compression::None => None,
        Compression::Zlib => Some("zlib".into()),
        Compression::Zstd { level } => Some(format!("zstd {level}")),
    }
}

/// A socket during the login: whole packets, and bytes that came too early.
struct Line {
    socket: Socket,
    bytes: Vec<u8>,
    /// Of the next packet to send.
    sequence: u8,
    /// Packets that the server may still send.
    left: u32,
}

impl Line {
    /// Reads one packet.
    async fn read(&mut self) -> Result<Vec<u8>, WireError> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| WireError::Protocol(format!("more than {PACKETS_MAX} packets in a login")))?;
        let Self { socket, bytes, sequence, .. } = self;
        loop {
            if let Some((number, payload)) = take_packet(bytes)? {
                *sequence = number.wrapping_add(1);
                return Ok(payload);
            }
            let more = socket.receive(|piece| {
                bytes.extend_from_slice(piece);
                Ok(Some(()))
            });
            more.await.map_err(Trouble::into_wire)?;
        }
    }

    async fn send(&mut self, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
        let mut out = Vec::new();
        packet(&mut out, self.sequence, body);
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&out).await.map_err(lost)
    }

    /// Goes on inside TLS. Returns its version and cipher suite.
    async fn encrypt(mut self, tls: &TlsClient, address: &Address) -> Result<(Self, String), WireError> {
        let host = match address {
            Address::Tcp(host, _) => host,
            Address::Unix(_) => "localhost",
        };
        // Whatever came in plain after the greeting did not come from the server: nothing was due.
        if !self.bytes.is_empty() {
            return Err(WireError::Protocol("data between the greeting and TLS".into()));
        }
        let stream = tls.secure(self.socket, host).await?;
        let words = tls::describe(stream.get_ref().1);
        self.socket = Socket::Tls(Box::new(stream));
        Ok((self, words))
    }

    async fn respond(
        &mut self,
        connector: &MysqlConnector,
        proof: &mut Proof,
        channel: &Channel<'_>,
        capabilities: CapabilityFlags,
    ) -> Result<(), WireError> {
        let response = HandshakeResponse::new(
            Some(proof.answer(channel)?),
            (5, 7, 0), // Only chooses utf8mb4_general_ci.
            Some(connector.user.as_bytes()),
            Some(connector.database.as_bytes()),
            Some(AuthPlugin::from_bytes(proof.name().as_bytes())),
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

    /// Answers the server until it lets us in. Returns the name of the method that did it.
    async fn follow(&mut self, mut proof: Proof, channel: &Channel<'_>) -> Result<&'static str, WireError> {
        loop {
            let payload = self.read().await?;
            let answer = match payload.split_first() {
                Some((0x00, _)) => return Ok(proof.name()),
                Some((0xff, _)) => return Err(server_error(&payload)),
                Some((0x01, data)) => proof.go_on(data, channel)?,
                Some((0xfe, request)) => {
                    let end = request.iter().position(|&byte| byte == 0).unwrap_or(request.len());
                    let challenge = request.get(end + 1..).unwrap_or_default();
                    proof = Proof::asked_for(&request[..end], challenge)?;
                    Some(proof.answer(channel)?)
                }
                other => {
                    let first = other.map_or_else(|| "nothing".into(), |(byte, _)| format!("0x{byte:02x}"));
                    return Err(WireError::Protocol(format!("{first} in the middle of a login")));
                }
            };
            if let Some(answer) = answer {
                self.send(|out| out.extend_from_slice(&answer)).await?;
            }
        }
    }

    /// The socket after the login. The server now waits for us.
    fn end(self) -> Result<Socket, WireError> {
        if self.bytes.is_empty() {
            return Ok(self.socket);
        }
        Err(WireError::Protocol("data after the end of the login".into()))
    }
}

/// Takes the first packet off `bytes`, with its sequence number; none while it is not complete.
fn take_packet(bytes: &mut Vec<u8>) -> Result<Option<(u8, Vec<u8>)>, WireError> {
    let Some(&[a, b, c, sequence]) = bytes.first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes([a, b, c, 0]) as usize;
    if length > PACKET_MAX {
        return Err(WireError::Protocol(format!("a login packet of {length} bytes")));
    }
    if bytes.len() < 4 + length {
        return Ok(None);
    }
    let payload = bytes[4..4 + length].to_vec();
    bytes.drain(..4 + length);
    Ok(Some((sequence, payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_taken_one_by_one() {
        // What a server sends after a fast caching_sha2_password: the end of the proof, and OK at once.
        let mut bytes = b"\x02\0\0\x02\x01\x03\x03\0\0\x03\0\0".to_vec();
        assert_eq!(take_packet(&mut bytes).unwrap(), Some((2, vec![1, 3])));
        assert_eq!(take_packet(&mut bytes).unwrap(), None);
        bytes.push(0);
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
