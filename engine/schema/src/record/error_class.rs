//! Classes of errors, common to all database products.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Class of an error. `mysql::errors` and `postgres::errors` in `wire` map error codes to classes.
///
/// In ascending order of severity: if the same code occurred with two classes, the record keeps the more severe one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// None of the others.
    Other,
    /// A row with this unique key exists already.
    DuplicateKey,
    /// A concurrent transaction changed the same data, and the server refuses to continue with an old snapshot.
    Serialization,
    /// Another transaction held a lock for too long, or, with NOWAIT, at all.
    LockTimeout,
    /// Transactions waited for each other, and the server rolled one of them back.
    Deadlock,
    /// No session began: no server listens, access is denied, or there are too many connections.
    Refused,
    /// The connection ended.
    Lost,
}
