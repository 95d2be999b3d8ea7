//! Address and login of a session, common to all protocols.

use std::io;
use std::time::Duration;

use crate::address::Address;
use crate::error::WireError;
use crate::open_sessions::OpenSessions;
use crate::scripted::Scripted;
use crate::socket::Socket;
use crate::tls::TlsClient;

/// Options of the sessions with one server, or with several servers in turn.
#[derive(Clone)]
pub struct SessionOptions {
    /// The addresses of the servers; at least one.
    pub addresses: Vec<Address>,
    /// Account or role.
    pub user: String,
    /// Password; empty for none.
    pub password: String,
    /// Schema or database to use.
    pub database: String,
    /// Time limit for connecting and logging in, and for preparing each statement.
    pub timeout: Duration,
    /// Number of connections on which the delay inside the client is sampled (see [`crate::delay`]).
    pub sampled_connections: u64,
    /// The TLS client; `None` if the mode is `disabled`.
    pub tls: Option<TlsClient>,
    /// The sessions of this process, among which every new session is registered.
    pub open_sessions: OpenSessions,
}

impl SessionOptions {
    /// Opens a socket for connection `number` and logs in, both within the time limit.
    pub(crate) async fn connect<C>(
        &self,
        number: u64,
        log_in: impl AsyncFnOnce(Socket, &Address) -> Result<C, WireError>,
    ) -> Result<C, WireError> {
        let address = self.address(number);
        let attempt = async {
            let socket = match address {
                Address::Tcp(host, port) => Socket::connect_tcp(host, *port).await,
                Address::Unix(path) => Socket::connect_unix(path).await,
            };
            let socket = if number < self.sampled_connections {
                socket.and_then(Socket::with_timestamps)
            } else {
                socket
            };
            log_in(socket.map_err(|error| unreachable_error(address, &error))?, address).await
        };
        with_timeout(self.timeout, &address.to_string(), attempt).await
    }

    /// As [`SessionOptions::connect`], but blocks the thread.
    pub(crate) async fn connect_blocking<C: Scripted>(
        &self,
        number: u64,
        log_in: impl AsyncFnOnce(Socket, &Address) -> Result<C, WireError>,
    ) -> Result<C, WireError> {
        let address = self.address(number);
        let socket = Socket::connect_blocking(address, self.timeout)
            .map_err(|error| unreachable_error(address, &error))?;
        let mut connection = log_in(socket, address).await?;
        connection.set_blocking(false);
        Ok(connection)
    }

    /// The TLS client for this address; `None` for no encryption. As in MySQL's own clients, mode `preferred` does not
    /// encrypt unix sockets.
    pub(crate) fn tls_for(&self, address: &Address) -> Option<&TlsClient> {
        self.tls.as_ref().filter(|tls| tls.is_required() || matches!(address, Address::Tcp(..)))
    }

    fn address(&self, number: u64) -> &Address {
        &self.addresses[(number % self.addresses.len() as u64) as usize]
    }
}

fn unreachable_error(address: &Address, error: &io::Error) -> WireError {
    WireError::Lost(format!("{address}: {error}"))
}

/// Awaits `attempt` for at most `limit`. The error names the attempt as `action`.
pub(crate) async fn with_timeout<T>(
    limit: Duration,
    action: &str,
    attempt: impl Future<Output = Result<T, WireError>>,
) -> Result<T, WireError> {
    match tokio::time::timeout(limit, attempt).await {
        Ok(result) => result,
        Err(_) => Err(WireError::Lost(format!("{action}: no answer within {:.1} s", limit.as_secs_f64()))),
    }
}
