//! Which rows a user has inserted last, by the numbers that it took from a sequence.

/// The numbers that one user has taken from one sequence.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    /// Parameter of the sequence.
    pub(super) sequence: usize,
    /// How many numbers the user had taken when its current transaction began.
    taken: u64,
    /// Positions of numbers whose transaction failed, rising. Their rows may not exist.
    lost: Vec<u64>,
}

impl Recent {
    pub(super) fn new(sequence: usize) -> Self {
        Self { sequence, taken: 0, lost: Vec::new() }
    }

    /// A transaction begins; the user has taken `taken` numbers, all in transactions that ended.
    pub(super) fn begin(&mut self, taken: u64) {
        self.taken = taken;
    }

    /// The current transaction failed, and begins again.
    pub(super) fn restart(&mut self, taken: u64) {
        self.lost.extend(self.taken..taken);
        self.taken = taken;
    }

    /// Position of the `nth` latest number from 0 whose transaction ended; if there is none, how many rows before the
    /// user's first one it is, from 0.
    #[inline]
    pub(super) fn position(&self, nth: u64) -> Result<u64, u64> {
        let present = self.taken - self.lost.len() as u64;
        if nth >= present {
            return Err(nth - present);
        }
        let mut position = self.taken - 1 - nth;
        for &lost in self.lost.iter().rev() {
            if lost < position {
                break;
            }
            position -= 1;
        }
        Ok(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(recent: &Recent) -> Vec<Result<u64, u64>> {
        (0..7).map(|nth| recent.position(nth)).collect()
    }

    #[test]
    fn the_latest_comes_first_and_loaded_rows_last() {
        let mut recent = Recent::new(0);
        assert_eq!(positions(&recent)[..2], [Err(0), Err(1)]);
        recent.begin(3);
        assert_eq!(positions(&recent)[..5], [Ok(2), Ok(1), Ok(0), Err(0), Err(1)]);
    }

    #[test]
    fn numbers_of_failed_transactions_are_left_out() {
        let mut recent = Recent::new(0);
        recent.begin(2);
        recent.restart(3);
        recent.restart(5);
        assert_eq!(positions(&recent)[..3], [Ok(1), Ok(0), Err(0)]);
        recent.begin(7);
        recent.restart(8);
        recent.begin(9);
        assert_eq!(positions(&recent), [Ok(8), Ok(6), Ok(5), Ok(1), Ok(0), Err(0), Err(1)]);
    }
}
