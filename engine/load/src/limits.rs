//! Limits of a plan's load, phases and intervals.

/// Longest step of a load, and longest `reconnect.give_up_us`: one day.
pub const DURATION_US: u64 = 86_400_000_000;
/// Longest measurement and warm-up: 2^31 - 1 seconds.
pub const RUN_US: u64 = i32::MAX as u64 * 1_000_000;
/// Maximum events per second.
pub const RATE_PER_S: f64 = 1e7;
/// Maximum steps of a load.
pub const STEPS: usize = 1000;
/// Maximum marks of a report.
pub const MARKS: usize = 256;
