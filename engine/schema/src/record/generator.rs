//! The load generator's figures about itself. The engine reports them; the judge and the drop-ins warn beyond the limits, which
//! the generated schema publishes as `x-limit`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// [`Generator::cpu`] above which the load generator may limit the throughput.
pub const CPU_LIMIT: f64 = 0.8;
/// [`Generator::lag_us_p99`] above which the load generator measures itself.
pub const LAG_US_LIMIT: u64 = 1000;
/// [`Generator::client_delay_us_p99`], as a share of the median latency, above which it distorts latencies.
pub const CLIENT_DELAY_LIMIT: f64 = 0.1;

/// The load generator's CPU time and delays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// CPU time of the worker threads over wall time, per worker: 1.0 is a full core each. Over `x-limit` the server may be
    /// faster than measured.
    #[schemars(extend("x-limit" = CPU_LIMIT))]
    pub cpu: f64,
    /// Largest delay of the engine's own timer. In an open loop that is how much later than due an event began that
    /// found a free connection; in a closed loop how late the engine woke up to close a tick.
    pub lag_us_max: u64,
    /// 99th percentile of the same; 0 where nothing was measured. Over `x-limit` latencies contain the engine's own.
    #[schemars(extend("x-limit" = LAG_US_LIMIT))]
    pub lag_us_p99: u64,
    /// Share of the machine's CPU time that the hypervisor gave to others.
    pub steal: f64,
    /// Time the worker threads were runnable and waited for a CPU, all workers together.
    pub run_queue_wait_us: u64,
    /// 99th percentile of the delay from a reply's arrival at this machine to its reading, from samples.
    /// Null without samples: over unix sockets, and where nothing arrived. Over `x-limit` times the median latency, latencies
    /// contain the engine's own.
    #[schemars(extend("x-limit" = CLIENT_DELAY_LIMIT))]
    pub client_delay_us_p99: Option<u64>,
}
