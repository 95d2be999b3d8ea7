//! Turns the options of a native workload or a script into the engine's plan.

use std::sync::Arc;

use dbdyno_schema::Plan;
use dbdyno_schema::plan::{
    Client, Compression, Endpoint, ErrorCode, Load, Loading, OltpOptions, OnLost, Phases, Poisson, Reconnect,
    Report, Retry, Scheduling, ScriptWorkload, Shape, StatementMode, Target, Tls, TlsMode, Workload,
    WorkloadName, limits,
};

use dbdyno_runner::{ExtraCounts, MeasurementEnd, NewRowIds, Options, QueueOverflow, Renewal};

use super::driver::{Driver, connect_timeout_us, driver, servers};
use super::error::OptionError;
use super::registry::Registry;
use super::settings::Settings;
use super::tables::Tables;
use super::{Compat, latency, oltp, pgsql};

/// Length of sysbench's event queue. If the queue overflows, the run ends.
pub const QUEUE_LENGTH: u32 = 131_072;
/// MySQL's default compression level.
const ZSTD_LEVEL: u8 = 3;
const SECOND_US: u64 = 1_000_000;
const DAY_US: u64 = 86_400 * SECOND_US;

#[derive(Clone, Copy, Debug)]
pub enum TestKind<'a> {
    Native(WorkloadName),
    Script(&'a str),
}

/// The plan of a database test, for all its commands. The caller sets the password; a script reads its own options.
///
/// # Errors
/// An invalid port, error number or mode.
pub fn plan(
    kind: TestKind<'_>,
    registry: &Registry,
    settings: &Settings,
    seed: u64,
    workers: u32,
) -> Result<Plan, OptionError> {
    let driver = driver(registry)?;
    let target = match driver {
        Driver::Mysql => target(registry, settings.compat)?,
        Driver::Pgsql => pgsql::target(registry)?,
    };
    Ok(Plan {
        schema: 1,
        client: Client { workers, scheduling: scheduling(&target) },
        target,
        workload: workload(kind, registry, settings)?,
        load: Load {
            connections: settings.threads,
            shape: shape(settings.rate),
            think_time: None,
            queue_limit: (settings.rate > 0).then_some(QUEUE_LENGTH),
            reconnect_every: match kind {
                TestKind::Native(name) => oltp::reconnect_every(name, registry),
                TestKind::Script(_) => 0,
            },
            answer_timeout_us: None,
            max_rate_per_s: None,
            abort_if: None,
        },
        phases: phases(settings),
        seed,
        segment: Default::default(),
        start: Default::default(),
        watch_input: false,
        report: report(settings),
        retry: match driver {
            Driver::Mysql => retry(registry)?,
            Driver::Pgsql => pgsql::retry(registry)?,
        },
        reconnect: Reconnect { on_lost: OnLost::Stop, first_us: 1000, max_us: 1000, give_up_us: DAY_US },
        loading: Loading { streams: settings.threads.min(limits::STREAMS), ..Loading::default() },
        prewarm: Default::default(),
        session: Vec::new(),
    })
}

fn workload(kind: TestKind<'_>, registry: &Registry, settings: &Settings) -> Result<Workload, OptionError> {
    let (name, script) = match kind {
        TestKind::Native(name) => (name, None),
        TestKind::Script(path) => {
            let script = ScriptWorkload { path: path.into(), ..ScriptWorkload::default() };
            (WorkloadName::Lua, Some(Box::new(script)))
        }
    };
    Ok(Workload {
        name,
        options: match name {
            WorkloadName::Lua | WorkloadName::BulkInsert => OltpOptions::default(),
            _ => oltp::options(registry),
        },
        keys: settings.keys.clone(),
        statements: statement_mode(registry)?,
        sql: None,
        script,
    })
}

/// The engine options that a plan cannot express.
pub fn options(plan: &Plan, registry: &Registry) -> Options {
    let create_options = registry.string("create_table_options").unwrap_or_default();
    Options {
        new_row_ids: NewRowIds::WholeRange,
        tables: Some(Arc::new(Tables::new(plan, create_options))),
        measurement_end: MeasurementEnd::AfterLastEvent,
        extra_counts: extra_counts(),
        queue_overflow: QueueOverflow::Abort,
        renewal: Renewal::WithinLastEvent,
        uncounted_rollback: plan.target.is_postgresql(),
        empty_answers: true,
        only_changed_rows: true,
        ..Options::default()
    }
}

