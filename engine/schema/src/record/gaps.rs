//! Spans of time without a completed event.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shorter gaps between two completed events are not recorded, so that records need little memory.
pub const GAP_US_MIN: u64 = 1000;

/// How long no event completed, on any connection. Gaps end at the limits of the record's span; a gap across the limit of
/// two intervals is the `trailing_us` of the first plus the `leading_us` of the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gaps {
    /// The longest gap, exact over all workers; 0 if every gap is shorter than 1 ms.
    pub longest_us: u64,
    /// When the longest gap began.
    pub longest_start_us: u64,
    /// From the beginning of the span to the first completed event; the whole span without events.
    pub leading_us: u64,
    /// From the last completed event to the end of the span; the whole span without events.
    pub trailing_us: u64,
}
