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
/// Maximum statements of a workload in SQL, including repeats.
pub const SQL_STATEMENTS: u64 = 1_000_000;
/// Maximum bytes of a statement. With its parameters it must fit into one packet of the MySQL protocol (16 MiB).
pub const SQL_BYTES: usize = 15 << 20;
/// Maximum columns of a generated table, as in PostgreSQL.
pub const COLUMNS: usize = 1600;
/// Maximum characters of a generated string.
pub const TEXT_LENGTH: u32 = 1_000_000;
/// Maximum characters of an alphabet.
pub const ALPHABET: usize = 65_536;
/// Maximum bytes of a generated row. A statement contains at least one row, so a row must fit into a statement.
pub const ROW_BYTES: u64 = 8 << 20;
/// Maximum connections that load rows.
pub const STREAMS: u32 = 256;

macro_rules! limits_by_name {
    ($($name:ident),*) => {
        [$((stringify!($name).to_lowercase(), $name as u64)),*].into()
    };
}

/// Every limit by its name in lower case.
pub fn by_name() -> BTreeMap<String, u64> {
    limits_by_name![
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
