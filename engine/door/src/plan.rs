//! What the engine is asked to do: one target, one workload, one load, for a bounded time.
//!
//! One plan drives `prepare`, `run` and `cleanup` alike, so the three can never disagree about tables or rows.
//! A plan holds no secret: a password is the name of a variable or a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The whole order for one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of this schema; must be 1.
    pub schema: u32,
    /// The server under load.
    pub target: Target,
    /// The transaction that is repeated, and its data.
    pub workload: Workload,
    /// How many connections, and when each event is due.
    pub load: Load,
    /// For how long.
    pub phases: Phases,
    /// Seeds keys, strings and row content. Rows depend on (seed, table, id) only.
    pub seed: u64,
    /// This engine's share of a fleet's work; one engine is 0 of 1.
    #[serde(default)]
    pub segment: Segment,
    /// When the clock starts.
    #[serde(default)]
    pub start: Start,
    /// How the engine itself runs.
    #[serde(default)]
    pub client: Client,
    /// How often it reports.
    #[serde(default)]
    pub report: Report,
    /// Which errors restart an event.
    #[serde(default)]
    pub retry: Retry,
    /// How rows are loaded by `prepare`.
    #[serde(default)]
    pub loading: Loading,
}

/// With whom the engine speaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "protocol", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// The MySQL protocol: MySQL and MariaDB.
    Mysql {
        /// Where the server listens.
        endpoint: Endpoint,
        /// Account name.
        user: String,
        /// Where the password is found; none means an empty one.
        #[serde(default)]
        password: Option<Secret>,
        /// Schema that holds the tables.
        database: String,
        /// Time allowed for a connection to open and log in, in microseconds.
        #[serde(default = "defaults::connect_timeout_us")]
        connect_timeout_us: u64,
    },
    /// Answers from memory: calibrates the generator and tests without a server.
    Null {
        /// Time from a request to its answer, in microseconds.
        #[serde(default)]
        answer_us: u64,
    },
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Endpoint {
    /// A TCP address.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A unix socket.
    Unix {
        /// Path of the socket.
        path: String,
    },
}

/// Where a secret is found. The secret itself never enters a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Secret {
    /// Name of an environment variable.
    Env(String),
    /// Path of a file; one trailing line end is cut off.
    File(String),
}

/// The transaction that is repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Which member of the OLTP family.
    pub name: WorkloadName,
    /// Tables, rows and the make-up of a transaction.
    #[serde(default)]
    pub options: OltpOptions,
}

/// The native workloads, under sysbench's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadName {
    /// BEGIN, ten point selects, four ranges, COMMIT.
    OltpReadOnly,
    /// The reads of `oltp_read_only`, two updates, a delete and an insert.
    OltpReadWrite,
    /// BEGIN, two updates, a delete and an insert, COMMIT.
    OltpWriteOnly,
    /// One point select.
    OltpPointSelect,
}

/// Options of the OLTP family with sysbench's names and defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OltpOptions {
    /// Number of tables, sbtest1 to sbtestN.
    pub tables: u32,
    /// Rows per table; ids are 1 to `table_size`.
    pub table_size: u32,
    /// Rows a range statement asks for.
    pub range_size: u32,
    /// Point selects per transaction.
    pub point_selects: u32,
    /// Plain range selects per transaction.
    pub simple_ranges: u32,
    /// SUM range selects per transaction.
    pub sum_ranges: u32,
    /// ORDER BY range selects per transaction.
    pub order_ranges: u32,
    /// DISTINCT range selects per transaction.
    pub distinct_ranges: u32,
    /// Updates of an indexed column per transaction.
    pub index_updates: u32,
    /// Updates of a column without index per transaction.
    pub non_index_updates: u32,
    /// Pairs of delete and insert of the same id per transaction.
    pub delete_inserts: u32,
    /// Whether the four range kinds run at all.
    pub range_selects: bool,
    /// Whether the id column is AUTO_INCREMENT.
    pub auto_inc: bool,
    /// Whether BEGIN and COMMIT are left out.
    pub skip_trx: bool,
    /// Whether id has a secondary index in place of the primary key.
    pub secondary: bool,
    /// Whether the index on k is made after loading.
    pub create_secondary: bool,
    /// Storage engine named in CREATE TABLE.
    pub mysql_storage_engine: String,
}

impl Default for OltpOptions {
    fn default() -> Self {
        Self {
            tables: 1,
            table_size: 10_000,
            range_size: 100,
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            range_selects: true,
            auto_inc: true,
            skip_trx: false,
            secondary: false,
            create_secondary: true,
            mysql_storage_engine: "innodb".into(),
        }
    }
}

/// How many connections, and when each event is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Connections opened; in an open loop the most that can be busy at once.
    pub connections: u32,
    /// When each event is due.
    #[serde(default)]
    pub shape: Shape,
}

/// When each event is due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Shape {
    /// Every connection starts its next event when the last one has ended.
    #[default]
    Closed,
    /// Open loop with equal gaps.
    Constant {
        /// Events per second, over the whole fleet.
        rate_per_s: f64,
    },
    /// Open loop with exponential gaps: independent users.
    Poisson {
        /// Mean events per second, over the whole fleet.
        rate_per_s: f64,
    },
}

