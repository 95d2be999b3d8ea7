//! A workload that the engine has natively, as the engine's plan.

use dbdyno_door::Plan;
use dbdyno_door::plan::{
    Client, Compression, Endpoint, ErrorCode, LastEvents, Load, Loading, LoadingForm, NewRows, OltpOptions,
    OnLost, Phases, QueueOverflow, Reconnect, Report, Retry, Scheduling, Shape, StatementMode, Target, Tls,
    TlsMode, Workload, WorkloadName, limits,
};

use super::registry::Registry;
use super::settings::{Refused, Settings};
use super::{Compat, oltp, pgsql};

/// Where MySQL's own clients look for a server on this machine.
pub(super) const SOCKET: &str = "/run/mysqld/mysqld.sock";
/// Events that may wait; with one more sysbench gives up.
pub const QUEUE: u32 = 131_072;
const SECOND_US: u64 = 1_000_000;
const DAY_US: u64 = 86_400 * SECOND_US;

/// The plan of a native workload, for `run` as for its other commands, or of a script's run, which has none. The password
/// is not in it, nor where to find it: whoever runs the plan has it from the same command line.
///
/// # Errors
/// A port or an error number that is none, or a mode that does not exist.
pub fn plan(
    workload: Option<WorkloadName>,
    registry: &Registry,
    settings: &Settings,
    seed: u64,
    workers: u32,
) -> Result<Plan, Refused> {
    let driver = driver(registry)?;
    let target = match driver {
        Driver::Mysql => target(registry, settings.compat)?,
        Driver::Pgsql => pgsql::target(registry, settings.compat)?,
    };
    Ok(Plan {
        schema: 1,
        client: Client { workers, scheduling: scheduling(&target) },
        target,
        workload: Workload {
            name: workload.unwrap_or(WorkloadName::OltpPointSelect),
            // bulk_insert declares none.
            options: match workload {
                None | Some(WorkloadName::BulkInsert) => OltpOptions::default(),
                Some(_) => oltp::options(registry),
            },
            keys: settings.keys.clone(),
            statements: statements(registry)?,
            new_rows: NewRows::Sysbench,
            sql: None,
        },
        load: Load {
            connections: settings.threads,
            shape: shape(settings.rate),
            think_time: None,
            queue_limit: (settings.rate > 0).then_some(QUEUE),
            queue_overflow: if settings.rate > 0 { QueueOverflow::Abort } else { QueueOverflow::Drop },
            reconnect_every: registry.double("reconnect").max(0.0) as u32,
            reconnect_within: true,
        },
        phases: phases(settings),
        seed,
        segment: Default::default(),
        start: Default::default(),
        report: report(settings),
        retry: match driver {
            Driver::Mysql => retry(registry)?,
            Driver::Pgsql => pgsql::retry(registry)?,
        },
        reconnect: Reconnect { on_lost: OnLost::Stop, first_us: 1000, max_us: 1000, give_up_us: DAY_US },
        loading: Loading {
            streams: settings.threads.min(limits::STREAMS),
            form: LoadingForm::Sysbench,
            ..Loading::default()
        },
        prewarm: Default::default(),
    })
}

/// The phases of a run of anything.
pub fn phases(settings: &Settings) -> Phases {
    let time_us = u64::from(settings.time_s) * SECOND_US;
    Phases {
        warmup_us: u64::from(settings.warmup_s) * SECOND_US,
        measure_us: time_us,
        events: (settings.events > 0).then_some(settings.events),
        last_events: LastEvents::Counted,
        drain_us: settings
            .forced_shutdown_s
            .map_or(u64::MAX, |at_s| (at_s * SECOND_US).saturating_sub(time_us)),
    }
}

/// What is told of a run of anything, and when.
pub fn report(settings: &Settings) -> Report {
    let marks = settings.checkpoints_s.iter().map(|&at_s| u64::from(at_s) * SECOND_US);
    Report {
        interval_us: u64::from(settings.report_interval_s) * SECOND_US,
        tick_us: 0,
        marks_us: marks.filter(|&at| at > 0).collect(),
        sysbench_buckets: true,
        users: true,
        ..Report::default()
    }
}

/// Through which client a database is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// MySQL and MariaDB.
    Mysql,
    /// PostgreSQL.
    Pgsql,
}

