//! sysbench's options as data, in the order of `--help`. The descriptions are dbdyno's.

use crate::option_definition::Kind;

use super::Compat;

/// The definition of one of sysbench's options.
#[derive(Clone, Copy, Debug)]
pub struct SysbenchOption {
    pub name: &'static str,
    pub kind: Kind,
    /// `None` for no value.
    pub default: Option<&'static str>,
    pub help: &'static str,
    /// The only version that has the option; `None` if all versions have it.
    only_in: Option<Compat>,
}

const fn option(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    help: &'static str,
) -> SysbenchOption {
    SysbenchOption { name, kind, default, help, only_in: None }
}

const fn v10(option: SysbenchOption) -> SysbenchOption {
    SysbenchOption { only_in: Some(Compat::V1_0), ..option }
}

const fn v11(option: SysbenchOption) -> SysbenchOption {
    SysbenchOption { only_in: Some(Compat::V1_1), ..option }
}

use Kind::{Bool, Double, File, Int, List, Size, String};

pub const GENERAL: [SysbenchOption; 20] = [
    option("threads", Int, Some("1"), "concurrent connections"),
    option("events", Int, Some("0"), "maximum number of events; 0 for no limit"),
    option("time", Int, Some("10"), "maximum seconds; 0 for no limit"),
    v11(option("warmup-time", Int, Some("0"), "seconds of load before the measurement")),
    option("forced-shutdown", String, Some("off"), "seconds, or percent of --time, to wait after --time"),
    option("thread-stack-size", Size, Some("64K"), "no effect: connections are not threads"),
    v11(option("thread-init-timeout", Int, Some("30"), "seconds within which all threads must be ready")),
    option("rate", Int, Some("0"), "events per second, arriving at random; 0 for no limit"),
    option("report-interval", Int, Some("0"), "seconds between interval reports; 0 for none"),
    option("report-checkpoints", List, Some(""), "seconds at which a full report resets the counters"),
    option("debug", Bool, Some("off"), "verbose output"),
    option("validate", Bool, Some("off"), "verify results, in tests that can"),
    option("help", Bool, Some("off"), "list the options and exit"),
    option("version", Bool, Some("off"), "print the version and exit"),
    option("config-file", File, None, "option file, one name=value per line"),
    v10(option("tx-rate", Int, Some("0"), "old name of --rate")),
    v10(option("max-requests", Int, Some("0"), "old name of --events")),
    v10(option("max-time", Int, Some("0"), "old name of --time")),
    v10(option("num-threads", Int, Some("1"), "old name of --threads")),
    v11(option("luajit-cmd", String, None, "a LuaJIT command, as after luajit -j")),
];
pub const RANDOM: [SysbenchOption; 8] = [
    v10(option("rand-type", String, Some("special"), "distribution {uniform,gaussian,special,pareto}")),
    v11(option("rand-type", String, Some("uniform"), "distribution {uniform,gaussian,pareto,zipfian}")),
    v10(option("rand-spec-iter", Int, Some("12"), "uniform numbers averaged for gaussian and special")),
    v10(option("rand-spec-pct", Int, Some("1"), "width of special's hot range in percent of the rows")),
    v10(option("rand-spec-res", Int, Some("75"), "percent of accesses to special's hot range")),
    option("rand-seed", Int, Some("0"), "seed of the random numbers; 0 for the time of day"),
    option("rand-pareto-h", Double, Some("0.2"), "pareto: share h of the rows gets 1 - h of the accesses"),
    v11(option("rand-zipfian-exp", Double, Some("0.8"), "exponent of zipfian; 0 is uniform")),
];
pub const VERBOSITY: [SysbenchOption; 1] =
    [option("verbosity", Int, Some("3"), "log level {5 - debug, 0 - fatal}")];