/// For how long the load runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Length of the warm-up, in microseconds; 0 for none.
    #[serde(default)]
    pub warmup_us: u64,
    /// Length of the measurement, in microseconds.
    pub measure_us: u64,
    /// How long events in flight may take to end after the measurement, in microseconds. They are not counted.
    #[serde(default = "defaults::drain_us")]
    pub drain_us: u64,
}

/// One engine's share of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Which share, from 0.
    pub index: u32,
    /// Of how many.
    pub count: u32,
}

impl Default for Segment {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

/// When the clock starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Start {
    /// As soon as every connection is ready. The end of standard input is ignored.
    #[default]
    AtOnce,
    /// On the line `{"type":"start","data":{"at_unix_us":N}}`; from then on the end of standard input stops the run.
    OnCommand {
        /// How long to wait for that line, in microseconds.
        start_timeout_us: u64,
    },
}

/// A line on standard input after the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Start the clock.
    Start {
        /// Wall time of the start, microseconds since 1970; in the past means now.
        at_unix_us: u64,
    },
}

/// How the engine itself runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Client {
    /// Event loops, one thread each.
    pub workers: u32,
    /// Scheduling class of the worker threads.
    pub scheduling: Scheduling,
}

impl Default for Client {
    fn default() -> Self {
        Self { workers: 1, scheduling: Scheduling::Normal }
    }
}

/// Scheduling class of the worker threads, as Linux names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// SCHED_OTHER.
    Normal,
    /// SCHED_BATCH: a reply does not preempt the server. For clients that share CPUs with it.
    Batch,
}

/// How often the engine reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Report {
    /// Length of an interval, in microseconds.
    pub interval_us: u64,
    /// Length of a tick, in microseconds; 0 for none.
    pub tick_us: u64,
    /// Length of a window of statement statistics, in microseconds.
    pub statements_us: u64,
}

impl Default for Report {
    fn default() -> Self {
        Self { interval_us: 1_000_000, tick_us: 100_000, statements_us: 5_000_000 }
    }
}

/// Which errors restart an event, after an explicit ROLLBACK.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// Server error numbers: deadlock, record changed, lock wait timeout.
    pub codes: Vec<u16>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { codes: vec![1213, 1020, 1205] }
    }
}

/// How rows are loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Loading {
    /// Connections that load at the same time, inside one table too.
    pub streams: u32,
}

impl Default for Loading {
    fn default() -> Self {
        Self { streams: 2 }
    }
}

mod defaults {
    pub fn connect_timeout_us() -> u64 {
        10_000_000
    }
    pub fn drain_us() -> u64 {
        10_000_000
    }
}

/// Limits of a plan, checked by [`Plan::faults`].
pub mod limits {
    /// Most connections of one engine.
    pub const CONNECTIONS: u32 = 65_535;
    /// Most event loops of one engine.
    pub const WORKERS: u32 = 64;
    /// Longest warm-up plus measurement: one day.
    pub const DURATION_US: u64 = 86_400_000_000;
    /// Most tables.
    pub const TABLES: u32 = 100_000;
    /// Most rows per table: ids fit a signed 32-bit INTEGER column.
    pub const TABLE_SIZE: u32 = i32::MAX as u32;
    /// Most loading connections.
    pub const STREAMS: u32 = 256;
}

impl Plan {
    /// Everything that is wrong with the plan, each as one sentence with key, value and limit.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut within = |key: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                faults.push(format!("{key} is {value}; it must be between {low} and {high}"));
            }
        };
        let options = &self.workload.options;
        within("schema", self.schema.into(), crate::SCHEMA_VERSION.into(), crate::SCHEMA_VERSION.into());
        within("load.connections", self.load.connections.into(), 1, limits::CONNECTIONS.into());
        within("client.workers", self.client.workers.into(), 1, limits::WORKERS.into());
        within("phases.measure_us", self.phases.measure_us, 1_000, limits::DURATION_US);
        within("phases.warmup_us", self.phases.warmup_us, 0, limits::DURATION_US);
        within("report.interval_us", self.report.interval_us, 10_000, limits::DURATION_US);
        within("report.statements_us", self.report.statements_us, 10_000, limits::DURATION_US);
        within("workload.options.tables", options.tables.into(), 1, limits::TABLES.into());
        within("workload.options.table_size", options.table_size.into(), 1, limits::TABLE_SIZE.into());
        within("workload.options.range_size", options.range_size.into(), 1, limits::TABLE_SIZE.into());
        within("loading.streams", self.loading.streams.into(), 1, limits::STREAMS.into());
        within("segment.count", self.segment.count.into(), 1, 10_000);
        within("segment.index", self.segment.index.into(), 0, self.segment.count.max(1) as u64 - 1);
        if self.report.tick_us != 0 {
            within("report.tick_us", self.report.tick_us, 10_000, limits::DURATION_US);
        }
        if let Shape::Constant { rate_per_s } | Shape::Poisson { rate_per_s } = self.load.shape
            && !(rate_per_s > 0.0 && rate_per_s <= 1e7)
        {
            faults.push(format!(
                "load.shape.rate_per_s is {rate_per_s}; it must be above 0 and at most 10000000"
            ));
        }
        faults
    }
}
