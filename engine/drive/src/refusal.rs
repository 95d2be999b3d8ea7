//! What to say when a server has no room for all connections or their prepared statements: how many were wanted,
//! how many fit, and the statement that makes room.

use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_door::record::{EndReason, Failure};
use dbdyno_wire::{Connection, WireError};

/// What a run asks of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Connections, over all workers and engines.
    pub(crate) connections: u64,
    /// Prepared statements on each.
    pub(crate) statements: u64,
}

/// What all workers of this engine hold on the server.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) connections: AtomicU64,
    pub(crate) statements: AtomicU64,
}

/// A limit that the server has run into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Statements,
    Connections,
    AccountConnections,
}

/// What is known of a limit.
#[derive(Clone, Copy, Debug)]
struct Reading {
    limit: u64,
    /// What others hold of it.
    others: u64,
}

impl Limit {
    /// The limit an error tells of.
    fn of(error: &WireError) -> Option<Self> {
        match error.code()? {
            1461 => Some(Limit::Statements),
            1040 => Some(Limit::Connections),
            1203 => Some(Limit::AccountConnections),
            // The resources of an account; the others (queries per hour, say) have nothing to do with room.
            1226 => error.to_string().contains("max_user_connections").then_some(Limit::AccountConnections),
            _ => None,
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Limit::Statements => "max_prepared_stmt_count",
            Limit::Connections => "max_connections",
            Limit::AccountConnections => "max_user_connections",
        }
    }

    /// A query for what is held of it now.
    fn in_use(self) -> &'static str {
        match self {
            Limit::Statements => "SHOW GLOBAL STATUS WHERE Variable_name = 'Prepared_stmt_count'",
            Limit::Connections => "SHOW GLOBAL STATUS WHERE Variable_name = 'Threads_connected'",
            Limit::AccountConnections => {
                "SELECT 'processes', COUNT(*) FROM information_schema.processlist \
                 WHERE user = SUBSTRING_INDEX(CURRENT_USER(), '@', 1)"
            }
        }
    }

    fn each(self, wanted: Wanted) -> u64 {
        if self == Limit::Statements { wanted.statements } else { 1 }
    }
}

/// Whether the error tells of a limit that the attempts under way still count against.
pub(crate) fn is_limit(error: &WireError) -> bool {
    Limit::of(error).is_some()
}

/// `failure` with what can be said of it where a limit of the server has stopped a run. `asked` is a session that may read the limit, and
/// `held` what the run holds while nothing is being opened.
pub(crate) async fn explained<C: Connection>(
    (reason, mut failure): (EndReason, Failure),
    error: &WireError,
    asked: Option<&mut C>,
    wanted: Wanted,
    held: &Held,
) -> (EndReason, Failure) {
    let Some(limit) = Limit::of(error) else {
        return (reason, failure);
    };
    let ours = match limit {
        Limit::Statements => held.statements.load(Ordering::Acquire),
        _ => held.connections.load(Ordering::Acquire),
    };
    let reading = match asked {
        Some(session) => read(session, limit, ours).await,
        None => None,
    };
    let (text, hint) = words(limit, wanted, reading);
    failure.text = format!("{}; {text}", failure.text);
    failure.hint = Some(hint);
    (reason, failure)
}

/// The limit and what others hold; `None` where the server does not tell.
async fn read<C: Connection>(session: &mut C, limit: Limit, ours: u64) -> Option<Reading> {
    let number = |rows: Vec<dbdyno_wire::TextRow>| rows.first()?.last()?.as_ref()?.parse::<u64>().ok();
    let value = number(session.rows(&format!("SELECT @@{}", limit.variable())).await.ok()?)?;
    let in_use = number(session.rows(limit.in_use()).await.ok()?)?;
    Some(Reading { limit: value, others: in_use.saturating_sub(ours) })
}

/// The sentence about the room, and the way out.
fn words(limit: Limit, wanted: Wanted, reading: Option<Reading>) -> (String, String) {
    let (variable, each) = (limit.variable(), limit.each(wanted));
    let need = wanted.connections * each;
    let what = if limit == Limit::Statements {
        format!("{} connections with {each} prepared statements each need {need}", wanted.connections)
    } else {
        format!("{need} connections are wanted")
    };
    let fewer = if limit == Limit::Statements {
        "use fewer connections or tables, or send the statements as text"
    } else {
        "use fewer connections"
    };
    let set = |value: u64| match limit {
        Limit::AccountConnections => format!(
            "SET GLOBAL max_user_connections = {value}, or ALTER USER … WITH MAX_USER_CONNECTIONS {value} where the \
             account has its own limit"
        ),
        _ => format!("SET GLOBAL {variable} = {value}"),
    };
    let Some(Reading { limit: value, others }) = reading else {
        return (what, format!("{} at least, or {fewer}", set(need)));
    };
    let fit = value.saturating_sub(others) / each.max(1);
    let text = format!(
        "{what}, and {variable} is {value}, of which others hold {others}: at most {fit} connections fit"
    );
    (text, format!("{}, or {fewer}", set(need + others)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted = Wanted { connections: 500, statements: 46 };

    #[test]
    fn statements_are_counted_out() {
        let (text, hint) = words(Limit::Statements, WANTED, Some(Reading { limit: 16_382, others: 12 }));
        assert_eq!(
            text,
            "500 connections with 46 prepared statements each need 23000, and max_prepared_stmt_count is 16382, of \
             which others hold 12: at most 355 connections fit"
        );
        assert!(hint.starts_with("SET GLOBAL max_prepared_stmt_count = 23012, or "), "{hint}");
    }

    #[test]
    fn connections_are_counted_out() {
        let (text, hint) = words(Limit::Connections, WANTED, Some(Reading { limit: 151, others: 2 }));
        assert_eq!(
            text,
            "500 connections are wanted, and max_connections is 151, of which others hold 2: at most 149 \
             connections fit"
        );
        assert_eq!(hint, "SET GLOBAL max_connections = 502, or use fewer connections");
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_not_guessed() {
        let (text, hint) = words(Limit::Connections, WANTED, None);
        assert_eq!(text, "500 connections are wanted");
        assert_eq!(hint, "SET GLOBAL max_connections = 500 at least, or use fewer connections");
    }

    #[test]
    fn limits_are_known_by_their_errors() {
        let server =
            |code, message: &str| WireError::Server { code, state: "HY000".into(), message: message.into() };
        assert!(is_limit(&server(1461, "")));
        assert!(is_limit(&server(1226, "has exceeded the 'max_user_connections' resource")));
        assert!(!is_limit(&server(1226, "has exceeded the 'max_queries_per_hour' resource")));
        assert!(!is_limit(&server(1045, "Access denied")));
    }
}
