//! Limits of a plan's load, phases and intervals.

/// Longest step or ramp of a load shape, and longest `reconnect.give_up_us`, in microseconds: one day.
pub const DURATION_US: u64 = 86_400_000_000;
/// Longest measurement and longest warm-up, in microseconds: 2^31 - 1 seconds.
pub const RUN_US: u64 = i32::MAX as u64 * 1_000_000;
/// Maximum events per second.
pub const RATE_PER_S: f64 = 1e7;
/// Maximum number of steps of a load shape.
pub const STEPS: usize = 1000;
/// Maximum number of `report.marks_us`.
pub const MARKS: usize = 256;
