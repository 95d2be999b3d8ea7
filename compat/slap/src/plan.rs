//! The clients of one round as the engine's plan: every client runs the complete list of queries.

use std::collections::BTreeMap;

use dbdyno_schema::Plan;
use dbdyno_schema::plan::{
    Client, Literal, Load, OltpOptions, OnLost, ParameterSource, Phases, Reconnect, Report, Retry, Shape,
    SqlStatement, SqlTransaction, SqlWorkload, StatementMode, Target, TransactionOrder, Workload,
    WorkloadName, limits,
};

use dbdyno_runner::{MeasurementEnd, Options};
use dbdyno_sysbench::plan::scheduling;

use super::settings::Settings;
use super::statements::title;

/// The name of the plan's parameter with a row's key.
const KEY: &str = "slap_key";
/// The maximum length of a query's name in reports.
const TITLE: usize = 70;
/// The name of all queries without `--latency`.
const QUERY: &str = "query";
const COMMIT: &str = "COMMIT";

/// The plan of a round with `clients`; `keys` are the rows' keys.
pub fn plan(settings: &Settings, target: &Target, clients: u32, keys: &[String], workers: u32) -> Plan {
    let scheduling = scheduling(target);
    let each = settings.per_client(clients);
    let mut target = target.clone();
    if let Target::Mysql { database, .. } = &mut target {
        database.clone_from(&settings.schema);
    }
    Plan {
        schema: 1,
        target,
        workload: Workload {
            name: WorkloadName::Sql,
            options: OltpOptions::default(),
            keys: Default::default(),
            statements: StatementMode::Text,
            sql: Some(Box::new(workload(settings, each, keys))),
            script: None,
        },
        load: Load {
            connections: clients,
            shape: Shape::Closed,
            think_time: None,
            queue_limit: None,
            reconnect_every: settings.detach,
        },
        phases: Phases {
            warmup_us: 0,
            measure_us: 0,
            events: Some(each.saturating_mul(clients.into())),
            drain_us: u64::MAX,
        },
        seed: 1,
        segment: Default::default(),
        start: Default::default(),
        client: Client { workers: workers.min(clients), scheduling },
        report: Report {
            interval_us: 0,
            tick_us: 0,
            statements_us: limits::DURATION_US,
            ..Report::default()
        },
        retry: Retry { codes: Vec::new(), all: false, rollback: false },
        reconnect: Reconnect { on_lost: OnLost::Stop, ..Reconnect::default() },
        loading: Default::default(),
        prewarm: Default::default(),
    }
}

/// The engine options that a plan cannot express.
pub fn options() -> Options {
    Options { measurement_end: MeasurementEnd::AfterLastEvent, multi_statements: true, ..Options::default() }
}

fn workload(settings: &Settings, each: u64, keys: &[String]) -> SqlWorkload {
    let mut parameters = BTreeMap::new();
    if settings.queries.iter().any(|query| query.keyed) {
        let values = keys.iter().map(|key| Some(Literal::Text(key.clone()))).collect();
        parameters.insert(KEY.to_owned(), ParameterSource::OneOf { values, weights: None });
    }
    let commits = settings.commit > 0;
    SqlWorkload {
        parameters,
        transactions: transactions(settings, each),
        order: TransactionOrder::EachInOrder,
        session: settings
            .init_command
            .clone()
            .into_iter()
            .chain(commits.then(|| "SET AUTOCOMMIT=0".into()))
            .collect(),
        teardown: commits.then(|| COMMIT.into()).into_iter().collect(),
        each: Some(each),
        ..SqlWorkload::default()
    }
}

/// The list of transactions that every client repeats. Its length is the common period of queries and commits.
fn transactions(settings: &Settings, each: u64) -> Vec<SqlTransaction> {
    let (count, commit) = (settings.queries.len() as u64, settings.commit);
    let period = if commit == 0 { count } else { count / gcd(count, commit) * commit };
    let statement = |sql: String, name: String| SqlStatement {
        sql,
        name: Some(name),
        rows: None,
        mode: None,
        draw: Vec::new(),
        repeat: 1,
    };
    let names = names(settings);
    let transaction = |number: u64| {
        let at = (number % count) as usize;
        let query = &settings.queries[at];
        let sql = if query.keyed { format!("{} :{KEY}", query.sql) } else { query.sql.clone() };
        let mut statements = vec![statement(sql, names[at].clone())];
        if commit > 0 && (number + 1).is_multiple_of(commit) {
            statements.push(statement(COMMIT.into(), COMMIT.into()));
        }
        SqlTransaction { name: None, weight: 1.0, statements }
    };
    (0..period.min(each)).map(transaction).collect()
}

/// The queries' names in reports.
fn names(settings: &Settings) -> Vec<String> {
    let name = |query: &super::generate::Query| match (settings.latency, &settings.generated) {
        (false, _) => QUERY.to_owned(),
        // Generated queries differ only in their values, so the verb names them.
        (true, Some(_)) => {
            let verb = query.sql.split(' ').next().unwrap_or_default();
            if query.keyed { format!("{verb} by key") } else { verb.to_owned() }
        }
        (true, None) => title(&query.sql, TITLE),
    };
    settings.queries.iter().map(name).collect()
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}
