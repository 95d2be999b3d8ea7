//! Explains failures caused by a server's limit on connections or prepared statements: how many the run needs, how many
//! are available, and which statement raises the limit.

use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_wire::mysql::errors as mysql_errors;
use dbdyno_wire::postgres::errors::TOO_MANY_CONNECTIONS;
use dbdyno_wire::{Connection, TextRow, WireError};

use crate::failure::RunFailure;

/// The connections and prepared statements that a run needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Connections of all workers and engines.
    pub(crate) connections: u64,
    /// Prepared statements on each connection.
    pub(crate) statements: u64,
}

/// The numbers of connections and prepared statements that all workers of this engine have.
#[derive(Debug, Default)]
pub(crate) struct OpenCounts {
    pub(crate) connections: AtomicU64,
    pub(crate) statements: AtomicU64,
}

/// A limit that the run has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Statements,
    Connections,
    AccountConnections,
    /// PostgreSQL: the limit on the connections to a server. The next two limits apply to a role and to a database.
    PostgresConnections,
    RoleConnections,
    DatabaseConnections,
}

/// PostgreSQL's connection limits, each with the number reserved for administrators and the number in use. A session of
/// the same account with state NULL is about to be refused and does not count.
const POSTGRESQL_LIMITS_SQL: &str = "WITH held AS (SELECT datname, usename FROM pg_stat_activity \
        WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND NOT (usename = session_user AND state IS NULL)) \
    SELECT 'slots', current_setting('max_connections')::int, \
        current_setting('superuser_reserved_connections')::int \
            + COALESCE(current_setting('reserved_connections', true), '0')::int, (SELECT COUNT(*) FROM held) \
    UNION ALL SELECT 'role', rolconnlimit, 0, (SELECT COUNT(*) FROM held WHERE usename = session_user) \
        FROM pg_roles WHERE rolname = session_user AND rolconnlimit >= 0 \
    UNION ALL SELECT 'database', datconnlimit, 0, (SELECT COUNT(*) FROM held WHERE datname = current_database()) \
        FROM pg_database WHERE datname = current_database() AND datconnlimit >= 0";

/// A limit and its use, as the server reports them.
#[derive(Clone, Copy, Debug)]
struct LimitUsage {
    limit: u64,
    /// Connections reserved for administrators.
    reserved: u64,
    /// Number in use by other sessions.
    used_by_others: u64,
}

impl LimitUsage {
    fn available(&self) -> u64 {
        self.limit.saturating_sub(self.reserved).saturating_sub(self.used_by_others)
    }
}

impl Limit {
    /// The limit that an error reports.
    fn from_error(error: &WireError) -> Option<Self> {
        let Some(code) = error.code() else {
            return Self::from_sqlstate(error);
        };
        match code {
            mysql_errors::ER_MAX_PREPARED_STMT_COUNT_REACHED => Some(Limit::Statements),
            mysql_errors::ER_CON_COUNT_ERROR => Some(Limit::Connections),
            mysql_errors::ER_TOO_MANY_USER_CONNECTIONS => Some(Limit::AccountConnections),
            // This code is used for every limit of an account, such as queries per hour.
            mysql_errors::ER_USER_LIMIT_REACHED => {
                error.to_string().contains("max_user_connections").then_some(Limit::AccountConnections)
            }
            _ => None,
        }
    }

    /// PostgreSQL has one SQLSTATE for its three limits. An English message shows which one; for other languages, see
    /// [`tightest_limit`].
    fn from_sqlstate(error: &WireError) -> Option<Self> {
        if error.state()? != TOO_MANY_CONNECTIONS {
            return None;
        }
        let text = error.to_string();
        Some(match () {
            () if text.contains("for role ") => Limit::RoleConnections,
            () if text.contains("for database ") => Limit::DatabaseConnections,
            () => Limit::PostgresConnections,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Limit::Statements => "max_prepared_stmt_count",
            Limit::Connections | Limit::PostgresConnections => "max_connections",
            Limit::AccountConnections => "max_user_connections",
            Limit::RoleConnections => "CONNECTION LIMIT of the role",
            Limit::DatabaseConnections => "CONNECTION LIMIT of the database",
        }
    }

    /// A query whose last column is the number in use.
    fn usage_query(self) -> &'static str {
        match self {
            Limit::Statements => "SHOW GLOBAL STATUS WHERE Variable_name = 'Prepared_stmt_count'",
            Limit::Connections => "SHOW GLOBAL STATUS WHERE Variable_name = 'Threads_connected'",
            Limit::AccountConnections => {
                "SELECT 'processes', COUNT(*) FROM information_schema.processlist \
                 WHERE user = SUBSTRING_INDEX(CURRENT_USER(), '@', 1)"
            }
            Limit::PostgresConnections | Limit::RoleConnections | Limit::DatabaseConnections => {
                POSTGRESQL_LIMITS_SQL
            }
        }
    }