/// The additional counts that reports of every test need: sysbench's latency buckets for percentiles, and totals by user.
pub fn extra_counts() -> ExtraCounts {
    ExtraCounts { log_buckets: Some(latency::scale()), users: true }
}

/// The phases of every test.
pub fn phases(settings: &Settings) -> Phases {
    let time_us = u64::from(settings.time_s) * SECOND_US;
    Phases {
        warmup_us: u64::from(settings.warmup_s) * SECOND_US,
        measure_us: time_us,
        events: (settings.events > 0).then_some(settings.events),
        drain_us: settings
            .forced_shutdown_s
            .map_or(u64::MAX, |at_s| at_s.saturating_mul(SECOND_US).saturating_sub(time_us)),
    }
}

/// The report times of every test.
pub fn report(settings: &Settings) -> Report {
    let marks = settings.checkpoints_s.iter().map(|&at_s| u64::from(at_s) * SECOND_US);
    Report {
        interval_us: u64::from(settings.report_interval_s) * SECOND_US,
        tick_us: 0,
        marks_us: marks.filter(|&at| at > 0).collect(),
        ..Report::default()
    }
}

/// The load shape for a rate. A rate above the engine's maximum is reduced to the maximum, at which the queue overflows
/// too.
fn shape(rate: u32) -> Shape {
    if rate == 0 {
        Shape::Closed
    } else {
        Shape::Poisson(Poisson { rate_per_s: f64::from(rate).min(limits::RATE_PER_S) })
    }
}

fn statement_mode(registry: &Registry) -> Result<StatementMode, OptionError> {
    match registry.string("db-ps-mode").unwrap_or_default() {
        "auto" => Ok(StatementMode::Prepared),
        "disable" => Ok(StatementMode::Text),
        other => Err(OptionError::Fatal(format!("Invalid value for db-ps-mode: {other}"))),
    }
}

fn target(registry: &Registry, compat: Compat) -> Result<Target, OptionError> {
    if registry.bool("mysql-dry-run") {
        return Ok(Target::Null { answer_us: 0 });
    }
    Ok(Target::Mysql {
        endpoints: servers(registry)?.into_iter().map(|(endpoint, _)| endpoint).collect(),
        user: registry.string("mysql-user").unwrap_or_default().into(),
        password: None,
        database: registry.string("mysql-db").unwrap_or_default().into(),
        connect_timeout_us: connect_timeout_us(registry)?,
        tls: tls(registry, compat)?,
        compression: compression(registry)?,
        server_public_key: None,
        allow_public_key_retrieval: false,
    })
}

/// The compression. In 1.1, the option lists algorithms, and the first one applies.
fn compression(registry: &Registry) -> Result<Compression, OptionError> {
    if !registry.bool("mysql-compression") {
        return Ok(Compression::None);
    }
    let name = "mysql-compression-algorithms";
    match registry.string(name).unwrap_or("zlib").split(',').next() {
        Some("zlib") => Ok(Compression::Zlib),
        Some("zstd") => Ok(Compression::Zstd { level: ZSTD_LEVEL }),
        Some("uncompressed") => Ok(Compression::None),
        other => Err(OptionError::Fatal(format!(
            "Invalid value for --{name}: '{}'; it may be zlib, zstd or uncompressed",
            other.unwrap_or_default()
        ))),
    }
}

fn tls(registry: &Registry, compat: Compat) -> Result<Tls, OptionError> {
    if compat == Compat::V1_0 {
        let mode = if registry.bool("mysql-ssl") { TlsMode::Required } else { TlsMode::Disabled };
        return Ok(Tls { mode, ..Tls::default() });
    }
    let name = registry.string("mysql-ssl").unwrap_or_default();
    let invalid = || OptionError::Fatal(format!("Invalid value for --mysql-ssl: '{name}'"));
    let mode = TlsMode::from_mysql_name(name).ok_or_else(invalid)?;
    let file = |name: &str| registry.string(name).map(Into::into);
    Ok(Tls {
        mode,
        ca: file("mysql-ssl-ca"),
        certificate: file("mysql-ssl-cert"),
        key: file("mysql-ssl-key"),
    })
}

