//! The server under load, and how the engine connects to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits;
use crate::placeholders::Quoting;

/// The server under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "protocol", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(clippy::large_enum_variant)] // One instance per process.
pub enum Target {
    /// The MySQL protocol: MySQL and MariaDB.
    Mysql {
        /// Where the server listens; at least one endpoint. Connection i, counted from 0 over all engines of the run, uses
        /// endpoint i modulo the number of endpoints.
        endpoints: Vec<Endpoint>,
        /// Account name.
        user: String,
        /// Source of the password. Without it the password is empty.
        #[serde(default)]
        password: Option<Secret>,
        /// Database that contains the tables.
        database: String,
        /// Time limit for opening a connection and logging in, in microseconds.
        #[serde(default = "defaults::connect_timeout_us")]
        connect_timeout_us: u64,
        /// Encryption of the connections.
        #[serde(default)]
        tls: Tls,
        /// Compression of the connections.
        #[serde(default)]
        compression: Compression,
        /// Path of a PEM file with the server's public RSA key. The client encrypts the password with it if the connection
        /// is not encrypted.
        #[serde(default)]
        server_public_key: Option<String>,
        /// Whether the client may request the server's public RSA key from the server if `server_public_key` is not set. An
        /// impostor who answers instead of the server can then read the password. Over loopback and unix sockets the
        /// request is always allowed.
        #[serde(default)]
        allow_public_key_retrieval: bool,
    },
    /// PostgreSQL's protocol, version 3.
    Postgresql {
        /// Where the server listens; at least one endpoint, used in turn as for `mysql`. The path of a unix socket is that
        /// of the socket file, such as /run/postgresql/.s.PGSQL.5432.
        endpoints: Vec<Endpoint>,
        /// Name of the role.
        user: String,
        /// Source of the password. Without it the password is empty.
        #[serde(default)]
        password: Option<Secret>,
        /// Database that contains the tables.
        database: String,
        /// Time limit for opening a connection and logging in, in microseconds.
        #[serde(default = "defaults::connect_timeout_us")]
        connect_timeout_us: u64,
        /// Encryption of the connections.
        #[serde(default)]
        tls: Tls,
        /// Whether the client sends the password in clear text if the server asks for it, over any connection. Everybody
        /// who can read the connection, and an impostor who answers instead of the server, then has the password. Some
        /// servers of this protocol have no other method.
        #[serde(default)]
        allow_clear_text_password: bool,
    },
    /// No server: the engine simulates replies with the row counts that the OLTP workloads expect. For calibrating the
    /// load generator and for tests.
    Null {
        /// Time from a request to its simulated reply, in microseconds.
        #[serde(default)]
        answer_us: u64,
    },
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Endpoint {
    /// A TCP address.
    Tcp {
        /// Host name, IPv4 address, or IPv6 address without brackets.
        host: String,
        /// Port.
        port: u16,
    },
    /// A unix socket.
    Unix {
        /// Path of the socket.
        path: String,
    },
}

/// Source of a secret. The plan never contains the secret itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Secret {
    /// Name of an environment variable.
    Env(String),
    /// Path of a file; one trailing newline is removed.
    File(String),
}

/// Encryption of the connections: TLS 1.2 or 1.3. Files are in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Whether connections are encrypted, and what is verified.
    pub mode: TlsMode,
    /// Path of the trusted CA certificates. The modes `verify-ca` and `verify-identity` need it and trust no other CA.
    pub ca: Option<String>,
    /// Path of the client's certificate chain.
    pub certificate: Option<String>,
    /// Path of the client's private key, without a passphrase.
    pub key: Option<String>,
}

/// Whether connections are encrypted, with MySQL's names and meanings.
///
/// The default is `disabled`: encryption costs CPU time on both sides, and a measurement should include it only on
/// request. The password is still safe: the client sends it in clear text only with `allow_clear_text_password`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// No connection is encrypted.
    #[default]
    Disabled,
    /// TCP connections are encrypted if the server supports it; the certificate is not verified.
    Preferred,
    /// Every connection is encrypted; the certificate is not verified.
    Required,
    /// Every connection is encrypted; a CA in `ca` must have signed the server's certificate.
    VerifyCa,
    /// As `verify-ca`; in addition, the certificate's subjectAltName must contain the host.
    VerifyIdentity,
}

impl TlsMode {
    /// Whether the server's certificate is verified.
    pub fn verifies(self) -> bool {
        matches!(self, TlsMode::VerifyCa | TlsMode::VerifyIdentity)
    }

    /// The mode for a value of `--ssl-mode` of MySQL's programs, such as VERIFY_CA, in upper or lower case.
    pub fn from_mysql_name(name: &str) -> Option<Self> {
        let all = [Self::Disabled, Self::Preferred, Self::Required, Self::VerifyCa, Self::VerifyIdentity];
        all.into_iter().find(|mode| mode.name().replace('-', "_").eq_ignore_ascii_case(name))
    }

    /// The name in a plan.
    pub fn name(self) -> &'static str {
        match self {
            TlsMode::Disabled => "disabled",
            TlsMode::Preferred => "preferred",
            TlsMode::Required => "required",
            TlsMode::VerifyCa => "verify-ca",
            TlsMode::VerifyIdentity => "verify-identity",
        }
    }
}

