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
        /// Where the server listens; at least one endpoint. Connection i of the run, counted from 0 over the complete
        /// fleet, uses endpoint i modulo their count.
        endpoints: Vec<Endpoint>,
        /// Account name.
        user: String,
        /// Where the password is found; none means an empty password.
        #[serde(default)]
        password: Option<Secret>,
        /// Schema that holds the tables.
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
        /// Path of a file with the server's public RSA key in PEM, which encrypts the password where the connection is not
        /// encrypted.
        #[serde(default)]
        server_public_key: Option<String>,
        /// Whether the client requests that key from the server if no file holds it. An impostor who answers instead of the
        /// server can then read the password. Loopback and unix sockets need no permission.
        #[serde(default)]
        allow_public_key_retrieval: bool,
    },
    /// PostgreSQL's protocol, version 3.
    Postgresql {
        /// Where the server listens; at least one endpoint, used in turn as for `mysql`. A unix socket is named by its path,
        /// such as /run/postgresql/.s.PGSQL.5432.
        endpoints: Vec<Endpoint>,
        /// Name of the role.
        user: String,
        /// Where the password is found; none means an empty password.
        #[serde(default)]
        password: Option<Secret>,
        /// Database that holds the tables.
        database: String,
        /// Time limit for opening a connection and logging in, in microseconds.
        #[serde(default = "defaults::connect_timeout_us")]
        connect_timeout_us: u64,
        /// Encryption of the connections.
        #[serde(default)]
        tls: Tls,
    },
    /// No server: the engine returns the row counts that the OLTP family expects. For calibrating the load generator and
    /// for tests.
    Null {
        /// Time from a request to its answer, in microseconds.
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
        /// Host name, or an address of IPv4 or IPv6 without brackets.
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

/// Where a secret is found. The secret itself never enters a plan.
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
    /// Path of the trusted CA certificates; required to verify, and no other CA is trusted.
    pub ca: Option<String>,
    /// Path of the client's certificate chain.
    pub certificate: Option<String>,
    /// Path of the client's private key, without a passphrase.
    pub key: Option<String>,
}

/// Whether connections are encrypted, with MySQL's names and meanings.
///
/// The default is `disabled`: encryption costs CPU time on both sides, and a measurement should include it only on
/// request. The password is still safe: the client never sends it in clear text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// No connection is encrypted.
    #[default]
    Disabled,
    /// Over TCP if the server supports it; nothing is verified.
    Preferred,
    /// Always; nothing is verified.
    Required,
    /// Always; a CA in `ca` must have signed the server's certificate.
    VerifyCa,
    /// As `verify-ca`, and the certificate's subjectAltName must contain the host.
    VerifyIdentity,
}

impl TlsMode {
    /// Whether the server's certificate is verified.
    pub fn verifies(self) -> bool {
        matches!(self, TlsMode::VerifyCa | TlsMode::VerifyIdentity)
    }

    /// The mode that MySQL's own programs call `word`, with underscores and in either case.
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::Disabled, Self::Preferred, Self::Required, Self::VerifyCa, Self::VerifyIdentity];
        all.into_iter().find(|mode| mode.name().replace('-', "_").eq_ignore_ascii_case(word))
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
    /// zlib at level 6: MySQL and MariaDB.
    Zlib,
    /// zstd: MySQL from 8.0.18 on.
    Zstd {
        /// From 1 (fast) to 22 (small); the server uses it too.
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

    /// The quoting rules of the server's SQL.
    pub fn quoting(&self) -> Quoting {
        if self.is_postgresql() { Quoting::Postgresql } else { Quoting::Mysql }
    }

    /// Whether it is a PostgreSQL server.
    pub fn is_postgresql(&self) -> bool {
        matches!(self, Target::Postgresql { .. })
    }

    /// Errors in the target, each one sentence with key, value and limit.
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
                "target.tls.ca is missing; mode {mode} needs the file of the authority that signed the server's \
                 certificate"
            )),
            Some(_) if !self.mode.verifies() => problems.push(format!(
                "target.tls.ca is set, but mode {mode} verifies nothing; use verify-ca or verify-identity"
            )),
            _ => {}
        }
        match (&self.certificate, &self.key) {
            (None, None) => {}
            (Some(_), Some(_)) if self.mode == TlsMode::Disabled => {
                problems.push("target.tls.certificate is set, but mode disabled does not use it".into());
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
    fn the_least_and_the_most_of_a_target_are_fine() {
        assert!(problems(serde_json::json!({})).is_empty());
        let tls = serde_json::json!({"mode": "verify-identity", "ca": "a", "certificate": "c", "key": "k"});
        assert!(problems(serde_json::json!({"tls": tls, "compression": {"zstd": {"level": 22}}})).is_empty());
    }

    #[test]
    fn all_problems_come_at_once() {
        let tls = serde_json::json!({"mode": "verify-ca", "key": "k"});
        let told =
            problems(serde_json::json!({"endpoints": [], "tls": tls, "compression": {"zstd": {"level": 0}}}));
        let keys =
            ["target.endpoints", "target.compression.zstd.level", "target.tls.ca", "target.tls.certificate"];
        assert_eq!(told.len(), keys.len(), "{told:?}");
        assert!(keys.iter().zip(&told).all(|(key, problem)| problem.starts_with(key)), "{told:?}");
    }

    #[test]
    fn an_authority_that_nobody_asks_is_told() {
        let told = problems(serde_json::json!({"tls": {"mode": "required", "ca": "a"}}));
        assert!(told[0].contains("mode required verifies nothing"), "{told:?}");
        let told = problems(serde_json::json!({"tls": {"certificate": "c", "key": "k"}}));
        assert!(told[0].contains("mode disabled does not use it"), "{told:?}");
    }
}
