//! The server under load, and how the engine connects to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits;
use crate::placeholders::Quoting;

/// The server under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "protocol", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(clippy::large_enum_variant)] // There is one in a process.
pub enum Target {
    /// The MySQL protocol: MySQL and MariaDB.
    Mysql {
        /// Where the server listens, at least one place. Connection number i of the run, counted from 0 over the
        /// whole fleet, goes to number i modulo their number.
        endpoints: Vec<Endpoint>,
        /// Account name.
        user: String,
        /// Where the password is found; none means an empty one.
        #[serde(default)]
        password: Option<Secret>,
        /// Schema that holds the tables.
        database: String,
        /// Time allowed for a connection to open and log in, in microseconds.
        #[serde(default = "defaults::connect_timeout_us")]
        connect_timeout_us: u64,
        /// Encryption of the connections.
        #[serde(default)]
        tls: Tls,
        /// Compression of the connections.
        #[serde(default)]
        compression: Compression,
        /// Path of a file with the server's public RSA key in PEM, by which a password is encrypted where the
        /// connection is not.
        #[serde(default)]
        server_public_key: Option<String>,
        /// Whether the server is asked for that key when no file holds it. An impostor who answers in the server's place
        /// then reads the password. Loopback and unix sockets need no permission.
        #[serde(default)]
        allow_public_key_retrieval: bool,
    },
    /// PostgreSQL's protocol, version 3.
    Postgresql {
        /// Where the server listens, at least one place; taken in turn as for `mysql`. A unix socket is named by its path,
        /// as in /run/postgresql/.s.PGSQL.5432.
        endpoints: Vec<Endpoint>,
        /// Name of the role.
        user: String,
        /// Where the password is found; none means an empty one.
        #[serde(default)]
        password: Option<Secret>,
        /// Database that holds the tables.
        database: String,
        /// Time allowed for a connection to open and log in, in microseconds.
        #[serde(default = "defaults::connect_timeout_us")]
        connect_timeout_us: u64,
        /// Encryption of the connections.
        #[serde(default)]
        tls: Tls,
    },
    /// Answers from memory, as the OLTP family promises: calibrates the generator and tests without a server.
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
    /// Path of a file; one trailing line end is cut off.
    File(String),
}

/// Encryption of the connections: TLS 1.2 or 1.3. Files are in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Whether connections are encrypted, and what is verified.
    pub mode: TlsMode,
    /// Path of the certificates of the authorities that are trusted; needed to verify, and no other is trusted.
    pub ca: Option<String>,
    /// Path of the client's own certificate and those that link it to its authority.
    pub certificate: Option<String>,
    /// Path of the client's private key, without a passphrase.
    pub key: Option<String>,
}

/// Whether connections are encrypted, with MySQL's names and meanings.
///
/// The default is `disabled`, as encryption costs CPU time on both sides and a measurement should have no cost that
/// nobody asked for. A password is safe under it: it never leaves in clear text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// No connection is encrypted.
    #[default]
    Disabled,
    /// Over TCP where the server can; nothing is verified.
    Preferred,
    /// Always; nothing is verified.
    Required,
    /// Always; the server's certificate is signed by one of `ca`.
    VerifyCa,
    /// Always; also the certificate's subjectAltName names the host.
    VerifyIdentity,
}

impl TlsMode {
    /// Whether the server's certificate is verified.
    pub fn verifies(self) -> bool {
        matches!(self, TlsMode::VerifyCa | TlsMode::VerifyIdentity)
    }

    /// The one that MySQL's own programs call `word`, with underscores and in either case.
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::Disabled, Self::Preferred, Self::Required, Self::VerifyCa, Self::VerifyIdentity];
        all.into_iter().find(|mode| mode.name().replace('-', "_").eq_ignore_ascii_case(word))
    }

    /// Its name in a plan.
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

/// Compression of what travels. One that the server does not offer is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Compression {
    /// None.
    #[default]
    None,
    /// By zlib, at its level 6: MySQL and MariaDB.
    Zlib,
    /// By zstd: MySQL from 8.0.18 on.
    Zstd {
        /// From 1 (fast) to 22 (small); the server uses it too.
        #[serde(default = "defaults::zstd_level")]
        level: u8,
    },
}

