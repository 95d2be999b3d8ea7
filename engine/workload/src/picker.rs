//! Selects the next transaction of a user.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_random::Rng;
use dbdyno_schema::Plan;
use dbdyno_schema::plan::{SqlWorkload, TransactionOrder};

use crate::sql::source::{cumulative_weights, draw_weighted};

/// Picks the next transaction of each user from a list.
#[derive(Debug)]
pub(crate) struct TransactionPicker {
    order: TransactionOrder,
    /// Number of transactions in the list.
    count: u64,
    /// Cumulative weights.
    weights: Arc<[f64]>,
    /// Number of transactions taken from the list, if all users of this engine share the list.
    taken: AtomicU64,
    /// This engine's number, from 0, and the number of engines of the run.
    engine: (u64, u64),
    /// How often the list is repeated; `None` for no limit.
    times: Option<u64>,
}

impl TransactionPicker {
    /// `weights` may be empty if the order is not weighted.
    pub(crate) fn new(custom: &SqlWorkload, count: usize, weights: &[f64], plan: &Plan) -> Self {
        Self {
            order: custom.order,
            count: count as u64,
            weights: cumulative_weights(weights),
            taken: AtomicU64::new(0),
            engine: (plan.segment.index.into(), plan.segment.count.into()),
            times: custom.replay.as_ref().and_then(|replay| replay.times).map(u64::from),
        }
    }

    /// Whether the number of repetitions of the list is limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.times.is_some()
    }

    /// Picks the next transaction of a user that has completed `executed` transactions; `None` after its last one.
    #[inline]
    pub(crate) fn next(&self, executed: u64, rng: &mut Rng) -> Option<usize> {
        let number = match self.order {
            TransactionOrder::Weighted if self.count == 1 => return Some(0),
            TransactionOrder::Weighted => return Some(draw_weighted(&self.weights, rng)),
            TransactionOrder::InOrder => {
                let (index, engines) = self.engine;
                self.taken.fetch_add(1, Ordering::Relaxed) * engines + index
            }
            TransactionOrder::EachInOrder => executed,
        };
        let number_end = self.times.map_or(u64::MAX, |times| times.saturating_mul(self.count));
        (number < number_end).then_some((number % self.count) as usize)
    }
}