/// Compression of the protocol. An algorithm that the server does not offer is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Compression {
    /// None.
    #[default]
    None,
    /// zlib at level 6, which MySQL and MariaDB support.
    Zlib,
    /// zstd, which MySQL supports from 8.0.18 on.
    Zstd {
        /// Compression level, from 1 (fast) to 22 (small), for both directions.
        #[serde(default = "defaults::zstd_level")]
        level: u8,
    },
}

impl Target {
    /// Where the server listens; empty without a server.
    pub fn endpoints(&self) -> &[Endpoint] {
        match self {
            Target::Mysql { endpoints, .. } | Target::Postgresql { endpoints, .. } => endpoints,
            Target::Null { .. } => &[],
        }
    }

    /// The database with the tables; empty without a server.
    pub fn database(&self) -> &str {
        match self {
            Target::Mysql { database, .. } | Target::Postgresql { database, .. } => database,
            Target::Null { .. } => "",
        }
    }

    /// The quoting rules of the server's SQL.
    pub fn quoting(&self) -> Quoting {
        if self.is_postgresql() { Quoting::Postgresql } else { Quoting::Mysql }
    }

    /// Whether it is a PostgreSQL server.
    pub fn is_postgresql(&self) -> bool {
        matches!(self, Target::Postgresql { .. })
    }

    /// Problems of the target, each one sentence with key, value and limit.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let (endpoints, tls, compression) = match self {
            Target::Mysql { endpoints, tls, compression, .. } => (endpoints, tls, *compression),
            Target::Postgresql { endpoints, tls, .. } => (endpoints, tls, Compression::None),
            Target::Null { .. } => return problems,
        };
        let most = limits::ENDPOINTS;
        if !(1..=most).contains(&endpoints.len()) {
            let count = endpoints.len();
            problems.push(format!("target.endpoints has {count} entries; it must have between 1 and {most}"));
        }
        if let Compression::Zstd { level } = compression
            && !(1..=22).contains(&level)
        {
            problems.push(format!("target.compression.zstd.level is {level}; it must be between 1 and 22"));
        }
        problems.extend(tls.problems());
        problems
    }
}

impl Tls {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mode = self.mode.name();
        match &self.ca {
            None if self.mode.verifies() => problems.push(format!(
                "target.tls.ca is missing; mode {mode} needs the certificate file of the CA that signed the server's \
                 certificate"
            )),
            Some(_) if !self.mode.verifies() => problems.push(format!(
                "target.tls.ca is set, but mode {mode} verifies no certificate; use verify-ca or verify-identity"
            )),
            _ => {}
        }
        match (&self.certificate, &self.key) {
            (None, None) => {}
            (Some(_), Some(_)) if self.mode == TlsMode::Disabled => {
                problems.push(
                    "target.tls.certificate is set, but mode disabled does not use it; leave it out or change mode".into(),
                );
            }
            (Some(_), Some(_)) => {}
            (Some(_), None) => {
                problems.push("target.tls.key is missing; target.tls.certificate needs it".into());
            }
            (None, Some(_)) => {
                problems.push("target.tls.certificate is missing; target.tls.key needs it".into());
            }
        }
        problems
    }
}

mod defaults {
    pub fn connect_timeout_us() -> u64 {
        10_000_000
    }
    pub fn zstd_level() -> u8 {
        3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(change: serde_json::Value) -> Vec<String> {
        let mut target = serde_json::json!({"protocol": "mysql", "endpoints": [{"unix": {"path": "/s"}}],
                                            "user": "u", "database": "d"});
        target.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        serde_json::from_value::<Target>(target).unwrap().problems()
    }

    #[test]
    fn minimal_and_complete_targets_have_no_problems() {
        assert!(problems(serde_json::json!({})).is_empty());
        let tls = serde_json::json!({"mode": "verify-identity", "ca": "a", "certificate": "c", "key": "k"});
        assert!(problems(serde_json::json!({"tls": tls, "compression": {"zstd": {"level": 22}}})).is_empty());
    }

    #[test]
    fn all_problems_are_reported_together() {
        let tls = serde_json::json!({"mode": "verify-ca", "key": "k"});
        let found =
            problems(serde_json::json!({"endpoints": [], "tls": tls, "compression": {"zstd": {"level": 0}}}));
        let keys =
            ["target.endpoints", "target.compression.zstd.level", "target.tls.ca", "target.tls.certificate"];
        assert_eq!(found.len(), keys.len(), "{found:?}");
        assert!(keys.iter().zip(&found).all(|(key, problem)| problem.starts_with(key)), "{found:?}");
    }

    #[test]
    fn tls_files_that_the_mode_does_not_use_are_problems() {
        let found = problems(serde_json::json!({"tls": {"mode": "required", "ca": "a"}}));
        assert!(found[0].contains("mode required verifies no certificate"), "{found:?}");
        let found = problems(serde_json::json!({"tls": {"certificate": "c", "key": "k"}}));
        assert!(found[0].contains("mode disabled does not use it"), "{found:?}");
    }
}
