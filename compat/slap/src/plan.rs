//! Creates the engine's plan for one round of clients. Every client executes the complete list of queries.

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

/// The plan's parameter for the key of a row.
const KEY_PARAMETER: &str = "slap_key";
/// The maximum length of a query's name in reports, in characters.
const TITLE_LENGTH: usize = 70;
/// Without `--latency`, all queries have this name.
const QUERY_NAME: &str = "query";
const COMMIT: &str = "COMMIT";

/// The plan of a round with this number of clients. `keys` are the keys of the table's rows.
pub fn plan(settings: &Settings, target: &Target, clients: u32, keys: &[String], workers: u32) -> Plan {
    let scheduling = scheduling(target);
    let queries_per_client = settings.queries_per_client(clients);
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
            sql: Some(Box::new(workload(settings, queries_per_client, keys))),
            script: None,
        },
        load: Load {
            connections: clients,
            shape: Shape::Closed,
            think_time: None,
            queue_limit: None,
            reconnect_every: settings.detach,
            answer_timeout_us: None,
            max_rate_per_s: None,
            abort_if: None,
        },
        phases: Phases {
            warmup_us: 0,
            measure_us: 0,
            events: Some(queries_per_client.saturating_mul(clients.into())),
            drain_us: u64::MAX,
        },
        seed: 1,
        segment: Default::default(),
        start: Default::default(),
        watch_input: false,
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
        session: Vec::new(),
    }
}

/// The engine options that are not part of a plan.
pub fn options() -> Options {
    Options {
        measurement_end: MeasurementEnd::AfterLastEvent,
        multi_statements: true,
        only_changed_rows: true, // The user's statements may call ROW_COUNT().
        ..Options::default()
    }
}

fn workload(settings: &Settings, queries_per_client: u64, keys: &[String]) -> SqlWorkload {
    let mut parameters = BTreeMap::new();
    if settings.queries.iter().any(|query| query.needs_key) {
        let values = keys.iter().map(|key| Some(Literal::Text(key.clone()))).collect();
        parameters.insert(KEY_PARAMETER.to_owned(), ParameterSource::OneOf { values, weights: None });
    }
    let has_commits = settings.commit > 0;
    SqlWorkload {
        parameters,
        transactions: transactions(settings, queries_per_client),
        order: TransactionOrder::EachInOrder,
        session: settings
            .init_command
            .clone()
            .into_iter()
            .chain(has_commits.then(|| "SET AUTOCOMMIT=0".into()))
            .collect(),
        teardown: has_commits.then(|| COMMIT.into()).into_iter().collect(),
        each: Some(queries_per_client),
        ..SqlWorkload::default()
    }
}

/// The list of transactions that every client repeats. Its length is the least common multiple of the number of queries and
/// the number of queries between two commits.
fn transactions(settings: &Settings, queries_per_client: u64) -> Vec<SqlTransaction> {
    let (count, commit) = (settings.queries.len() as u64, settings.commit);
    let period = if commit == 0 { count } else { count / gcd(count, commit) * commit };
    let statement = |sql: String, name: String| SqlStatement {
        sql,
        name: Some(name),
        rows: None,
        rows_parameter: None,
        mode: None,
        draw: Vec::new(),
        repeat: 1,
    };
    let names = query_names(settings);
    let transaction = |number: u64| {
        let index = (number % count) as usize;
        let query = &settings.queries[index];
        let sql = if query.needs_key { format!("{} :{KEY_PARAMETER}", query.sql) } else { query.sql.clone() };
        let mut statements = vec![statement(sql, names[index].clone())];
        if commit > 0 && (number + 1).is_multiple_of(commit) {
            statements.push(statement(COMMIT.into(), COMMIT.into()));
        }
        SqlTransaction { weight: 1.0, statements, ..SqlTransaction::default() }
    };
    (0..period.min(queries_per_client)).map(transaction).collect()
}

/// The names of the queries in reports.
fn query_names(settings: &Settings) -> Vec<String> {
    let name = |query: &super::generate::Query| match (settings.latency, &settings.generated) {
        (false, _) => QUERY_NAME.to_owned(),
        // Generated queries differ only in their values, so the SQL verb is their name.
        (true, Some(_)) => {
            let verb = query.sql.split(' ').next().unwrap_or_default();
            if query.needs_key { format!("{verb} by key") } else { verb.to_owned() }
        }
        (true, None) => title(&query.sql, TITLE_LENGTH),
    };
    settings.queries.iter().map(name).collect()
}

/// The greatest common divisor.
fn gcd(first: u64, second: u64) -> u64 {
    if second == 0 { first } else { gcd(second, first % second) }
}
