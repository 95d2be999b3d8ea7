//! A complete MySQL login with a server that sends the input: greeting, other authentication methods, keys, compression.
//!
//! Input: a byte of switches, then all bytes that the server sends.

use dbdyno_schema::plan::Compression;
use dbdyno_wire::Connection;

use super::server;

/// Logs in.
///
/// # Panics
/// If the client sends the password in clear text to another machine without TLS, or if a server message in the session has
/// control characters.
pub fn check(input: &[u8]) {
    let [switches, bytes @ ..] = input else { return };
    let compression = match switches & 3 {
        1 => Compression::Zlib,
        2 => Compression::Zstd { level: 3 },
        _ => Compression::None,
    };
    let is_remote = switches & 4 != 0;
    let connector = server::connector(server::PASSWORD, compression, switches & 8 != 0);
    let (received, version) = server::run(async {
        let (client, server) = server::send_input(bytes);
        let connected = connector.connect_over(client, &server::address(is_remote)).await;
        // Dropping the connection closes the client's end, which `read_received` requires.
        let version = connected.map(|connection| connection.session().server_version.clone());
        (server::read_received(server), version)
    });
    let secret = server::PASSWORD.as_bytes();
    assert!(
        !is_remote || !received.windows(secret.len()).any(|piece| piece == secret),
        "the password was received"
    );
    match version {
        Ok(version) => {
            assert!(version.chars().count() <= 512 && !version.chars().any(char::is_control), "{version:?}");
        }
        Err(error) => assert!(!error.to_string().contains(server::PASSWORD), "{error}"),
    }
}
