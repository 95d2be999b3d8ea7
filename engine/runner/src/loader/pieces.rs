//! Divides tables into pieces, so that several streams can load them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// A range of ids of one table, loaded by one stream in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) table: u32,
    pub(super) first: u64,
    pub(super) last: u64,
}

/// The remaining work, shared by the streams of a thread.
pub(super) type Queue<T> = Rc<RefCell<VecDeque<T>>>;

pub(super) fn new_queue<T>(items: impl IntoIterator<Item = T>) -> Queue<T> {
    Rc::new(RefCell::new(items.into_iter().collect()))
}

/// Divides tables into pieces: whole tables if there are at least two per stream, otherwise one piece per table and
/// stream.
///
/// The first pieces of all tables come before the second pieces, because streams that load the same table may wait for
/// each other (MariaDB's AUTO-INC lock under innodb_autoinc_lock_mode = 1).
pub(super) fn divide_tables(tables: &[u32], rows: u64, streams: u32) -> Vec<Piece> {
    let cuts = if tables.len() as u32 >= 2 * streams { 1 } else { u64::from(streams).min(rows) };
    // Computed in 128 bits, so that no number of rows overflows.
    let boundary = |cut: u64| (u128::from(rows) * u128::from(cut) / u128::from(cuts.max(1))) as u64;
    let of_cut = |cut| {
        tables.iter().map(move |&table| Piece { table, first: boundary(cut) + 1, last: boundary(cut + 1) })
    };
    (0..cuts).flat_map(of_cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_row_once() {
        for (tables, rows, streams) in [(1, 10, 4), (1, 3, 8), (10, 7, 2), (3, 1000, 2), (1, 1 << 40, 256)] {
            let tables: Vec<u32> = (1..=tables).collect();
            let pieces = divide_tables(&tables, rows, streams);
            for &table in &tables {
                let mut next = 1;
                for piece in pieces.iter().filter(|piece| piece.table == table) {
                    assert_eq!(piece.first, next);
                    next = piece.last + 1;
                }
                assert_eq!(next, rows + 1);
            }
        }
    }

    #[test]
    fn streams_begin_in_different_tables() {
        let tables: Vec<u32> = divide_tables(&[1, 2, 3], 100, 2).iter().map(|piece| piece.table).collect();
        assert_eq!(tables, [1, 2, 3, 1, 2, 3]);
    }
}