impl Target {
    /// Where the server listens; nowhere without one.
    pub fn endpoints(&self) -> &[Endpoint] {
        match self {
            Target::Mysql { endpoints, .. } | Target::Postgresql { endpoints, .. } => endpoints,
            Target::Null { .. } => &[],
        }
    }

    /// The quoting rules of its SQL.
    pub fn quoting(&self) -> Quoting {
        if self.is_postgresql() { Quoting::Postgresql } else { Quoting::Mysql }
    }

    /// Whether it is a PostgreSQL server.
    pub fn is_postgresql(&self) -> bool {
        matches!(self, Target::Postgresql { .. })
    }

    /// What is wrong with the target, each as one sentence with key, value and limit.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let (endpoints, tls, compression) = match self {
            Target::Mysql { endpoints, tls, compression, .. } => (endpoints, tls, *compression),
            Target::Postgresql { endpoints, tls, .. } => (endpoints, tls, Compression::None),
            Target::Null { .. } => return faults,
        };
        let most = limits::ENDPOINTS;
        if !(1..=most).contains(&endpoints.len()) {
            let count = endpoints.len();
            faults.push(format!("target.endpoints names {count} places; it must be between 1 and {most}"));
        }
        if let Compression::Zstd { level } = compression
            && !(1..=22).contains(&level)
        {
            faults.push(format!("target.compression.zstd.level is {level}; it must be between 1 and 22"));
        }
        faults.extend(tls.faults());
        faults
    }
}

impl Tls {
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mode = self.mode.name();
        match &self.ca {
            None if self.mode.verifies() => faults.push(format!(
                "target.tls.ca is missing; mode {mode} needs the file of the authority that signed the server's \
                 certificate"
            )),
            Some(_) if !self.mode.verifies() => faults.push(format!(
                "target.tls.ca is given, and mode {mode} verifies nothing; use verify-ca or verify-identity"
            )),
            _ => {}
        }
        match (&self.certificate, &self.key) {
            (None, None) => {}
            (Some(_), Some(_)) if self.mode == TlsMode::Disabled => {
                faults.push("target.tls.certificate is given, and mode disabled has no use for it".into());
            }
            (Some(_), Some(_)) => {}
            (Some(_), None) => {
                faults.push("target.tls.key is missing; a certificate is shown together with its key".into());
            }
            (None, Some(_)) => {
                faults.push("target.tls.certificate is missing; a key alone shows nothing".into());
            }
        }
        faults
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

    fn faults(change: serde_json::Value) -> Vec<String> {
        let mut target = serde_json::json!({"protocol": "mysql", "endpoints": [{"unix": {"path": "/s"}}],
                                            "user": "u", "database": "d"});
        target.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        serde_json::from_value::<Target>(target).unwrap().faults()
    }

    #[test]
    fn the_least_and_the_most_of_a_target_are_fine() {
        assert!(faults(serde_json::json!({})).is_empty());
        let tls = serde_json::json!({"mode": "verify-identity", "ca": "a", "certificate": "c", "key": "k"});
        assert!(faults(serde_json::json!({"tls": tls, "compression": {"zstd": {"level": 22}}})).is_empty());
    }

    #[test]
    fn all_faults_come_at_once() {
        let tls = serde_json::json!({"mode": "verify-ca", "key": "k"});
        let told =
            faults(serde_json::json!({"endpoints": [], "tls": tls, "compression": {"zstd": {"level": 0}}}));
        let keys =
            ["target.endpoints", "target.compression.zstd.level", "target.tls.ca", "target.tls.certificate"];
        assert_eq!(told.len(), keys.len(), "{told:?}");
        assert!(keys.iter().zip(&told).all(|(key, fault)| fault.starts_with(key)), "{told:?}");
    }

    #[test]
    fn an_authority_that_nobody_asks_is_told() {
        let told = faults(serde_json::json!({"tls": {"mode": "required", "ca": "a"}}));
        assert!(told[0].contains("mode required verifies nothing"), "{told:?}");
        let told = faults(serde_json::json!({"tls": {"certificate": "c", "key": "k"}}));
        assert!(told[0].contains("mode disabled has no use for it"), "{told:?}");
    }
}
