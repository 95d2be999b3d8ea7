//! The content of one row of an OLTP table.
//!
//! The content depends only on (seed, table, id). Tables therefore have the same checksum, whether they are loaded by
//! INSERT or in bulk and with any number of streams.

use crate::Rng;
use crate::key::Keys;
use crate::text::{self, C_LENGTH, PAD_LENGTH};

/// Columns k, c and pad of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The indexed integer column.
    pub k: u64,
    /// The long string column.
    pub c: [u8; C_LENGTH],
    /// The short string column.
    pub pad: [u8; PAD_LENGTH],
}

/// Row `id` of table `table`, both counted from 1.
pub fn row(seed: u64, table: u32, id: u64, keys: &Keys) -> Row {
    let mut rng = Rng::new(seed, &[u64::from(table), id]);
    Row { k: keys.draw(&mut rng), c: text::c_value(&mut rng), pad: text::pad_value(&mut rng) }
}

#[cfg(test)]
mod tests {
    use crate::key::Distribution;

    use super::*;

    #[test]
    fn a_row_never_changes() {
        // These values must never change: data that an older version loaded would not match the seed any more.
        let row = row(1, 1, 1, &Keys::new(&Distribution::Uniform, 1, 10_000));
        assert_eq!(
            (row.k, &row.c[..12], &row.pad[47..]),
            (8884, b"47853967900-".as_slice(), b"-86061206426".as_slice())
        );
    }

    #[test]
    fn rows_of_other_ids_tables_and_seeds_differ() {
        let keys = &Keys::new(&Distribution::Uniform, 1, 10_000);
        assert_ne!(row(1, 1, 1, keys).c, row(1, 1, 2, keys).c);
        assert_ne!(row(1, 1, 2, keys).c, row(1, 2, 1, keys).c);
        assert_ne!(row(1, 1, 1, keys).c, row(2, 1, 1, keys).c);
    }
}
