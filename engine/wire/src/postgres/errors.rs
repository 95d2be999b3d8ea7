//! SQLSTATEs of PostgreSQL and its proxies, with classes and fixes.

use dbdyno_schema::record::ErrorClass;

/// The connection broke.
pub const CONNECTION_FAILURE: &str = "08006";
/// The server does not answer.
pub const UNABLE_TO_CONNECT: &str = "08001";
/// The server violated the protocol.
pub const PROTOCOL_VIOLATION: &str = "08P01";
/// A statement was sent on a closed connection.
pub const CONNECTION_DOES_NOT_EXIST: &str = "08003";
/// `max_connections`, or the limit of a role or a database, is reached.
pub const TOO_MANY_CONNECTIONS: &str = "53300";

/// The classes of SQLSTATEs. An entry of two characters applies to all states that begin with them and are not listed.
pub const CLASSES: [(ErrorClass, &[&str]); 6] = [
    (ErrorClass::Deadlock, &["40P01"]),
    // `lock_timeout`, or NOWAIT on a locked row.
    (ErrorClass::LockTimeout, &["55P03"]),
    (ErrorClass::Serialization, &["40001"]),
    (ErrorClass::DuplicateKey, &["23505"]),
    // The server rejected the connection (08004) or the authorization (28).
    (ErrorClass::Refused, &[UNABLE_TO_CONNECT, "08004", TOO_MANY_CONNECTIONS, "28"]),
    // The connection ends: the server shuts down or an administrator ends the session (57P01), another session crashed
    // (57P02), the server is shutting down or starting (57P03), the database was dropped (57P04), the session was idle
    // for too long (57P05; 25P03 in a transaction), the transaction took too long (25P04); other connection exceptions
    // (08).
    (ErrorClass::Lost, &["57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04", "08"]),
];

/// The class of an SQLSTATE. An error with severity FATAL ends the session, whatever its SQLSTATE; see
/// [`crate::WireError::class`].
pub fn class(state: &str) -> ErrorClass {
    let class_of = |state: &str| CLASSES.iter().find(|(_, states)| states.contains(&state));
    let entry = class_of(state).or_else(|| class_of(state.get(..2)?));
    entry.map_or(ErrorClass::Other, |(class, _)| *class)
}

/// How to fix the cause of an SQLSTATE.
pub(crate) fn fix(state: &str) -> Option<&'static str> {
    Some(match state {
        "28P01" | "28000" => {
            "check user and password, and the entries of pg_hba.conf for this user and host, with and without TLS"
        }
        "3D000" => "create the database, or use another one",
        "42P01" => "load the tables first: prepare with the same options",
        "42501" => "grant the role the rights on its own schema, for example CREATE ON SCHEMA public",
        "53100" => "free space on the server's disk",
        "53200" => "give the server more memory, or use fewer connections or tables",
        TOO_MANY_CONNECTIONS => "raise max_connections, or use fewer connections",
        "57P03" => "wait until the server has started",
        "57P01" | "57P02" => "the server was stopped or the session terminated; see its log",
        "25006" => "connect to the primary server: this one is read-only",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_their_class() {
        let expected = [
            (ErrorClass::Deadlock, &["40P01"][..]),
            (ErrorClass::LockTimeout, &["55P03"]),
            (ErrorClass::Serialization, &["40001"]),
            (
                ErrorClass::Lost,
                &["57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04", "08006", "08P01"],
            ),
            (ErrorClass::DuplicateKey, &["23505"]),
            (ErrorClass::Refused, &["08001", "08004", "28000", "28P01", "53300"]),
            // Syntax error, a cancelled statement, another constraint, no privilege, another rollback, nothing.
            (ErrorClass::Other, &["42601", "57014", "23503", "42501", "40002", ""]),
        ];
        for (expected, states) in expected {
            for state in states {
                assert_eq!(class(state), expected, "{state}");
            }
        }
    }
}
