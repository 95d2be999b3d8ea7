//! Error numbers of MySQL, MariaDB and their client libraries, by class. The two products number alike what both of them have.

use dbdyno_schema::record::ErrorClass;

/// Rolled back to end a deadlock: 1213, of an XA transaction (1614), between user locks (3058, 3132).
const DEADLOCK: [u16; 4] = [1213, 1614, 3058, 3132];

/// Waited too long for a lock: 1205, in an XA transaction (1613), a lock of the locking service (3133), a row under
/// NOWAIT (MySQL 3572). MariaDB reports NOWAIT as 1205.
const LOCK_TIMEOUT: [u16; 4] = [1205, 1613, 3133, 3572];

/// The row changed since the transaction's snapshot (1020, MariaDB with `innodb_snapshot_isolation`), or a group of
/// servers refused the commit (MySQL 3101).
const SERIALIZATION: [u16; 2] = [1020, 3101];

/// The connection ends: shut down (1053, 1077, 1079), closed by force (1080), aborted (1152, 1184), killed (MariaDB 1927,
/// MySQL 3169), idle for too long (MySQL 4031); and the numbers of the client libraries (2006, 2013, 2055), which proxies
/// pass on. A killed statement is 1317, and its connection stays open.
const LOST: [u16; 12] = [1053, 1077, 1079, 1080, 1152, 1184, 1927, 2006, 2013, 2055, 3169, 4031];

/// A unique key exists already: 1062, the same with the name of its key (1586), without the row (1022, 1169, 1859), in a
/// table with a foreign key (1557, 1761, 1762).
const DUPLICATE_KEY: [u16; 8] = [1022, 1062, 1169, 1557, 1586, 1761, 1762, 1859];

/// No session begins: too many connections (1040, 1203, 1226), the host (1042, 1129, 1130), the handshake or the
/// authentication method (1043, 1251, 1275), access denied (1044, 1045, 1698), password expired (1820, 1862), account
/// locked (MySQL 3118 and 3955, MariaDB 4151), offline (MySQL 3032), encryption required (3159); and the client
/// libraries' numbers for an address that does not answer (2002, 2003, 2005), for TLS (2026), and for a method that
/// the client does not have (2059).
const REFUSED: [u16; 24] = [
    1040, 1042, 1043, 1044, 1045, 1129, 1130, 1203, 1226, 1251, 1275, 1698, 1820, 1862, 2002, 2003, 2005,
    2026, 2059, 3032, 3118, 3159, 3955, 4151,
];

/// The class of an error number.
pub fn class(number: u16) -> ErrorClass {
    let has = |numbers: &[u16]| numbers.contains(&number);
    match () {
        () if has(&DEADLOCK) => ErrorClass::Deadlock,
        () if has(&LOCK_TIMEOUT) => ErrorClass::LockTimeout,
        () if has(&SERIALIZATION) => ErrorClass::Serialization,
        () if has(&LOST) => ErrorClass::Lost,
        () if has(&DUPLICATE_KEY) => ErrorClass::DuplicateKey,
        () if has(&REFUSED) => ErrorClass::Refused,
        () => ErrorClass::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_products_have_their_class() {
        let expected = [
            (ErrorClass::Deadlock, &[1213_u16, 1614, 3058][..]),
            (ErrorClass::LockTimeout, &[1205, 3572]),
            (ErrorClass::Serialization, &[1020, 3101]),
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
        let mut numbers =
            [&DEADLOCK[..], &LOCK_TIMEOUT, &SERIALIZATION, &LOST, &DUPLICATE_KEY, &REFUSED].concat();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
    }
}
