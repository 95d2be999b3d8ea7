//! Resource use of the load generator. The engine reports it; the judge and the drop-ins warn above the limits, which
//! the generated schema publishes as `x-limit`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// [`Generator::cpu`] above which the load generator may limit the throughput.
pub const CPU_LIMIT: f64 = 0.8;
/// [`Generator::lag_us_p99`] above which the load generator's own delays distort latencies.
pub const LAG_US_LIMIT: u64 = 1000;
/// [`Generator::client_delay_us_p99`], as a share of the median latency, above which the load generator's own delays distort
/// latencies.
pub const CLIENT_DELAY_LIMIT: f64 = 0.1;

/// The load generator's CPU time and delays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// CPU time of the worker threads divided by wall time, per worker with connections: 1.0 is a full core each. Above
    /// `x-limit` the server may be faster than measured.
    #[schemars(extend("x-limit" = CPU_LIMIT))]
    pub cpu: f64,
    /// Largest delay of the engine's timer: in an open loop how late an event began although a connection was free; in a
    /// closed loop how late the engine woke up to close a tick.
    pub lag_us_max: u64,
    /// 99th percentile of the timer delay; 0 without samples. Above `x-limit` the engine's own delays distort latencies.
    #[schemars(extend("x-limit" = LAG_US_LIMIT))]
    pub lag_us_p99: u64,
    /// Steal time: share of the machine's CPU time that the hypervisor gave to other machines.
    pub steal: f64,
    /// Time that runnable worker threads waited for a CPU, summed over all workers.
    pub run_queue_wait_us: u64,
    /// 99th percentile of the delay from a reply's arrival at this machine to its reading, from samples.
    /// Null without samples: over unix sockets, and if no reply arrived. Above `x-limit` times the median latency, the
    /// engine's own delays distort latencies.
    #[schemars(extend("x-limit" = CLIENT_DELAY_LIMIT))]
    pub client_delay_us_p99: Option<u64>,
}
