//! What a target needs beside the plan: everything that was read from the environment and from files.

use std::time::Duration;

use dbdyno_door::plan::{Endpoint, Target};
use dbdyno_wire::mysql::{Address, MysqlConnector, PublicKey};
use dbdyno_wire::tls::TlsClient;

/// What the plan names and does not hold. Never printed.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Password of the account; empty for none.
    pub password: String,
    /// Encryption by the plan's mode and files; none where the mode is `disabled`.
    pub tls: Option<TlsClient>,
    /// The server's RSA key, where the plan names its file.
    pub server_public_key: Option<PublicKey>,
}

/// The connector of a MySQL target.
///
/// # Panics
/// For another target: the caller has looked.
pub(crate) fn mysql_connector(target: &Target, secrets: &Secrets) -> MysqlConnector {
    let Target::Mysql {
        endpoints,
        user,
        database,
        connect_timeout_us,
        compression,
        allow_public_key_retrieval,
        ..
    } = target
    else {
        panic!("not a MySQL target: {target:?}");
    };
    let address = |endpoint: &Endpoint| match endpoint {
        Endpoint::Tcp { host, port } => Address::Tcp(host.clone(), *port),
        Endpoint::Unix { path } => Address::Unix(path.into()),
    };
    MysqlConnector {
        addresses: endpoints.iter().map(address).collect(),
        user: user.clone(),
        password: secrets.password.clone(),
        database: database.clone(),
        timeout: Duration::from_micros(*connect_timeout_us),
        local_data: false,
        multi_statements: false,
        sampled: 0,
        tls: secrets.tls.clone(),
        compression: *compression,
        server_public_key: secrets.server_public_key.clone(),
        allow_public_key_retrieval: *allow_public_key_retrieval,
    }
}