/// The driver that `--db-driver` names.
///
/// # Errors
/// There is none of that name.
pub fn driver(registry: &Registry) -> Result<Driver, Refused> {
    match registry.string("db-driver") {
        Some("mysql") => Ok(Driver::Mysql),
        Some("pgsql") => Ok(Driver::Pgsql),
        None => Err(Refused::Fatal(
            "Multiple DB drivers are available. Use --db-driver=name to specify which one to use".into(),
        )),
        Some(other) => Err(Refused::Fatal(format!("invalid database driver name: '{other}'"))),
    }
}

/// A rate that nobody can play fills the line just as fast at the highest that the engine knows.
fn shape(rate: u32) -> Shape {
    if rate == 0 {
        Shape::Closed
    } else {
        Shape::Poisson { rate_per_s: f64::from(rate).min(limits::RATE_PER_S) }
    }
}

fn statements(registry: &Registry) -> Result<StatementMode, Refused> {
    match registry.string("db-ps-mode").unwrap_or_default() {
        "auto" => Ok(StatementMode::Prepared),
        "disable" => Ok(StatementMode::Text),
        other => Err(Refused::Fatal(format!("Invalid value for db-ps-mode: {other}"))),
    }
}

fn target(registry: &Registry, compat: Compat) -> Result<Target, Refused> {
    if registry.bool("mysql-dry-run") {
        return Ok(Target::Null { answer_us: 0, silent: true });
    }
    Ok(Target::Mysql {
        endpoints: endpoints(registry)?,
        user: registry.string("mysql-user").unwrap_or_default().into(),
        password: None,
        database: registry.string("mysql-db").unwrap_or_default().into(),
        connect_timeout_us: connect_timeout_us(registry)?,
        tls: tls(registry, compat)?,
        compression: match registry.bool("mysql-compression") {
            true => Compression::Zlib,
            false => Compression::default(),
        },
        server_public_key: None,
        // As MySQL's client library does over a socket of this machine; elsewhere TLS or a file is the way.
        allow_public_key_retrieval: false,
        multi_statements: false,
    })
}

/// Within how many seconds all users must be ready: 1.1 lets one say it, 1.0 waits for 30 s.
pub(super) fn init_timeout_s(registry: &Registry) -> Result<u64, Refused> {
    let name = "thread-init-timeout";
    match registry.int(name)? {
        0 if registry.string(name).is_none() => Ok(30),
        seconds if seconds > 0 => Ok(seconds as u64),
        seconds => Err(Refused::Fatal(format!("Invalid value for --{name}: {seconds}.\n"))),
    }
}

/// How long a user may take to get a connection. A little more than a run waits for all, so that a run says so.
pub(super) fn connect_timeout_us(registry: &Registry) -> Result<u64, Refused> {
    Ok((init_timeout_s(registry)? + 1) * SECOND_US)
}

/// Sockets in turn, or hosts and ports in turn, the ports changing fastest. The name localhost is the machine's socket,
/// as MySQL's own clients have it.
fn endpoints(registry: &Registry) -> Result<Vec<Endpoint>, Refused> {
    let sockets = registry.list("mysql-socket");
    if !sockets.is_empty() {
        return Ok(sockets.iter().map(|path| Endpoint::Unix { path: path.clone() }).collect());
    }
    let read = |text: &String| {
        let said = || Refused::Usage(format!("Invalid value for the 'mysql-port' option: '{text}'"));
        text.parse::<u16>().ok().filter(|&port| port > 0).ok_or_else(said)
    };
    let ports = registry.list("mysql-port").iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let at = |host: &String, port: u16| match host.as_str() {
        "localhost" => Endpoint::Unix { path: SOCKET.into() },
        _ => Endpoint::Tcp { host: host.clone(), port },
    };
    Ok(registry
        .list("mysql-host")
        .iter()
        .flat_map(|host| ports.iter().map(move |&port| at(host, port)))
        .collect())
}

fn tls(registry: &Registry, compat: Compat) -> Result<Tls, Refused> {
    if compat == Compat::V10 {
        let mode = if registry.bool("mysql-ssl") { TlsMode::Required } else { TlsMode::Disabled };
        return Ok(Tls { mode, ..Tls::default() });
    }
    let given = registry.string("mysql-ssl").unwrap_or_default();
    let invalid = || Refused::Fatal(format!("Invalid value for --mysql-ssl: '{given}'"));
    let mode = TlsMode::named(given).ok_or_else(invalid)?;
    let file = |name: &str| registry.string(name).map(Into::into);
    Ok(Tls {
        mode,
        ca: file("mysql-ssl-ca"),
        certificate: file("mysql-ssl-cert"),
        key: file("mysql-ssl-key"),
    })
}

