//! With whom the engine speaks, and how it gets in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits;

/// With whom the engine speaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "protocol", rename_all = "kebab-case", deny_unknown_fields)]
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
    },
    /// Answers from memory: calibrates the generator and tests without a server.
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

impl Target {
    /// What is wrong with the target, each as one sentence with key, value and limit.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Target::Mysql { endpoints, .. } = self
            && !(1..=limits::ENDPOINTS).contains(&endpoints.len())
        {
            let count = endpoints.len();
            let most = limits::ENDPOINTS;
            faults.push(format!("target.endpoints names {count} places; it must be between 1 and {most}"));
        }
        faults
    }
}

mod defaults {
    pub fn connect_timeout_us() -> u64 {
        10_000_000
    }
}
