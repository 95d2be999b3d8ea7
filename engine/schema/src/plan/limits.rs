//! Limits of a plan, checked by [`Plan::problems`](super::Plan::problems).

use std::collections::BTreeMap;

pub use dbdyno_load::limits::{DURATION_US, MARKS, RATE_PER_S, RUN_US, STEPS};

/// Maximum connections of one engine.
pub const CONNECTIONS: u32 = 65_535;
/// Maximum endpoints of one target.
pub const ENDPOINTS: usize = 1000;
/// Maximum event loops of one engine.
pub const WORKERS: u32 = 64;
/// Maximum tables.
pub const TABLES: u32 = 100_000;
/// Maximum rows per table. Above 2^31 - 1 rows the id column is BIGINT.
pub const TABLE_SIZE: u64 = 1 << 40;
/// Maximum parameters of one statement: the MySQL protocol counts them in 16 bits.
pub const PARAMETERS: u32 = 65_535;
/// Maximum statements of a workload in SQL, repeats included.
pub const SQL_STATEMENTS: u64 = 1_000_000;
/// Longest statement, in bytes: what fits into one packet of the MySQL protocol, with room for parameters.
pub const SQL_BYTES: usize = 15 << 20;
/// Maximum columns of a generated table: PostgreSQL's limit.
pub const COLUMNS: usize = 1600;
/// Maximum characters of a generated string.
pub const TEXT_LENGTH: u32 = 1_000_000;
/// Maximum characters of an alphabet.
pub const ALPHABET: usize = 65_536;
/// Maximum bytes of a generated row: a statement holds at least one row.
pub const ROW_BYTES: u64 = 8 << 20;
/// Maximum loading connections.
pub const STREAMS: u32 = 256;

macro_rules! named {
    ($($name:ident),*) => {
        [$((stringify!($name).to_lowercase(), $name as u64)),*].into()
    };
}

/// Every limit by its name in lower case.
pub fn by_name() -> BTreeMap<String, u64> {
    named![
        CONNECTIONS,
        ENDPOINTS,
        WORKERS,
        DURATION_US,
        RUN_US,
        TABLES,
        TABLE_SIZE,
        PARAMETERS,
        RATE_PER_S,
        STEPS,
        MARKS,
        SQL_STATEMENTS,
        SQL_BYTES,
        COLUMNS,
        TEXT_LENGTH,
        ALPHABET,
        ROW_BYTES,
        STREAMS
    ]
}
