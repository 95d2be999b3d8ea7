//! Tables with a number of rows for each row of another table.

use std::fmt::Debug;
use std::sync::Arc;

/// Number of parents between two stored sums.
const PARENTS_PER_SUM: u64 = 64;

/// A row, and its place below the parent's row; the latter is 0 in a table without parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowPlace {
    /// Number of the row, from 1.
    pub(super) row: u64,
    /// Number of the parent's row, from 1.
    pub(super) parent: u64,
    /// Number of the row among those of its parent's row, from 1.
    pub(super) number: u64,
}

impl RowPlace {
    /// A row of a table without parent.
    pub(super) fn of(row: u64) -> Self {
        Self { row, ..Self::default() }
    }

    /// A row of a table.
    #[inline]
    pub(super) fn new(row: u64, children: Option<&Children>) -> Self {
        children.map_or(Self::of(row), |children| children.place(row))
    }
}

/// The number of rows that belong to a row of a parent.
pub(super) trait RowCounts: Debug + Send + Sync {
    /// The number for a row of the parent.
    fn count(&self, parent: RowPlace) -> u64;
}

/// The numbers of rows that belong to each row of a parent.
#[derive(Debug)]
pub(super) struct Children {
    counts: Arc<dyn RowCounts>,
    /// Number of rows before each group of parents, and the total.
    sums: Vec<u64>,
}

impl Children {
    /// `counts` has the number of rows for each of the `parents` rows.
    pub(super) fn new(counts: Arc<dyn RowCounts>, parents: u64) -> Self {
        let (mut sums, mut sum) = (Vec::new(), 0);
        for parent in 1..=parents {
            if (parent - 1).is_multiple_of(PARENTS_PER_SUM) {
                sums.push(sum);
            }
            sum += counts.count(RowPlace::of(parent));
        }
        sums.push(sum);
        Self { counts, sums }
    }

    /// Number of rows of all parents.
    pub(super) fn rows(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// The place of row `row`, which must not be above [`Self::rows`].
    fn place(&self, row: u64) -> RowPlace {
        let group = self.sums.partition_point(|sum| *sum < row) - 1;
        let (mut number, mut parent) = (row - self.sums[group], group as u64 * PARENTS_PER_SUM + 1);
        loop {
            let count = self.counts.count(RowPlace::of(parent));
            if number <= count {
                return RowPlace { row, parent, number };
            }
            (number, parent) = (number - count, parent + 1);
        }
    }
}
