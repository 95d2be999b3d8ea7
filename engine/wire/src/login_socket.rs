//! A socket during a login, common to all protocols.

use bytes::BytesMut;

use crate::address::Address;
use crate::error::WireError;
use crate::socket::Socket;
use crate::tls::{self, TlsClient};

/// A socket, with the bytes that have arrived during a login.
pub(crate) struct LoginSocket {
    pub(crate) socket: Socket,
    /// Bytes that the login has not processed yet.
    pub(crate) bytes: BytesMut,
    messages_max: u32,
    messages_left: u32,
}

/// The properties of a TLS session that a login uses.
pub(crate) struct TlsSession {
    /// Version and cipher suite.
    pub(crate) description: String,
    /// The server's certificate in DER.
    pub(crate) certificate: Option<Vec<u8>>,
}

impl LoginSocket {
    /// The socket of a login in which the server may send at most `messages_max` messages.
    pub(crate) fn new(socket: Socket, messages_max: u32) -> Self {
        Self { socket, bytes: BytesMut::new(), messages_max, messages_left: messages_max }
    }

    /// Counts a message of the server. Fails if there are too many.
    pub(crate) fn count_message(&mut self) -> Result<(), WireError> {
        let too_many = || WireError::Protocol(format!("more than {} messages in a login", self.messages_max));
        self.messages_left = self.messages_left.checked_sub(1).ok_or_else(too_many)?;
        Ok(())
    }

    /// Waits for more bytes.
    pub(crate) async fn receive(&mut self) -> Result<(), WireError> {
        let Self { socket, bytes, .. } = self;
        let more = socket.receive(|piece| {
            bytes.extend_from_slice(piece);
            Ok(Some(()))
        });
        more.await
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        Ok(self.socket.send(bytes).await?)
    }

    /// Starts TLS.
    pub(crate) async fn encrypt(
        mut self,
        tls: &TlsClient,
        address: &Address,
    ) -> Result<(Self, TlsSession), WireError> {
        // The server sends nothing between the client's request for TLS and the TLS handshake, so an attacker must have
        // injected these bytes (CVE-2021-23222).
        if !self.bytes.is_empty() {
            return Err(WireError::Protocol("data between the request for TLS and the TLS handshake".into()));
        }
        let host = match address {
            Address::Tcp(host, _) => host,
            Address::Unix(_) => "localhost",
        };
        let stream = tls.encrypt(self.socket, host).await?;
        let session = stream.get_ref().1;
        let certificate = session.peer_certificates().and_then(|chain| chain.first()).map(|der| der.to_vec());
        let description = tls::describe(session);
        self.socket = Socket::Tls(Box::new(stream));
        Ok((self, TlsSession { description, certificate }))
    }
}
