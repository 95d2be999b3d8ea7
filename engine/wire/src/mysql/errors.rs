//! Error numbers of MySQL, MariaDB and their client libraries, with classes and fixes. The two products use the same
//! numbers for the errors they share.

use dbdyno_schema::record::ErrorClass;

/// `max_connections` is reached.
pub const ER_CON_COUNT_ERROR: u16 = 1040;
/// `max_user_connections` is reached.
pub const ER_TOO_MANY_USER_CONNECTIONS: u16 = 1203;
/// A limit of the account is reached; the message says which one.
pub const ER_USER_LIMIT_REACHED: u16 = 1226;
/// The server cannot prepare this statement, such as BEGIN on MySQL.
pub const ER_UNSUPPORTED_PS: u16 = 1295;
/// `max_prepared_stmt_count` is reached.
pub const ER_MAX_PREPARED_STMT_COUNT_REACHED: u16 = 1461;

// Numbers of the client libraries (errmsg.h).

/// The server does not answer, over a unix socket or in general.
pub const CR_CONNECTION_ERROR: u16 = 2002;
/// The server does not answer over TCP.
pub const CR_CONN_HOST_ERROR: u16 = 2003;
/// Name resolution failed.
pub const CR_UNKNOWN_HOST: u16 = 2005;
/// A statement was sent on a closed connection.
pub const CR_SERVER_GONE_ERROR: u16 = 2006;
/// The connection broke during a statement.
pub const CR_SERVER_LOST: u16 = 2013;
/// TLS failed.
pub const CR_SSL_CONNECTION_ERROR: u16 = 2026;
/// The server violated the protocol.
pub const CR_MALFORMED_PACKET: u16 = 2027;
/// The client does not support the authentication method, or refuses it.
pub const CR_AUTH_PLUGIN_CANNOT_LOAD: u16 = 2059;
/// The server does not offer the requested compression.
pub const CR_COMPRESSION_WRONGLY_CONFIGURED: u16 = 2065;

/// Numbers of the client libraries after which a client has to reconnect.
pub const CLIENT_LOST: [u16; 4] = [CR_SERVER_GONE_ERROR, 2011, CR_SERVER_LOST, 2055];

/// Classes of error numbers.
pub const CLASSES: [(ErrorClass, &[u16]); 6] = [
    // Rolled back because of a deadlock: 1213; in an XA transaction 1614; between user locks 3058 and 3132.
    (ErrorClass::Deadlock, &[1213, 1614, 3058, 3132]),
    // Lock wait timeout: 1205; in an XA transaction 1613; a lock of the locking service 3133; a locked row with NOWAIT
    // 3572 (MySQL). MariaDB reports NOWAIT as 1205.
    (ErrorClass::LockTimeout, &[1205, 1613, 3133, 3572]),
    // The row changed after the transaction's snapshot (1020, MariaDB with `innodb_snapshot_isolation`), or group
    // replication refused the commit (MySQL 3101). TiDB: a write conflict (8002, 8005, 9007), a commit that was rolled
    // back (8022), a changed table (8028). OceanBase: the access cannot be serialized (6235).
    (ErrorClass::Serialization, &[1020, 3101, 6235, 8002, 8005, 8022, 8028, 9007]),
    // The connection ends: the server shuts down (1053, 1077, 1079), closed by force (1080), aborted (1152, 1184),
    // killed (MariaDB 1927, MySQL 3169), idle for too long (MySQL 4031); and the numbers of the client libraries, which
    // proxies pass on. A killed statement is 1317, which leaves the connection open.
    (
        ErrorClass::Lost,
        &[1053, 1077, 1079, 1080, 1152, 1184, 1927, CR_SERVER_GONE_ERROR, CR_SERVER_LOST, 2055, 3169, 4031],
    ),
    // A duplicate unique key: 1062, with the name of the key 1586, without the row 1022, 1169 and 1859, in a table with
    // a foreign key 1557, 1761 and 1762.
    (ErrorClass::DuplicateKey, &[1022, 1062, 1169, 1557, 1586, 1761, 1762, 1859]),
    // The session cannot begin: too many connections, the host (1042, 1129, 1130), the handshake or the authentication
    // method (1043, 1251, 1275), access denied (1044, 1045, 1698), password expired (1820, 1862), account locked (MySQL
    // 3118 and 3955, MariaDB 4151), server offline (MySQL 3032), encryption required (3159); and the numbers of the
    // client libraries.
    (
        ErrorClass::Refused,
        &[
            ER_CON_COUNT_ERROR,
            1042,
            1043,
            1044,
            1045,
            1129,
            1130,
            ER_TOO_MANY_USER_CONNECTIONS,
            ER_USER_LIMIT_REACHED,
            1251,
            1275,
            1698,
            1820,
            1862,
            CR_CONNECTION_ERROR,
            CR_CONN_HOST_ERROR,
            CR_UNKNOWN_HOST,
            CR_SSL_CONNECTION_ERROR,
            CR_AUTH_PLUGIN_CANNOT_LOAD,
            3032,
            3118,
            3159,
            3955,
            4151,
        ],
    ),
];

/// The class of an error number.
pub fn class(number: u16) -> ErrorClass {
    let entry = CLASSES.iter().find(|(_, numbers)| numbers.contains(&number));
    entry.map_or(ErrorClass::Other, |(class, _)| *class)
}

/// How to fix the cause of an error number.
pub(crate) fn fix(number: u16) -> Option<&'static str> {
    Some(match number {
        ER_CON_COUNT_ERROR => "raise max_connections, or use fewer connections",
        1044 | 1045 | 1698 => {
            "check user and password, the account's rights on the schema, and whether it may log in from this host and \
             without encryption (REQUIRE SSL, require_secure_transport)"
        }
        3159 => "set the target's tls mode to preferred, required, verify-ca or verify-identity",
        1049 => "create the schema, or use another one",
        1146 => "load the tables first: prepare with the same options",
        1142 | 1227 => "grant the account the rights on its own schema",
        1114 | 1021 => "free space on the server's disk",
        ER_TOO_MANY_USER_CONNECTIONS | ER_USER_LIMIT_REACHED => {
            "raise max_user_connections, or use fewer connections"
        }
        ER_MAX_PREPARED_STMT_COUNT_REACHED => {
            "raise max_prepared_stmt_count to at least connections x prepared statements per connection, or use fewer \
             connections or tables"
        }
        CR_SERVER_LOST | 1053 => "the server was stopped; see its error log",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_products_have_their_class() {
        let expected = [
            (ErrorClass::Deadlock, &[1213_u16, 1614, 3058][..]),
            (ErrorClass::LockTimeout, &[1205, 3572]),
            (ErrorClass::Serialization, &[1020, 3101, 8022, 9007]),
            (ErrorClass::Lost, &[1053, 1927, 2006, 2013, 3169, 4031]),
            (ErrorClass::DuplicateKey, &[1062, 1586]),
            (ErrorClass::Refused, &[1040, 1045, 1129, 1698, 2003, 3118, 3159, 3955, 4151]),
            // Syntax error, a killed statement, a statement that ran too long, a check that failed, no privilege.
            (ErrorClass::Other, &[1064, 1317, 1969, 3024, 3819, 1142]),
        ];
        for (expected, numbers) in expected {
            for &number in numbers {
                assert_eq!(class(number), expected, "{number}");
            }
        }
    }

    #[test]
    fn no_number_has_two_classes() {
        let mut numbers = CLASSES.map(|(_, numbers)| numbers).concat();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
    }
}