    /// The statement that raises the limit to `value`.
    fn raise_statement(self, value: u64) -> String {
        match self {
            Limit::Statements | Limit::Connections => format!("SET GLOBAL {} = {value}", self.name()),
            Limit::AccountConnections => format!(
                "SET GLOBAL max_user_connections = {value}, or ALTER USER … WITH MAX_USER_CONNECTIONS {value} where the \
                 account has its own limit"
            ),
            Limit::PostgresConnections => {
                format!("ALTER SYSTEM SET max_connections = {value} and restart the server")
            }
            Limit::RoleConnections => format!("ALTER ROLE … CONNECTION LIMIT {value}"),
            Limit::DatabaseConnections => format!("ALTER DATABASE … CONNECTION LIMIT {value}"),
        }
    }

    /// Number of connections or prepared statements that each connection of the run needs.
    fn count_per_connection(self, demand: Demand) -> u64 {
        if self == Limit::Statements { demand.statements } else { 1 }
    }
}

/// Whether the error reports a limit. Connection attempts that are still in progress count against such a limit.
pub(crate) fn is_limit(error: &WireError) -> bool {
    Limit::from_error(error).is_some()
}

/// If a server's limit ended the run, adds the limit, its use and the need to `failure`. The limit is read over
/// `connection`; no connection attempt may be in progress then.
pub(crate) async fn explain<C: Connection>(
    (reason, mut failure): RunFailure,
    error: &WireError,
    connection: Option<&mut C>,
    demand: Demand,
    open_counts: &OpenCounts,
) -> RunFailure {
    let Some(limit) = Limit::from_error(error) else {
        return (reason, failure);
    };
    let own = match limit {
        Limit::Statements => open_counts.statements.load(Ordering::Acquire),
        _ => open_counts.connections.load(Ordering::Acquire),
    };
    let usage = match connection {
        Some(connection) => read_usage(connection, limit, own).await,
        None => None,
    };
    let limit = usage.map_or(limit, |(limit, _)| limit);
    let (text, fix) = describe(limit, demand, usage.map(|(_, usage)| usage));
    failure.text = format!("{}; {text}", failure.text);
    failure.fix = Some(fix);
    (reason, failure)
}

/// Reads the limit and its use; `None` if the server does not report them.
async fn read_usage<C: Connection>(
    connection: &mut C,
    limit: Limit,
    own: u64,
) -> Option<(Limit, LimitUsage)> {
    let in_use = connection.query_rows(limit.usage_query()).await.ok()?;
    if limit.usage_query() == POSTGRESQL_LIMITS_SQL {
        return tightest_limit(&in_use, own);
    }
    let value = connection.query_rows(&format!("SELECT @@{}", limit.name())).await.ok()?;
    let number = |rows: &[TextRow]| rows.first()?.last()?.as_ref()?.parse::<u64>().ok();
    let used_by_others = number(&in_use)?.saturating_sub(own);
    Some((limit, LimitUsage { limit: number(&value)?, reserved: 0, used_by_others }))
}

/// The PostgreSQL limit with the fewest free connections. This choice does not depend on the language of the server's
/// messages.
fn tightest_limit(rows: &[TextRow], own: u64) -> Option<(Limit, LimitUsage)> {
    let read = |row: &TextRow| {
        let [Some(name), Some(value), Some(reserved), Some(in_use)] = &row[..] else {
            return None;
        };
        let limit = match name.as_str() {
            "role" => Limit::RoleConnections,
            "database" => Limit::DatabaseConnections,
            _ => Limit::PostgresConnections,
        };
        let used_by_others = in_use.parse::<u64>().ok()?.saturating_sub(own);
        Some((
            limit,
            LimitUsage { limit: value.parse().ok()?, reserved: reserved.parse().ok()?, used_by_others },
        ))
    };
    rows.iter().filter_map(read).min_by_key(|(_, usage)| usage.available())
}

