//! A whole login against a server that says anything: greeting, other methods, keys, compression.
//!
//! Input: a byte of switches, then all that the server says.

use dbdyno_schema::plan::Compression;
use dbdyno_wire::Connection;

use super::server;

/// Logs in.
///
/// # Panics
/// When the password is heard as it is over what is not private, or the session tells what no terminal should see.
pub fn check(input: &[u8]) {
    let [switches, bytes @ ..] = input else { return };
    let compression = match switches & 3 {
        1 => Compression::Zlib,
        2 => Compression::Zstd { level: 3 },
        _ => Compression::None,
    };
    let is_far = switches & 4 != 0;
    let connector = server::connector(server::PASSWORD, compression, switches & 8 != 0);
    let (heard, version) = server::run(async {
        let (client, server) = server::saying(bytes);
        let connected = connector.connect_over(client, &server::address(is_far)).await;
        // The connection is closed here, so that what was heard has an end.
        let version = connected.map(|connection| connection.session().server_version.clone());
        (server::heard(server), version)
    });
    let secret = server::PASSWORD.as_bytes();
    assert!(!is_far || !heard.windows(secret.len()).any(|piece| piece == secret), "the password was heard");
    match version {
        Ok(version) => {
            assert!(version.chars().count() <= 512 && !version.chars().any(char::is_control), "{version:?}");
        }
        Err(error) => assert!(!error.to_string().contains(server::PASSWORD), "{error}"),
    }
}
