//! Which errors restart an event, and how the engine handles lost connections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the engine handles connections that are lost during the run.
///
/// A lost connection is an error, counted by its code. With `reconnect` the engine reopens it, at first immediately and
/// then after pauses that double from `first_us` to `max_us`, each shortened at random by up to a half so that
/// thousands of users do not reconnect together. The engine prepares its statements again and restarts the event that
/// was interrupted; its latency still counts from the instant it was due. Failed attempts are errors too, counted
/// by their own code. An event whose COMMIT was never answered restarts like any other, because the engine cannot
/// know whether the server committed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reconnect {
    /// Whether the run continues.
    pub on_lost: OnLost,
    /// Longest pause before the second attempt, in microseconds.
    pub first_us: u64,
    /// Longest pause before any attempt, in microseconds.
    pub max_us: u64,
    /// How long a connection may stay lost before the run ends, in microseconds.
    pub give_up_us: u64,
}

/// An error by its code: MySQL numbers errors, PostgreSQL gives each an SQLSTATE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "an error code is a number up to 65535, or an SQLSTATE in quotes")]
pub enum ErrorCode {
    /// A server's error number, such as 1213.
    Number(u16),
    /// An SQLSTATE of five digits and capitals, such as "40P01". MySQL's errors have one too.
    State(String),
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ErrorCode::Number(number) => number.fmt(f),
            ErrorCode::State(state) => f.write_str(state),
        }
    }
}

/// Which errors restart an event instead of ending the run.
///
/// If a listed error means that the connection is lost, the engine reopens it, even with `on_lost = "stop"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// Numbers and SQLSTATEs. The defaults for MySQL: deadlock, record changed and lock wait timeout; for PostgreSQL:
    /// serialization failure, deadlock, and unique violation, because two transactions may insert the same deleted row
    /// again. A broken connection is 2013, or 08006 with PostgreSQL.
    pub codes: Vec<ErrorCode>,
    /// Whether every error restarts an event, whatever its number.
    pub all: bool,
    /// Whether the engine sends a ROLLBACK first. Without it the next BEGIN commits the changes of the failed transaction,
    /// if the server rolled back only the failed statement.
    pub rollback: bool,
}

impl Default for Retry {
    fn default() -> Self {
        let numbers = Self::MYSQL_NUMBERS.map(ErrorCode::Number);
        Self {
            codes: numbers.into_iter().chain(Self::postgresql_codes()).collect(),
            all: false,
            rollback: true,
        }
    }
}

impl Retry {
    /// The default error numbers for MySQL.
    pub const MYSQL_NUMBERS: [u16; 3] = [1213, 1020, 1205];

    /// The default SQLSTATEs for PostgreSQL.
    pub fn postgresql_codes() -> [ErrorCode; 3] {
        ["40001", "40P01", "23505"].map(|state| ErrorCode::State(state.into()))
    }

    /// Whether an error with this number (if any) or this SQLSTATE restarts the event.
    pub fn covers(&self, number: Option<u16>, state: &str) -> bool {
        let is_listed = |code: &ErrorCode| match code {
            ErrorCode::Number(covered) => number == Some(*covered),
            ErrorCode::State(covered) => covered == state,
        };
        self.all || self.codes.iter().any(is_listed)
    }

    /// Problems of these settings, one sentence each.
    pub(super) fn problems(&self) -> Vec<String> {
        let is_state = |state: &str| {
            state.len() == 5 && state.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        };
        let states = self.codes.iter().filter_map(|code| match code {
            ErrorCode::State(state) => Some(state),
            ErrorCode::Number(_) => None,
        });
        states
            .filter(|state| !is_state(state))
            .map(|state| {
                format!(
                    "retry.codes contains {state:?}, which is not an SQLSTATE; write five digits and capitals such as \
                     \"40P01\", or a server's error number without quotes"
                )
            })
            .collect()
    }
}

/// Whether the run continues after a connection is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnLost {
    /// The engine reopens the connection.
    #[default]
    Reconnect,
    /// The run ends.
    Stop,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self { on_lost: OnLost::Reconnect, first_us: 10_000, max_us: 1_000_000, give_up_us: 30_000_000 }
    }
}

impl Reconnect {
    /// Problems of these settings, one sentence each.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut within = |key: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                problems.push(format!("reconnect.{key} is {value}; it must be between {low} and {high}"));
            }
        };
        within("first_us", self.first_us, 1_000, 60_000_000);
        within("max_us", self.max_us, self.first_us.max(1_000), 60_000_000);
        within("give_up_us", self.give_up_us, 0, super::limits::DURATION_US);
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_limits_and_an_order() {
        assert!(Reconnect::default().problems().is_empty());
        let wrong = Reconnect { first_us: 2_000_000, ..Reconnect::default() };
        assert_eq!(
            wrong.problems(),
            ["reconnect.max_us is 1000000; it must be between 2000000 and 60000000"]
        );
        let wrong = Reconnect { first_us: 0, max_us: 0, ..Reconnect::default() };
        assert_eq!(wrong.problems().len(), 2);
    }
}
