//! Steps: one level after the other, each for its time.

use super::{Level, NS_PER_S};
use crate::Nanos;

impl Level {
    /// The first level until `begin`; from then on each of `steps` (level and length) in turn; the last for ever.
    pub fn steps(begin: Nanos, steps: impl IntoIterator<Item = (f64, Nanos)>) -> Self {
        let mut steps = steps.into_iter();
        let (first, length) = steps.next().unwrap_or_default();
        let mut end = begin + length;
        steps.fold(Self::flat(first), |level, (height, length)| {
            let start = end;
            end += length;
            level.then(start as f64 / NS_PER_S, height, 0.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::S;
    use super::*;

    #[test]
    fn steps_follow_one_another_and_the_last_one_stays() {
        let level = Level::steps(2 * S, [(10.0, 3 * S), (0.0, S), (40.0, 2 * S)]);
        let seen: Vec<_> = [0, 2, 4, 5, 6, 7, 8, 50].map(|time| level.at(time * S)).to_vec();
        assert_eq!(seen, [10.0, 10.0, 10.0, 0.0, 40.0, 40.0, 40.0, 40.0]);
    }

    #[test]
    fn nothing_is_due_in_a_pause() {
        let level = Level::steps(0, [(10.0, 3 * S), (0.0, S), (40.0, 2 * S)]);
        assert_eq!(level.when(29.0), 2_900_000_000);
        assert_eq!(level.when(30.0), 4 * S, "the 31st event belongs to the step after the pause");
        assert_eq!(level.when(70.0), 5 * S);
    }
}
