//! sysbench's options as data, in the order of `--help`. The descriptions are dbdyno's.

use crate::option_definition::Kind;

use super::Compat;

/// The definition of one of sysbench's options.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub kind: Kind,
    /// `None` for no value.
    pub default: Option<&'static str>,
    pub help: &'static str,
    /// The only version that has the option; `None` for all.
    only: Option<Compat>,
}

const fn row(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> Row {
    Row { name, kind, default, help, only: None }
}

const fn v10(row: Row) -> Row {
    Row { only: Some(Compat::V10), ..row }
}

const fn v11(row: Row) -> Row {
    Row { only: Some(Compat::V11), ..row }
}

use Kind::{Bool, Double, File, Int, List, Size, String};

pub const GENERAL: [Row; 20] = [
    row("threads", Int, Some("1"), "concurrent connections"),
    row("events", Int, Some("0"), "total number of events; 0 for no limit"),
    row("time", Int, Some("10"), "seconds; 0 for no limit"),
    v11(row("warmup-time", Int, Some("0"), "seconds of load before counting starts")),
    row("forced-shutdown", String, Some("off"), "seconds, or percent of --time, to wait after --time"),
    row("thread-stack-size", Size, Some("64K"), "no effect: connections are not threads"),
    v11(row("thread-init-timeout", Int, Some("30"), "seconds within which all threads must be ready")),
    row("rate", Int, Some("0"), "events per second, arriving at random; 0 for no limit"),
    row("report-interval", Int, Some("0"), "seconds between two lines of figures; 0 for none"),
    row("report-checkpoints", List, Some(""), "seconds at which a full report resets the counters"),
    row("debug", Bool, Some("off"), "verbose output"),
    row("validate", Bool, Some("off"), "check results where a test can"),
    row("help", Bool, Some("off"), "list the options and exit"),
    row("version", Bool, Some("off"), "print the version and exit"),
    row("config-file", File, None, "option file, one name=value per line"),
    v10(row("tx-rate", Int, Some("0"), "old name of --rate")),
    v10(row("max-requests", Int, Some("0"), "old name of --events")),
    v10(row("max-time", Int, Some("0"), "old name of --time")),
    v10(row("num-threads", Int, Some("1"), "old name of --threads")),
    v11(row("luajit-cmd", String, None, "a LuaJIT command, as after luajit -j")),
];
pub const RANDOM: [Row; 8] = [
    v10(row("rand-type", String, Some("special"), "distribution {uniform,gaussian,special,pareto}")),
    v11(row("rand-type", String, Some("uniform"), "distribution {uniform,gaussian,pareto,zipfian}")),
    v10(row("rand-spec-iter", Int, Some("12"), "uniform numbers averaged for gaussian and special")),
    v10(row("rand-spec-pct", Int, Some("1"), "width of special's hot range in percent of the rows")),
    v10(row("rand-spec-res", Int, Some("75"), "percent of accesses to special's hot range")),
    row("rand-seed", Int, Some("0"), "seed of the random numbers; 0 for the time of day"),
    row("rand-pareto-h", Double, Some("0.2"), "pareto: share h of the rows gets 1 - h of the accesses"),
    v11(row("rand-zipfian-exp", Double, Some("0.8"), "exponent of zipfian; 0 is uniform")),
];
pub const VERBOSITY: [Row; 1] = [row("verbosity", Int, Some("3"), "log level {5 - debug, 0 - fatal}")];
pub const LATENCY: [Row; 2] = [
    row("percentile", Int, Some("95"), "latency percentile to print (1-100); 0 for none"),
    row("histogram", Bool, Some("off"), "print a histogram of latencies"),
];
pub const DATABASE: [Row; 3] = [
    row("db-driver", String, Some("mysql"), "database driver"),
    row("db-ps-mode", String, Some("auto"), "server-side prepared statements {auto, disable}"),
    row("db-debug", Bool, Some("off"), "no effect, as in sysbench"),
];
pub const MYSQL: [Row; 17] = [
    row("mysql-host", List, Some("localhost"), "hosts, taken in turn"),
    row("mysql-port", List, Some("3306"), "ports, taken in turn"),
    row("mysql-socket", List, None, "unix sockets, taken in turn instead of hosts and ports"),
    row("mysql-user", String, Some("sbtest"), "account"),
    row("mysql-password", String, Some(""), "password"),
    row("mysql-db", String, Some("sbtest"), "database of the tables"),
    v10(row("mysql-ssl", Bool, Some("off"), "encrypt connections")),
    v11(row(
        "mysql-ssl",
        String,
        Some("disabled"),
        "encryption {disabled,preferred,required,verify_ca,verify_identity}",
    )),
    v11(row("mysql-ssl-key", String, None, "file of the client's key")),
    v11(row("mysql-ssl-ca", String, None, "file of trusted authorities")),
    v11(row("mysql-ssl-cert", String, None, "file of the client's certificate")),
    row("mysql-ssl-cipher", String, Some(""), "no effect"),
    row("mysql-compression", Bool, Some("off"), "compress connections"),
    v11(row("mysql-compression-algorithms", String, Some("zlib"), "algorithm {zlib,zstd,uncompressed}")),
    row("mysql-debug", Bool, Some("off"), "verbose output about connections"),
    row("mysql-ignore-errors", List, Some("1213,1020,1205"), "repeat an event after these errors, or all"),
    row("mysql-dry-run", Bool, Some("off"), "answer every statement from memory, without a server"),
];
pub const PGSQL: [Row; 6] = [
    row("pgsql-host", String, Some("localhost"), "host, or folder of the unix socket"),
    row("pgsql-port", Int, Some("5432"), "port"),
    row("pgsql-user", String, Some("sbtest"), "account"),
    row("pgsql-password", String, Some(""), "password"),
    row("pgsql-db", String, Some("sbtest"), "database of the tables"),
    v11(row("pgsql-sslmode", String, Some("prefer"), "libpq's encryption mode")),
];

/// Options that exist only in this drop-in; `--help` does not list them.
pub const EXTENSIONS: [Row; 8] = [
    row("compat", String, Some("1.0"), "version to emulate {1.0,1.1}"),
    row("db-ignore-errors", List, Some(""), "repeat an event after these errors: numbers, SQLSTATEs or all"),
    row("report-format", String, Some("text"), "format of the reports {text,json,csv}"),
    row(
        "lua",
        Bool,
        Some("off"),
        "run the Lua script of a bundled workload instead of the engine's native one",
    ),
    row("lua-threads", String, Some("auto"), "one thread per connection, for scripts {auto,on,off}"),
    row("lua-jit", String, Some("auto"), "LuaJIT compiler {auto,on,off}"),
    row("report-errors", Bool, Some("off"), "count errors by number in full reports"),
    row("workers", Int, Some("0"), "event loops, one thread each; 0 for a quarter of the CPUs"),
];

/// The options of a version.
pub fn rows(group: &[Row], compat: Compat) -> impl Iterator<Item = &Row> {
    group.iter().filter(move |row| row.only.is_none_or(|only| only == compat))
}

/// All options of sysbench itself.
pub fn all(compat: Compat) -> Vec<Row> {
    let groups: [&[Row]; 7] = [&GENERAL, &RANDOM, &VERBOSITY, &LATENCY, &DATABASE, &MYSQL, &PGSQL];
    groups.into_iter().flat_map(|group| rows(group, compat).copied()).collect()
}