/// The message about the limit, and the statement that raises it.
fn describe(limit: Limit, demand: Demand, usage: Option<LimitUsage>) -> (String, String) {
    let each = limit.count_per_connection(demand);
    let need = demand.connections * each;
    let (what, fewer) = if limit == Limit::Statements {
        (
            format!("{} connections with {each} prepared statements each need {need}", demand.connections),
            "use fewer connections or tables, or send the statements as text",
        )
    } else {
        (format!("the run needs {need} connections"), "use fewer connections")
    };
    let Some(usage) = usage else {
        return (what, format!("{} at least, or {fewer}", limit.raise_statement(need)));
    };
    let LimitUsage { limit: value, reserved, used_by_others } = usage;
    let fitting = usage.available() / each.max(1);
    let reserved_text = if reserved > 0 { format!("{reserved} are reserved and ") } else { String::new() };
    let text = format!(
        "{what}, and {} is {value}, of which {reserved_text}others use {used_by_others}: at most {fitting} connections fit",
        limit.name()
    );
    (text, format!("{}, or {fewer}", limit.raise_statement(need + reserved + used_by_others)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: Demand = Demand { connections: 500, statements: 46 };

    #[test]
    fn a_statement_limit_is_explained_with_its_use() {
        let (text, fix) = describe(
            Limit::Statements,
            DEMAND,
            Some(LimitUsage { limit: 16_382, reserved: 0, used_by_others: 12 }),
        );
        assert_eq!(
            text,
            "500 connections with 46 prepared statements each need 23000, and max_prepared_stmt_count is 16382, of \
             which others use 12: at most 355 connections fit"
        );
        assert!(fix.starts_with("SET GLOBAL max_prepared_stmt_count = 23012, or "), "{fix}");
    }

    #[test]
    fn a_connection_limit_is_explained_with_its_use() {
        let (text, fix) = describe(
            Limit::Connections,
            DEMAND,
            Some(LimitUsage { limit: 151, reserved: 0, used_by_others: 2 }),
        );
        assert_eq!(
            text,
            "the run needs 500 connections, and max_connections is 151, of which others use 2: at most 149 \
             connections fit"
        );
        assert_eq!(fix, "SET GLOBAL max_connections = 502, or use fewer connections");
    }

    #[test]
    fn reserved_connections_are_not_available() {
        let (text, fix) = describe(
            Limit::PostgresConnections,
            DEMAND,
            Some(LimitUsage { limit: 100, reserved: 3, used_by_others: 2 }),
        );
        assert_eq!(
            text,
            "the run needs 500 connections, and max_connections is 100, of which 3 are reserved and others use 2: at \
             most 95 connections fit"
        );
        assert_eq!(
            fix,
            "ALTER SYSTEM SET max_connections = 505 and restart the server, or use fewer connections"
        );
    }

    #[test]
    fn the_limit_with_the_fewest_free_connections_is_reported() {
        let row = |columns: [&str; 4]| columns.map(|column| Some(column.to_owned())).to_vec();
        let rows = [row(["slots", "100", "3", "12"]), row(["role", "20", "0", "10"])];
        let (limit, usage) = tightest_limit(&rows, 10).unwrap();
        assert_eq!((limit, usage.available(), usage.used_by_others), (Limit::RoleConnections, 20, 0));
        assert!(tightest_limit(&[], 10).is_none());
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_not_reported() {
        let (text, fix) = describe(Limit::Connections, DEMAND, None);
        assert_eq!(text, "the run needs 500 connections");
        assert_eq!(fix, "SET GLOBAL max_connections = 500 at least, or use fewer connections");
    }

    #[test]
    fn errors_identify_their_limits() {
        let server = |code, message: &str| WireError::Server {
            code,
            state: "HY000".into(),
            message: message.into(),
            is_fatal: false,
        };
        assert!(is_limit(&server(1461, "")));
        assert!(is_limit(&server(1226, "has exceeded the 'max_user_connections' resource")));
        assert!(!is_limit(&server(1226, "has exceeded the 'max_queries_per_hour' resource")));
        assert!(!is_limit(&server(1045, "Access denied")));
        let state = |state: &str, message: &str| {
            Limit::from_error(&WireError::Server {
                code: 0,
                state: state.into(),
                message: message.into(),
                is_fatal: false,
            })
        };
        assert_eq!(state("53300", "sorry, too many clients already"), Some(Limit::PostgresConnections));
        assert_eq!(state("53300", "too many connections for role \"x\""), Some(Limit::RoleConnections));
        assert_eq!(
            state("53300", "too many connections for database \"x\""),
            Some(Limit::DatabaseConnections)
        );
        assert_eq!(state("28P01", ""), None);
        assert_eq!(Limit::from_error(&WireError::Lost("for role".into())), None);
    }
}
