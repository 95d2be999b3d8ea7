//! A simulated server: one end of a socket pair, which sends the bytes of an input and records what the client sends.

use std::cell::RefCell;
use std::io::{self, Read};
use std::os::unix::net::UnixStream as StdStream;
use std::time::Duration;

use dbdyno_schema::plan::Compression;
use dbdyno_wire::mysql::{Address, MysqlConnector};
use dbdyno_wire::{OpenSessions, SessionOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

/// The password that the client must not send in clear text.
pub const PASSWORD: &str = "canary-Kj4Z9-q7Wm";

thread_local! {
    static RUNTIME: RefCell<Runtime> =
        RefCell::new(Builder::new_current_thread().enable_all().build().expect("a runtime needs three descriptors"));
}

/// Runs `work` on this thread's event loop and returns its result.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    RUNTIME.with_borrow(|runtime| runtime.block_on(work))
}

/// Options of one session with the simulated server.
pub fn options(password: &str) -> SessionOptions {
    SessionOptions {
        addresses: Vec::new(),
        user: "victim".into(),
        password: password.into(),
        database: "dbdyno".into(),
        timeout: Duration::from_secs(60),
        sampled_connections: 0,
        tls: None,
        open_sessions: OpenSessions::default(),
    }
}

/// A connector for one session with the simulated server.
pub fn connector(
    password: &str,
    compression: Compression,
    allow_public_key_retrieval: bool,
) -> MysqlConnector {
    MysqlConnector {
        options: options(password),
        local_data: true,
        multi_statements: false,
        only_changed_rows: false,
        compression,
        server_public_key: None,
        allow_public_key_retrieval,
    }
}

/// Creates a socket pair and sends `bytes` from the server's end, whose stream then ends. Returns the client's end and the
/// server's end.
pub fn send_input(bytes: &[u8]) -> (UnixStream, StdStream) {
    let (client, mut server) = StdStream::pair().expect("a socket pair");
    io::Write::write_all(&mut server, bytes).expect("an input fits into a socket's buffer");
    server.shutdown(std::net::Shutdown::Write).expect("the socket is open");
    client.set_nonblocking(true).expect("a socket supports this");
    (UnixStream::from_std(client).expect("inside an event loop"), server)
}

/// All bytes that the client has sent. The client must have closed its end.
pub fn read_received(mut server: StdStream) -> Vec<u8> {
    let mut received = Vec::new();
    server.read_to_end(&mut received).expect("a socket on this machine does not fail");
    received
}

/// Sends one segment after the other, and lets the client send between them; then reads until the client closes.
pub async fn send_segments(mut server: UnixStream, segments: Vec<Vec<u8>>) {
    let mut ignored = [0; 4096];
    for segment in segments {
        if server.write_all(&segment).await.is_err() {
            return;
        }
        for _ in 0..3 {
            tokio::task::yield_now().await;
            while server.try_read(&mut ignored).is_ok_and(|count| count > 0) {}
        }
    }
    let _ = server.shutdown().await;
    while server.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
}

/// The address of the simulated server as the client sees it: on another machine if `is_remote`, otherwise a unix socket.
pub fn address(is_remote: bool) -> Address {
    if is_remote { Address::Tcp("192.0.2.1".into(), 3306) } else { Address::Unix("/nowhere".into()) }
}
