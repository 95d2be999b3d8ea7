//! What an error means for a run, whatever code its product gives it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an error means for a run. The tables from codes to classes are `mysql::errors` and `postgres::errors` in `wire`.
///
/// In ascending order of severity: where the same code occurred with two classes, the record keeps the more severe one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// None of the others.
    Other,
    /// A row with this unique key exists already.
    DuplicateKey,
    /// A concurrent transaction changed the same data, and the server refuses to go on with an old snapshot.
    Serialization,
    /// Another transaction held a lock for too long, or at all under NOWAIT.
    LockTimeout,
    /// Transactions waited for each other, and the server rolled one of them back.
    Deadlock,
    /// No session began: nothing listens there, access is denied, or there are too many connections.
    Refused,
    /// The connection ended.
    Lost,
}