fn retry(registry: &Registry) -> Result<Retry, OptionError> {
    let for_both = "db-ignore-errors";
    let option = if registry.list(for_both).is_empty() { "mysql-ignore-errors" } else { for_both };
    let codes = registry.list(option);
    let all = codes.iter().any(|code| code == "all");
    let numbers = codes.iter().filter(|code| *code != "all");
    let read = |text: &String| {
        text.parse().map(ErrorCode::Number).map_err(|_| {
            let numbers = "MySQL's errors are numbers such as 1213, or all";
            OptionError::Fatal(format!("Invalid value for --{option}: '{text}'; {numbers}"))
        })
    };
    Ok(Retry { codes: numbers.map(read).collect::<Result<_, _>>()?, all, rollback: false })
}

/// The scheduling class: SCHED_BATCH if the server shares this machine's CPUs.
pub fn scheduling(target: &Target) -> Scheduling {
    let endpoints = target.endpoints();
    let is_local = |endpoint: &Endpoint| match endpoint {
        Endpoint::Unix { .. } => true,
        Endpoint::Tcp { host, .. } => host == "localhost" || host.starts_with("127.") || host == "::1",
    };
    if !endpoints.is_empty() && endpoints.iter().all(is_local) {
        Scheduling::Batch
    } else {
        Scheduling::Normal
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::SOCKET;

    fn plan_of(options: &[(&str, &str)]) -> Result<Plan, OptionError> {
        plan_for(Compat::V1_0, options)
    }

    fn plan_for(compat: Compat, options: &[(&str, &str)]) -> Result<Plan, OptionError> {
        let mut registry = Registry::new(compat);
        let workload = WorkloadName::OltpReadWrite;
        oltp::option_definitions(workload, compat).into_iter().for_each(|option| registry.declare(option));
        options.iter().for_each(|(name, value)| registry.set(name, Some(value)).unwrap());
        let settings = Settings::read(&registry, compat)?;
        plan(TestKind::Native(workload), &registry, &settings, 1, 1)
    }

    fn endpoints_of(options: &[(&str, &str)]) -> Vec<Endpoint> {
        let Target::Mysql { endpoints, .. } = plan_of(options).unwrap().target else { unreachable!() };
        endpoints
    }

    #[test]
    fn default_options_give_a_valid_plan() {
        let plan = plan_of(&[]).unwrap();
        assert_eq!(plan.problems(), Vec::<String>::new());
        assert_eq!(plan.client.scheduling, Scheduling::Batch);
        assert_eq!(plan.phases.drain_us, u64::MAX);
        assert_eq!(plan.retry.codes, Retry::MYSQL_NUMBERS.map(ErrorCode::Number));
    }

    #[test]
    fn endpoints_are_hosts_times_ports() {
        let tcp = |host: &str, port| Endpoint::Tcp { host: host.into(), port };
        let both = endpoints_of(&[("mysql-host", "a,b"), ("mysql-port", "1,2")]);
        assert_eq!(both, [tcp("a", 1), tcp("a", 2), tcp("b", 1), tcp("b", 2)]);
        assert_eq!(endpoints_of(&[]), [Endpoint::Unix { path: SOCKET.into() }]);
        let sockets = endpoints_of(&[("mysql-host", "a"), ("mysql-socket", "/x,/y")]);
        assert_eq!(sockets, ["/x", "/y"].map(|path| Endpoint::Unix { path: path.into() }));
    }

    #[test]
    fn server_names_are_those_of_the_options() {
        let names = |options: &[(&str, &str)]| {
            servers(&crate::testing::registry(options, Compat::V1_0))
                .map(|servers| servers.into_iter().map(|(_, name)| name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["host 'localhost', port 3306"]);
        let both = names(&[("mysql-host", "localhost,b"), ("mysql-port", "3307")]).unwrap();
        assert_eq!(both, ["host 'localhost', port 3307", "host 'b', port 3307"]);
        assert_eq!(names(&[("mysql-socket", SOCKET)]).unwrap(), [format!("socket '{SOCKET}'")]);
        for (option, what) in [("mysql-host", "hosts"), ("mysql-port", "ports")] {
            let message = format!("No MySQL {what} specified, aborting");
            assert_eq!(names(&[(option, "")]), Err(OptionError::Fatal(message)));
        }
    }

    #[test]
    fn limits_and_rates() {
        let plan =
            plan_of(&[("time", "0"), ("events", "5"), ("rate", "7"), ("report-checkpoints", "0,2")]).unwrap();
        assert_eq!((plan.phases.measure_us, plan.phases.events), (0, Some(5)));
        assert_eq!(plan.load.queue_limit, Some(QUEUE_LENGTH));
        assert_eq!(plan.report.marks_us, [2_000_000]);
        assert_eq!(plan_of(&[("forced-shutdown", "3")]).unwrap().phases.drain_us, 3_000_000);
        let longest = plan_of(&[("time", "2147483647"), ("forced-shutdown", "4294967295%")]).unwrap();
        assert_eq!(longest.phases.drain_us, u64::MAX - 2_147_483_647_000_000, "practically never");
    }

    #[test]
    fn options_of_1_1() {
        let options =
            [("reconnect", "5"), ("create-table-options", "ROW_FORMAT=dynamic"), ("mysql-compression", "on")];
        let plan = plan_for(Compat::V1_1, &options).unwrap();
        assert_eq!(plan.load.reconnect_every, 5);
        assert_eq!(plan.problems(), Vec::<String>::new());
        let compression_for = |algorithms: &str| {
            let name = "mysql-compression-algorithms";
            let plan = plan_for(Compat::V1_1, &[("mysql-compression", "on"), (name, algorithms)])?;
            let Target::Mysql { compression, .. } = plan.target else { unreachable!() };
            Ok::<_, OptionError>(compression)
        };
        assert_eq!(compression_for("zlib"), Ok(Compression::Zlib));
        assert_eq!(compression_for("zstd,zlib"), Ok(Compression::Zstd { level: 3 }));
        assert_eq!(compression_for("uncompressed"), Ok(Compression::None));
        assert!(compression_for("lz4").is_err());
    }

    #[test]
    fn db_ignore_errors_overrides_mysql_ignore_errors() {
        let retried =
            |options: &[(&str, &str)]| plan_of(options).map(|plan| (plan.retry.codes, plan.retry.all));
        let numbers = |numbers: &[u16]| -> Vec<_> { numbers.iter().map(|&n| ErrorCode::Number(n)).collect() };
        assert_eq!(retried(&[]), Ok((numbers(&Retry::MYSQL_NUMBERS), false)));
        assert_eq!(retried(&[("mysql-ignore-errors", "7,8")]), Ok((numbers(&[7, 8]), false)));
        let both = [("db-ignore-errors", "1062"), ("mysql-ignore-errors", "7,all")];
        assert_eq!(retried(&both), Ok((numbers(&[1062]), false)), "--db-ignore-errors has precedence");
        assert_eq!(retried(&[("db-ignore-errors", "all,1062")]), Ok((numbers(&[1062]), true)));
        assert_eq!(retried(&[("mysql-ignore-errors", "")]), Ok((Vec::new(), false)));
        let message =
            "Invalid value for --db-ignore-errors: '40P01'; MySQL's errors are numbers such as 1213, or all";
        assert_eq!(retried(&[("db-ignore-errors", "40P01")]), Err(OptionError::Fatal(message.into())));
    }

    #[test]
    fn invalid_numbers_are_errors() {
        let port = plan_of(&[("mysql-port", "x")]).unwrap_err();
        assert_eq!(port, OptionError::Usage("Invalid value for the 'mysql-port' option: 'x'".into()));
        assert!(plan_of(&[("mysql-ignore-errors", "x")]).is_err());
        assert!(plan_of(&[("db-ps-mode", "x")]).is_err());
        assert!(plan_of(&[("mysql-ignore-errors", "all")]).unwrap().retry.all);
    }
}
