//! Values that a run needs besides the plan; the caller reads them from the environment and from files.

use dbdyno_wire::mysql::PublicKey;
use dbdyno_wire::tls::TlsClient;
use dbdyno_workload::Contents;

/// Values to which the plan refers only by name. They are never printed.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Password of the account; empty for none.
    pub password: String,
    /// TLS with the plan's mode and files; `None` if the mode is `disabled`.
    pub tls: Option<TlsClient>,
    /// The server's RSA key, if the plan names its file.
    pub server_public_key: Option<PublicKey>,
    /// The content of files that the workload reads.
    pub contents: Contents,
}
