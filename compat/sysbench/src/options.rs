//! Every option of sysbench itself, as data: what `--help` lists, in its order. The descriptions are ours.

use crate::declaration::Kind;

use super::Compat;

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name, as it is listed.
    pub name: &'static str,
    /// Type of its value.
    pub kind: Kind,
    /// What it is where nothing is said; `None` for no value.
    pub default: Option<&'static str>,
    /// One line that describes it.
    pub help: &'static str,
}

const fn row(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> Row {
    Row { name, kind, default, help }
}

use Kind::{Bool, Double, File, Int, List, Size, String};

const THREADS: [Row; 3] = [
    row("threads", Int, Some("1"), "users at the same time"),
    row("events", Int, Some("0"), "end after this many events in all; 0 for no limit"),
    row("time", Int, Some("10"), "end after this many seconds; 0 for no limit"),
];
const WARMUP: [Row; 1] = [row("warmup-time", Int, Some("0"), "seconds of load before anything is counted")];
const PACE: [Row; 2] = [
    row(
        "forced-shutdown",
        String,
        Some("off"),
        "seconds, or percent of --time, that events may take to end after the time limit; 'off' for as long as they like",
    ),
    row("thread-stack-size", Size, Some("64K"), "accepted, and without effect: users are no threads"),
];
const INIT_TIMEOUT: [Row; 1] =
    [row("thread-init-timeout", Int, Some("30"), "seconds within which all threads must be ready")];
const REPORTS: [Row; 8] = [
    row(
        "rate",
        Int,
        Some("0"),
        "events per second, due at random instants; 0 for as many as the users can do",
    ),
    row("report-interval", Int, Some("0"), "seconds between two lines of figures; 0 for none"),
    row(
        "report-checkpoints",
        List,
        Some(""),
        "seconds after the start, separated by commas, at which a full report is printed and counting begins anew",
    ),
    row("debug", Bool, Some("off"), "tell more"),
    row("validate", Bool, Some("off"), "check results where a test can"),
    row("help", Bool, Some("off"), "list the options and end"),
    row("version", Bool, Some("off"), "print the version and end"),
    row("config-file", File, None, "file with options, one name=value a line"),
];
const DEPRECATED: [Row; 4] = [
    row("tx-rate", Int, Some("0"), "old name of --rate"),
    row("max-requests", Int, Some("0"), "old name of --events"),
    row("max-time", Int, Some("0"), "old name of --time"),
    row("num-threads", Int, Some("1"), "old name of --threads"),
];
const LUAJIT: [Row; 1] = [row("luajit-cmd", String, None, "a command for LuaJIT, as after luajit -j")];

const RANDOM_10: [Row; 6] = [
    row("rand-type", String, Some("special"), "how rows are drawn {uniform,gaussian,special,pareto}"),
    row(
        "rand-spec-iter",
        Int,
        Some("12"),
        "uniform numbers whose mean makes the bell of gaussian and special",
    ),
    row("rand-spec-pct", Int, Some("1"), "width of special's hot band in percent of the rows"),
    row("rand-spec-res", Int, Some("75"), "percent of the draws that fall into special's hot band"),
    row("rand-seed", Int, Some("0"), "seed of the random numbers; 0 for the time of day"),
    row("rand-pareto-h", Double, Some("0.2"), "share h of the rows that gets 1 - h of pareto's draws"),
];
const RANDOM_11: [Row; 4] = [
    row("rand-type", String, Some("uniform"), "how rows are drawn {uniform,gaussian,pareto,zipfian}"),
    row("rand-seed", Int, Some("0"), "seed of the random numbers; 0 for the time of day"),
    row("rand-pareto-h", Double, Some("0.2"), "share h of the rows that gets 1 - h of pareto's draws"),
    row("rand-zipfian-exp", Double, Some("0.8"), "exponent of zipfian; 0 is uniform"),
];

/// The log's verbosity, which `--help` lists apart.
pub const VERBOSITY: [Row; 1] =
    [row("verbosity", Int, Some("3"), "how much is told {5 - everything, 0 - what ends the run}")];
/// Latency figures.
pub const LATENCY: [Row; 2] = [
    row("percentile", Int, Some("95"), "latency percentile to print (1-100); 0 for none"),
    row("histogram", Bool, Some("off"), "print a histogram of latencies"),
];
/// Any database.
pub const DATABASE: [Row; 3] = [
    row("db-driver", String, Some("mysql"), "database to speak to"),
    row("db-ps-mode", String, Some("auto"), "whether statements are prepared on the server {auto, disable}"),
    row("db-debug", Bool, Some("off"), "accepted, and without effect as in the original"),
];
/// MySQL and MariaDB, without TLS.
const MYSQL: [Row; 6] = [
    row("mysql-host", List, Some("localhost"), "hosts, taken in turn"),
    row("mysql-port", List, Some("3306"), "ports, taken in turn"),
    row("mysql-socket", List, None, "unix sockets, taken in turn in place of hosts and ports"),
    row("mysql-user", String, Some("sbtest"), "account"),
    row("mysql-password", String, Some(""), "its password"),
    row("mysql-db", String, Some("sbtest"), "database with the tables"),
];
const MYSQL_TLS_10: [Row; 1] = [row("mysql-ssl", Bool, Some("off"), "encrypt connections")];
const MYSQL_TLS_11: [Row; 4] = [
    row(
        "mysql-ssl",
        String,
        Some("disabled"),
        "encryption {disabled,preferred,required,verify_ca,verify_identity}",
    ),
    row("mysql-ssl-key", String, None, "file with the client's key"),
    row("mysql-ssl-ca", String, None, "file with the authorities that are trusted"),
    row("mysql-ssl-cert", String, None, "file with the client's certificate"),
];
const MYSQL_COMPRESSION: [Row; 2] = [
    row("mysql-ssl-cipher", String, Some(""), "accepted, and without effect"),
    row("mysql-compression", Bool, Some("off"), "compress what is sent"),
];
const MYSQL_ALGORITHMS: [Row; 1] = [row(
    "mysql-compression-algorithms",
    String,
    Some("zlib"),
    "how it is compressed {zlib,zstd,uncompressed}",
)];
const MYSQL_REST: [Row; 3] = [
    row("mysql-debug", Bool, Some("off"), "tell more of the connections"),
    row(
        "mysql-ignore-errors",
        List,
        Some("1213,1020,1205"),
        "error numbers after which an event starts anew, or \"all\"",
    ),
    row("mysql-dry-run", Bool, Some("off"), "answer every statement from memory, without a server"),
];
const PGSQL: [Row; 5] = [
    row("pgsql-host", String, Some("localhost"), "host, or folder of the unix socket"),
    row("pgsql-port", Int, Some("5432"), "port"),
    row("pgsql-user", String, Some("sbtest"), "account"),
    row("pgsql-password", String, Some(""), "its password"),
    row("pgsql-db", String, Some("sbtest"), "database with the tables"),
];
const PGSQL_TLS: [Row; 1] = [row("pgsql-sslmode", String, Some("prefer"), "encryption, as libpq names it")];

/// What `--help` does not list: this drop-in's own.
pub const OURS: [Row; 8] = [
    row("compat", String, Some("1.0"), "which sysbench to be like {1.0,1.1}"),
    row(
        "db-ignore-errors",
        List,
        Some(""),
        "errors that start an event anew, for any database: numbers, SQLSTATEs or all",
    ),
    row("report-format", String, Some("text"), "form of the reports {text,json,csv}"),
    row("lua", Bool, Some("off"), "run a bundled workload's script even where the engine has it natively"),
    row("lua-threads", String, Some("auto"), "give every user of a script a thread of its own {auto,on,off}"),
    row("lua-jit", String, Some("auto"), "compile scripts {auto,on,off}"),
    row("report-errors", Bool, Some("off"), "count errors by their number in full reports"),
    row("workers", Int, Some("0"), "event loops, a thread each; 0 for a quarter of the CPUs"),
];

/// General options.
pub fn general(compat: Compat) -> Vec<Row> {
    match compat {
        Compat::V10 => [&THREADS[..], &PACE, &REPORTS, &DEPRECATED].concat(),
        Compat::V11 => [&THREADS[..], &WARMUP, &PACE, &INIT_TIMEOUT, &REPORTS, &LUAJIT].concat(),
    }
}

/// Options of random numbers.
pub fn random(compat: Compat) -> Vec<Row> {
    match compat {
        Compat::V10 => RANDOM_10.to_vec(),
        Compat::V11 => RANDOM_11.to_vec(),
    }
}

/// Options of MySQL and MariaDB.
pub fn mysql(compat: Compat) -> Vec<Row> {
    match compat {
        Compat::V10 => [&MYSQL[..], &MYSQL_TLS_10, &MYSQL_COMPRESSION, &MYSQL_REST].concat(),
        Compat::V11 => {
            [&MYSQL[..], &MYSQL_TLS_11, &MYSQL_COMPRESSION, &MYSQL_ALGORITHMS, &MYSQL_REST].concat()
        }
    }
}

/// Options of PostgreSQL.
pub fn pgsql(compat: Compat) -> Vec<Row> {
    match compat {
        Compat::V10 => PGSQL.to_vec(),
        Compat::V11 => [&PGSQL[..], &PGSQL_TLS].concat(),
    }
}

/// All that sysbench has.
pub fn all(compat: Compat) -> Vec<Row> {
    let parts = [
        general(compat),
        random(compat),
        VERBOSITY.to_vec(),
        LATENCY.to_vec(),
        DATABASE.to_vec(),
        mysql(compat),
    ];
    parts.into_iter().flatten().chain(pgsql(compat)).collect()
}
