//! Ids of the rows that oltp_insert adds to tables without AUTO_INCREMENT.

use dbdyno_random::Rng;
use dbdyno_random::permutation::Permutation;

use crate::call::UserIndex;

/// Which ids new rows get if the table has no AUTO_INCREMENT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewRowIds {
    /// Ids that no stored row has: `oltp_insert` uses ids below 0, `bulk_insert` ids above that of the last stored row.
    #[default]
    Unused,
    /// `oltp_insert` uses each id of the column's whole range once, and `bulk_insert` uses ids from 1 on. A second run
    /// therefore inserts duplicate keys.
    WholeRange,
}

/// Half of the number of values in a signed 32-bit column.
const HALF: u64 = 1 << 31;

/// The ids of one user, distinct from those of all other users of the run.
#[derive(Debug)]
pub(crate) struct NewIds {
    rule: Rule,
    /// Number of the user's next row among the rows of all users. It grows by `step`, the number of users, so that no two
    /// users get the same number.
    next: u64,
    step: u64,
}

#[derive(Debug)]
enum Rule {
    /// Ids below 0, because loaded rows have ids above 0.
    Negative,
    /// Ids in the whole range of the column.
    Permutation(Permutation),
}

impl NewIds {
    pub(crate) fn new(new_row_ids: NewRowIds, seed: u64, user: UserIndex) -> Self {
        let (rule, first) = match new_row_ids {
            // The first id depends on the seed, so that a second run does not collide with the rows of the first.
            NewRowIds::Unused => {
                (Rule::Negative, Rng::new(seed, &[u64::from_be_bytes(*b"new rows")]).below(HALF))
            }
            NewRowIds::WholeRange => (Rule::Permutation(Permutation::new(seed)), 0),
        };
        Self { rule, next: first + user.global, step: user.users }
    }

    pub(crate) fn next(&mut self) -> i64 {
        let number = self.next;
        self.next += self.step;
        match self.rule {
            Rule::Negative => -1 - (number % HALF) as i64,
            Rule::Permutation(permutation) => i64::from(permutation.at(number as u32)) - HALF as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn ids(new_row_ids: NewRowIds) -> Vec<i64> {
        let users = (0..4).map(|index| NewIds::new(new_row_ids, 1, UserIndex { global: index, users: 4 }));
        users.flat_map(|mut ids| (0..1000).map(move |_| ids.next())).collect()
    }

    #[test]
    fn ids_of_all_users_differ() {
        for rows in [NewRowIds::Unused, NewRowIds::WholeRange] {
            let ids = ids(rows);
            assert!(ids.iter().all(|id| i32::try_from(*id).is_ok()), "{rows:?}");
            assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 4000, "{rows:?}");
        }
    }

    #[test]
    fn ids_are_negative_or_in_the_whole_range() {
        assert!(ids(NewRowIds::Unused).iter().all(|&id| id < 0));
        let above = ids(NewRowIds::WholeRange).iter().filter(|&&id| id >= 0).count();
        // Half of 4,000; four standard deviations are 126.
        assert!(above.abs_diff(2000) < 126, "{above}");
    }
}
