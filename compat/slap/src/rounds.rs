//! Lists the steps of a benchmark: statements on the main connection, shell commands, rounds of clients, and reports.

use super::Flavour;
use super::generate::{Key, LoadType};
use super::settings::{Engine, Settings};

/// The level of `--verbose` that prints a line for each phase of the benchmark.
pub const VERBOSE_PHASES: u32 = 2;
/// The level of `--verbose` that prints statements.
pub const VERBOSE_STATEMENTS: u32 = 3;
/// The key that `--only-print` prints in queries, because there is no table from which to read keys.
pub const PRINTED_KEY: &str = "796c4422-1d94-102a-9d6d-00e0812d";

/// A step of a benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Print a line at the verbosity [`VERBOSE_PHASES`].
    Announce(&'static str),
    /// Execute a statement on the main connection.
    Statement(String),
    CreateSchema(String),
    Use(String),
    /// Run the shell command of an option.
    System(&'static str, String),
    /// Read the keys of the table's rows, with a query on the main connection.
    Keys(&'static str),
    /// Run a round with this many clients.
    Clients(u32),
    /// Print the report of all iterations with this number of clients.
    Report {
        engine: Option<String>,
        clients: u32,
    },
}

pub fn steps(settings: &Settings) -> Vec<Step> {
    let mut steps = first_steps(settings);
    let engines: Vec<_> = match settings.engines[..] {
        [] => vec![None],
        _ => settings.engines.iter().map(Some).collect(),
    };
    for engine in engines {
        steps.push(Step::Announce("Starting Concurrency Test"));
        add_drop_schema(settings, &mut steps);
        for &clients in &settings.concurrencies {
            for iteration in 0..settings.iterations {
                if iteration > 0 {
                    add_drop_schema(settings, &mut steps);
                }
                add_round(settings, engine, clients, &mut steps);
            }
            steps.push(Step::Announce("Generating stats"));
            steps.push(Step::Report { engine: engine.map(|engine| engine.name.clone()), clients });
            add_drop_schema(settings, &mut steps);
        }
    }
    steps
}

fn first_steps(settings: &Settings) -> Vec<Step> {
    let mut steps = Vec::new();
    if let Some(mode) = &settings.sql_mode {
        steps.push(Step::Statement(format!("SET sql_mode = `{mode}`")));
    }
    if settings.generated.is_some() {
        steps.push(Step::Announce("Building Create Statements for Auto"));
        steps.push(Step::Announce("Building Query Statements for Auto"));
        match LoadType::from_name(&settings.load_type) {
            LoadType::Read => steps.push(Step::Announce("Generating SELECT Statements for Auto")),
            LoadType::Key => steps.push(Step::Announce("Generating SELECT for keys Statements for Auto")),
            LoadType::Write => steps.push(Step::Announce("Generating INSERT Statements for Auto")),
            LoadType::Update | LoadType::Mixed => {}
        }
    }
    steps.push(Step::Announce("Parsing engines to use."));
    steps
}

fn add_drop_schema(settings: &Settings, steps: &mut Vec<Step>) {
    if settings.creates_schema() && !settings.no_drop {
        steps.push(Step::Statement(format!("DROP SCHEMA IF EXISTS `{}`", settings.schema)));
    }
}

fn add_round(settings: &Settings, engine: Option<&Engine>, clients: u32, steps: &mut Vec<Step>) {
    if settings.creates_schema() {
        add_load(settings, engine, steps);
    }
    steps.push(Step::Announce("Generating primary key list"));
    if settings.generated.is_some() && settings.key != Key::None && uses_keys(settings) {
        steps.push(Step::Keys("SELECT id from t1"));
    }
    if settings.commit > 0 {
        steps.push(Step::Statement("SET AUTOCOMMIT=0".into()));
    }
    steps.extend(settings.pre_system.clone().map(|command| Step::System("pre_system", command)));
    steps.extend(settings.pre_queries.iter().cloned().map(Step::Statement));
    steps.push(Step::Clients(clients));
    steps.extend(settings.post_queries.iter().cloned().map(Step::Statement));
    steps.extend(settings.post_system.clone().map(|command| Step::System("post_system", command)));
}

fn uses_keys(settings: &Settings) -> bool {
    settings.queries.iter().any(|query| query.needs_key)
}

/// Adds the steps that create the schema and its tables.
fn add_load(settings: &Settings, engine: Option<&Engine>, steps: &mut Vec<Step>) {
    steps.push(Step::Announce("Loading Pre-data"));
    steps.push(Step::CreateSchema(settings.schema.clone()));
    steps.push(Step::Use(settings.schema.clone()));
    if let (Flavour::Mysql, Some(engine)) = (settings.flavour, engine) {
        steps.push(Step::Statement(format!("set default_storage_engine=`{}`", engine.name)));
    }
    let created = settings.create.iter().enumerate().map(|(number, sql)| (number == 0, sql));
    let generated = settings.generated.as_ref().map(|generated| (true, &generated.create_table));
    for (is_first, sql) in created.chain(generated) {
        steps.push(Step::Statement(match engine {
            Some(engine) if is_first => append_engine(sql, engine, settings.flavour),
            _ => sql.clone(),
        }));
    }
    if let Some(generated) = &settings.generated {
        let rows = generated.rows.iter().cycle().take(generated.writes as usize);
        steps.extend(rows.cloned().map(Step::Statement));
    }
}

/// Appends the engine's option to CREATE TABLE. For mariadb-slap, also appends the engine; mysqlslap sets the engine in the
/// session instead.
fn append_engine(sql: &str, engine: &Engine, flavour: Flavour) -> String {
    let name = match flavour {
        Flavour::Mariadb => format!(" Engine = {}", engine.name),
        Flavour::Mysql => String::new(),
    };
    let option = engine.option.as_ref().map(|option| format!(" {option}")).unwrap_or_default();
    format!("{sql}{name}{option}")
}

/// The statements of one client for `--only-print`; `key` replaces a row's key.
pub fn client_statements(settings: &Settings, clients: u32, key: &str) -> Vec<String> {
    let mut statements = Vec::new();
    if settings.commit > 0 {
        statements.push("SET AUTOCOMMIT=0".into());
    }
    for number in 0..settings.queries_per_client(clients) {
        let query = &settings.queries[(number % settings.queries.len() as u64) as usize];
        statements.push(if query.needs_key { format!("{} '{key}'", query.sql) } else { query.sql.clone() });
        if settings.commit > 0 && (number + 1).is_multiple_of(settings.commit) {
            statements.push("COMMIT".into());
        }
    }
    if settings.commit > 0 {
        statements.push("COMMIT".into());
    }
    statements
}
