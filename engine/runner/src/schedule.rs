//! When events are due on one worker.

use std::sync::Arc;

use dbdyno_load::pauses::Pauses;
use dbdyno_load::rate_limit::RateLimit;
use dbdyno_load::slices::SliceGate;

use crate::QueueOverflow;
use crate::arrival_queue::ArrivalQueue;

/// When events are due on one worker.
pub(crate) enum Schedule {
    /// As soon as the previous event on the same connection has ended.
    Closed,
    /// After the previous event on the same connection and a think time, and not above the limit of the rate.
    Paced(Pauses, Option<RateLimit>),
    /// As in a closed loop, but only during slices. With `is_batch` the thread leaves SCHED_BATCH while it is paused,
    /// because the kernel may wake a thread of that class as much as 4 ms late.
    Slices { gate: SliceGate, is_batch: bool },
    /// Independently of earlier events. All workers take events from one queue; `overflow` says what happens to an event
    /// that becomes due when it is full.
    Open { queue: Arc<ArrivalQueue>, overflow: QueueOverflow },
}
