//! What a run needs beside the plan: everything that was read from the environment and from files.

use dbdyno_wire::mysql::PublicKey;
use dbdyno_wire::tls::TlsClient;
use dbdyno_workload::Contents;

/// What the plan names and does not hold. Never printed.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Password of the account; empty for none.
    pub password: String,
    /// Encryption by the plan's mode and files; none where the mode is `disabled`.
    pub tls: Option<TlsClient>,
    /// The server's RSA key, where the plan names its file.
    pub server_public_key: Option<PublicKey>,
    /// What the files hold that SQL of the user's own names.
    pub contents: Contents,
}
