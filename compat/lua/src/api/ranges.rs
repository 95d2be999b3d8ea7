//! Ranges that random numbers are drawn from, ready to be drawn from again.

use std::cell::RefCell;

use dbdyno_random::Rng;
use dbdyno_random::key::Keys;
use dbdyno_schema::plan::Distribution;

/// Ranges asked for last, one per distribution that is costly to begin with: scripts ask for the same ids over and over.
#[derive(Default)]
pub(crate) struct Ranges([RefCell<Option<Range>>; 3]);

struct Range {
    low: u32,
    count: u64,
    keys: Keys,
}

/// Places in [`Ranges`].
#[derive(Clone, Copy)]
pub(super) enum Place {
    Default,
    Pareto,
    Zipfian,
}

impl Ranges {
    pub(super) fn draw(&self, place: Place, kind: &Distribution, low: u32, count: u64, rng: &mut Rng) -> u64 {
        let mut range = self.0[place as usize].borrow_mut();
        match &*range {
            Some(range) if range.low == low && range.count == count => range.keys.draw(rng),
            _ => range.insert(Range { low, count, keys: keys(kind, low, count) }).keys.draw(rng),
        }
    }
}

/// `count` numbers from `low` on, ready to be drawn.
pub(super) fn keys(kind: &Distribution, low: u32, count: u64) -> Keys {
    Keys::new(kind, low.into(), u64::from(low) + count - 1)
}
