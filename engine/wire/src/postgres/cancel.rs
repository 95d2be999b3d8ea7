//! Cancels statements of other sessions by requests that need no login, so they work on a server without a free
//! connection too.

use tokio::task::JoinSet;

use super::login::request_cancel;
use crate::open_sessions::SessionKey;
use crate::{SessionOptions, WireError};

/// Maximum requests at the same time.
const REQUESTS_MAX: usize = 64;

/// Sends a request for each session. Must run in a `LocalSet`.
pub(super) async fn cancel(options: &SessionOptions, number: u64, sessions: &[SessionKey]) {
    let mut requests = JoinSet::new();
    for &key in sessions {
        let SessionKey::Postgres { process, secret } = key else { continue };
        if requests.len() >= REQUESTS_MAX {
            requests.join_next().await;
        }
        let options = options.clone();
        requests.spawn_local(async move {
            let send = async |socket, address: &_| -> Result<(), WireError> {
                request_cancel(socket, &options, address, (process, secret)).await
            };
            // The server sends no answer; it closes the connection.
            let _ = options.connect(number, send).await;
        });
    }
    while requests.join_next().await.is_some() {}
}