fn retry(registry: &Registry) -> Result<Retry, Refused> {
    let ours = registry.list("db-ignore-errors");
    let given = if ours.is_empty() { registry.list("mysql-ignore-errors") } else { ours };
    let option = if ours.is_empty() { "mysql-ignore-errors" } else { "db-ignore-errors" };
    let all = given.iter().any(|code| code == "all");
    let numbers = given.iter().filter(|code| *code != "all");
    let read = |text: &String| {
        text.parse()
            .map(ErrorCode::Number)
            .map_err(|_| Refused::Fatal(format!("Invalid value for --{option}: '{text}'")))
    };
    Ok(Retry {
        codes: numbers.map(read).collect::<Result<_, _>>()?,
        all,
        rollback: false,
        uncounted_rollback: false,
    })
}

/// Under SCHED_BATCH where the server runs on the same CPUs.
fn scheduling(target: &Target) -> Scheduling {
    let endpoints = target.endpoints();
    let here = |endpoint: &Endpoint| match endpoint {
        Endpoint::Unix { .. } => true,
        Endpoint::Tcp { host, .. } => host.starts_with("127.") || host == "::1",
    };
    if !endpoints.is_empty() && endpoints.iter().all(here) { Scheduling::Batch } else { Scheduling::Normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(options: &[(&str, &str)]) -> Result<Plan, Refused> {
        let mut registry = Registry::new(Compat::V10);
        oltp::declared(WorkloadName::OltpReadWrite).into_iter().for_each(|option| registry.declare(option));
        options.iter().for_each(|(name, value)| registry.set(name, Some(value)).unwrap());
        let settings = Settings::read(&registry, Compat::V10)?;
        plan(Some(WorkloadName::OltpReadWrite), &registry, &settings, 1, 1)
    }

    fn where_to(options: &[(&str, &str)]) -> Vec<Endpoint> {
        let Target::Mysql { endpoints, .. } = made(options).unwrap().target else { unreachable!() };
        endpoints
    }

    #[test]
    fn the_defaults_make_a_sound_plan() {
        let plan = made(&[]).unwrap();
        assert_eq!(plan.faults(), Vec::<String>::new());
        assert_eq!(plan.client.scheduling, Scheduling::Batch);
        assert_eq!(plan.phases.drain_us, u64::MAX);
        assert_eq!(plan.retry.codes, [1213, 1020, 1205].map(ErrorCode::Number));
    }

    #[test]
    fn hosts_and_ports_in_turn_the_ports_fastest() {
        let tcp = |host: &str, port| Endpoint::Tcp { host: host.into(), port };
        let both = where_to(&[("mysql-host", "a,b"), ("mysql-port", "1,2")]);
        assert_eq!(both, [tcp("a", 1), tcp("a", 2), tcp("b", 1), tcp("b", 2)]);
        assert_eq!(where_to(&[]), [Endpoint::Unix { path: SOCKET.into() }]);
        let sockets = where_to(&[("mysql-host", "a"), ("mysql-socket", "/x,/y")]);
        assert_eq!(sockets, ["/x", "/y"].map(|path| Endpoint::Unix { path: path.into() }));
    }

    #[test]
    fn limits_and_rates() {
        let plan =
            made(&[("time", "0"), ("events", "5"), ("rate", "7"), ("report-checkpoints", "0,2")]).unwrap();
        assert_eq!((plan.phases.measure_us, plan.phases.events), (0, Some(5)));
        assert_eq!(plan.load.queue_overflow, QueueOverflow::Abort);
        assert_eq!(plan.report.marks_us, [2_000_000]);
        assert_eq!(made(&[("forced-shutdown", "3")]).unwrap().phases.drain_us, 3_000_000);
    }

    #[test]
    fn what_is_no_number_is_told() {
        let port = made(&[("mysql-port", "x")]).unwrap_err();
        assert_eq!(port, Refused::Usage("Invalid value for the 'mysql-port' option: 'x'".into()));
        assert!(made(&[("mysql-ignore-errors", "x")]).is_err());
        assert!(made(&[("db-ps-mode", "x")]).is_err());
        assert!(made(&[("mysql-ignore-errors", "all")]).unwrap().retry.all);
    }
}
