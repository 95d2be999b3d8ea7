//! Load shape slices: a closed loop that pauses and resumes on command.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest guard time, in microseconds.
const GUARD_US: u64 = 60_000_000;

/// Closed loop that is paused until a command resumes it for a given time, a slice. The commands are lines on standard
/// input: `{"type":"resume","data":{"slice":N,"for_us":N}}` begins a slice, whose record `slice` follows when its last event
/// has ended, and `{"type":"finish","data":{}}` ends the run. A plan with this shape starts on command, and has neither
/// warm-up, intervals, ticks nor think time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosedSlices {
    /// Time after each resume that the counts and latencies of the slice leave out, in microseconds.
    pub guard_us: u64,
}

impl ClosedSlices {
    pub(super) fn problems(&self) -> Vec<String> {
        let problem = || format!("load.shape.guard_us is {}; the maximum is {GUARD_US}", self.guard_us);
        (self.guard_us > GUARD_US).then(problem).into_iter().collect()
    }
}