pub const LATENCY: [SysbenchOption; 2] = [
    option("percentile", Int, Some("95"), "latency percentile to print (1-100); 0 for none"),
    option("histogram", Bool, Some("off"), "print a histogram of latencies"),
];
pub const DATABASE: [SysbenchOption; 3] = [
    option("db-driver", String, Some("mysql"), "database driver"),
    option("db-ps-mode", String, Some("auto"), "server-side prepared statements {auto, disable}"),
    option("db-debug", Bool, Some("off"), "no effect, as in sysbench"),
];
pub const MYSQL: [SysbenchOption; 17] = [
    option("mysql-host", List, Some("localhost"), "hosts, which connections use in turn"),
    option("mysql-port", List, Some("3306"), "ports, which connections use in turn"),
    option("mysql-socket", List, None, "unix sockets, used in turn instead of hosts and ports"),
    option("mysql-user", String, Some("sbtest"), "user name"),
    option("mysql-password", String, Some(""), "password"),
    option("mysql-db", String, Some("sbtest"), "database of the tables"),
    v10(option("mysql-ssl", Bool, Some("off"), "encrypt connections")),
    v11(option(
        "mysql-ssl",
        String,
        Some("disabled"),
        "encryption {disabled,preferred,required,verify_ca,verify_identity}",
    )),
    v11(option("mysql-ssl-key", String, None, "path of the client's private key")),
    v11(option("mysql-ssl-ca", String, None, "path of the trusted CA certificates")),
    v11(option("mysql-ssl-cert", String, None, "path of the client's certificate")),
    option("mysql-ssl-cipher", String, Some(""), "no effect"),
    option("mysql-compression", Bool, Some("off"), "compress connections"),
    v11(option("mysql-compression-algorithms", String, Some("zlib"), "algorithm {zlib,zstd,uncompressed}")),
    option("mysql-debug", Bool, Some("off"), "verbose output about connections"),
    option(
        "mysql-ignore-errors",
        List,
        Some("1213,1020,1205"),
        "restart an event after these errors: numbers, or all",
    ),
    option("mysql-dry-run", Bool, Some("off"), "answer every statement from memory, without a server"),
];
pub const PGSQL: [SysbenchOption; 6] = [
    option("pgsql-host", String, Some("localhost"), "host, or directory of the unix socket"),
    option("pgsql-port", Int, Some("5432"), "port"),
    option("pgsql-user", String, Some("sbtest"), "user name"),
    option("pgsql-password", String, Some(""), "password"),
    option("pgsql-db", String, Some("sbtest"), "database of the tables"),
    v11(option("pgsql-sslmode", String, Some("prefer"), "libpq's encryption mode")),
];

/// Options that exist only in this drop-in; `--help` does not list them.
pub const EXTENSIONS: [SysbenchOption; 9] = [
    option("compat", String, Some("1.0"), "version to emulate {1.0,1.1}"),
    option(
        "db-ignore-errors",
        List,
        Some(""),
        "restart an event after these errors: numbers, SQLSTATEs or all",
    ),
    option("report-format", String, Some("text"), "format of the reports {text,json,csv}"),
    option(
        "lua",
        Bool,
        Some("off"),
        "run the Lua script of a bundled workload instead of the engine's native one",
    ),
    option("lua-threads", String, Some("auto"), "one thread per connection, for scripts {auto,on,off}"),
    option("lua-jit", String, Some("auto"), "LuaJIT compiler {auto,on,off}"),
    option(
        "lua-memory",
        Size,
        None,
        "memory that a script may use; without a value, it depends on --threads",
    ),
    option("report-errors", Bool, Some("off"), "count errors by number in full reports"),
    option("workers", Int, Some("0"), "event loops, one thread each; 0 for a quarter of the CPUs"),
];

/// The options of `group` that `compat` has.
pub fn select(group: &[SysbenchOption], compat: Compat) -> impl Iterator<Item = &SysbenchOption> {
    group.iter().filter(move |option| option.only_in.is_none_or(|version| version == compat))
}

/// All options of sysbench itself.
pub fn all(compat: Compat) -> Vec<SysbenchOption> {
    let groups: [&[SysbenchOption]; 7] = [&GENERAL, &RANDOM, &VERBOSITY, &LATENCY, &DATABASE, &MYSQL, &PGSQL];
    groups.into_iter().flat_map(|group| select(group, compat).copied()).collect()
}
