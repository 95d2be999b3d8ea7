//! A server made of bytes: the other end of a socket pair, which says what the input holds and notes what it hears.

use std::cell::RefCell;
use std::io::{self, Read};
use std::os::unix::net::UnixStream as StdStream;
use std::time::Duration;

use dbdyno_schema::plan::Compression;
use dbdyno_wire::SessionOptions;
use dbdyno_wire::mysql::{Address, MysqlConnector};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

/// The password that must not be heard.
pub const PASSWORD: &str = "canary-Kj4Z9-q7Wm";

thread_local! {
    static RUNTIME: RefCell<Runtime> =
        RefCell::new(Builder::new_current_thread().enable_all().build().expect("a runtime needs three descriptors"));
}

/// Runs `work` to its end on this thread's event loop.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    RUNTIME.with_borrow(|runtime| runtime.block_on(work))
}

/// Options of one session with the server at the other end.
pub fn options(password: &str) -> SessionOptions {
    SessionOptions {
        addresses: Vec::new(),
        user: "victim".into(),
        password: password.into(),
        database: "dbdyno".into(),
        timeout: Duration::from_secs(60),
        sampled_connections: 0,
        tls: None,
    }
}

/// A connector for one session with the server at the other end.
pub fn connector(
    password: &str,
    compression: Compression,
    allow_public_key_retrieval: bool,
) -> MysqlConnector {
    MysqlConnector {
        options: options(password),
        local_data: true,
        multi_statements: false,
        compression,
        server_public_key: None,
        allow_public_key_retrieval,
    }
}

/// The client's end of a pair whose other end says all of `bytes` and then nothing more, and that other end.
pub fn saying(bytes: &[u8]) -> (UnixStream, StdStream) {
    let (client, mut server) = StdStream::pair().expect("a socket pair");
    io::Write::write_all(&mut server, bytes).expect("an input fits into a socket's buffer");
    server.shutdown(std::net::Shutdown::Write).expect("it is open");
    client.set_nonblocking(true).expect("a socket can");
    (UnixStream::from_std(client).expect("inside an event loop"), server)
}

/// Everything that a client, which has gone by now, has said.
pub fn heard(mut server: StdStream) -> Vec<u8> {
    let mut heard = Vec::new();
    server.read_to_end(&mut heard).expect("it was on this machine");
    heard
}

/// Says one segment after the other, each when the client had time to speak; then listens until the client goes.
pub async fn say_in_turn(mut server: UnixStream, segments: Vec<Vec<u8>>) {
    let mut ears = [0; 4096];
    for segment in segments {
        if server.write_all(&segment).await.is_err() {
            return;
        }
        for _ in 0..3 {
            tokio::task::yield_now().await;
            while server.try_read(&mut ears).is_ok_and(|count| count > 0) {}
        }
    }
    let _ = server.shutdown().await;
    while server.read(&mut ears).await.is_ok_and(|count| count > 0) {}
}

/// As an address that is not on this machine, or as one that is.
pub fn address(is_far: bool) -> Address {
    if is_far { Address::Tcp("192.0.2.1".into(), 3306) } else { Address::Unix("/nowhere".into()) }
}
