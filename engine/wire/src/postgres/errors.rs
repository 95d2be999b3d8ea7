//! SQLSTATEs of PostgreSQL, and of the proxies before it, by class.

use dbdyno_schema::record::ErrorClass;

/// The class of an SQLSTATE. An error of severity FATAL ends its session whatever its state is; see
/// [`crate::WireError::class`].
pub fn class(state: &str) -> ErrorClass {
    match state {
        "40P01" => ErrorClass::Deadlock,
        // `lock_timeout`, and NOWAIT.
        "55P03" => ErrorClass::LockTimeout,
        "40001" => ErrorClass::Serialization,
        "23505" => ErrorClass::DuplicateKey,
        // A connection that could not be opened or was rejected, and one too many.
        "08001" | "08004" | "53300" => ErrorClass::Refused,
        // Shut down or terminated (57P01), crash of another session (57P02), shutting down or starting (57P03), database
        // dropped (57P04), idle for too long (57P05, and 25P03 in a transaction), too long a transaction (25P04).
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "25P03" | "25P04" => ErrorClass::Lost,
        // The classes of the standard: connection exception, invalid authorization.
        state if state.starts_with("08") => ErrorClass::Lost,
        state if state.starts_with("28") => ErrorClass::Refused,
        _ => ErrorClass::Other,
    }
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
