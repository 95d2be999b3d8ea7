//! What is done, in order: the statements of the main connection, the commands, the clients and the reports.

use super::Flavour;
use super::generate::{Key, LoadType};
use super::settings::{Engine, Settings};

/// Verbosity at which the parts of the work are told.
pub const PARTS: u32 = 2;
/// Verbosity at which statements are told.
pub const STATEMENTS: u32 = 3;
/// The key that a printed query shows, as there is no table to take one from.
pub const PRINTED_KEY: &str = "796c4422-1d94-102a-9d6d-00e0812d";

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A line for those who want to be told of the parts.
    Tell(&'static str),
    /// A statement on the main connection.
    Main(String),
    /// The schema is made, on the main connection.
    MakeSchema(String),
    /// The main connection goes into the schema.
    Use(String),
    /// A command for the shell, and the option that it comes from.
    System(&'static str, String),
    /// The keys of the rows are read, on the main connection.
    Keys(&'static str),
    /// The clients run, as many of them.
    Clients(u32),
    /// The times of all iterations are reported.
    Report {
        /// Storage engine.
        engine: Option<String>,
        /// Clients.
        clients: u32,
    },
}

/// All steps of an order.
pub fn steps(settings: &Settings) -> Vec<Step> {
    let mut steps = beginning(settings);
    let engines: Vec<_> = match settings.engines[..] {
        [] => vec![None],
        _ => settings.engines.iter().map(Some).collect(),
    };
    for engine in engines {
        steps.push(Step::Tell("Starting Concurrency Test"));
        drop_schema(settings, &mut steps);
        for &clients in &settings.concurrencies {
            for iteration in 0..settings.iterations {
                if iteration > 0 {
                    drop_schema(settings, &mut steps);
                }
                round(settings, engine, clients, &mut steps);
            }
            steps.push(Step::Tell("Generating stats"));
            steps.push(Step::Report { engine: engine.map(|engine| engine.name.clone()), clients });
            drop_schema(settings, &mut steps);
        }
    }
    steps
}

fn beginning(settings: &Settings) -> Vec<Step> {
    let mut steps = Vec::new();
    if let Some(mode) = &settings.sql_mode {
        steps.push(Step::Main(format!("SET sql_mode = `{mode}`")));
    }
    if settings.generated.is_some() {
        steps.push(Step::Tell("Building Create Statements for Auto"));
        steps.push(Step::Tell("Building Query Statements for Auto"));
        match LoadType::named(&settings.load_type) {
            LoadType::Read => steps.push(Step::Tell("Generating SELECT Statements for Auto")),
            LoadType::Key => steps.push(Step::Tell("Generating SELECT for keys Statements for Auto")),
            LoadType::Write => steps.push(Step::Tell("Generating INSERT Statements for Auto")),
            LoadType::Update | LoadType::Mixed => {}
        }
    }
    steps.push(Step::Tell("Parsing engines to use."));
    steps
}

fn drop_schema(settings: &Settings, steps: &mut Vec<Step>) {
    if settings.makes_schema() && !settings.no_drop {
        steps.push(Step::Main(format!("DROP SCHEMA IF EXISTS `{}`", settings.schema)));
    }
}

/// One iteration.
fn round(settings: &Settings, engine: Option<&Engine>, clients: u32, steps: &mut Vec<Step>) {
    if settings.makes_schema() {
        load(settings, engine, steps);
    }
    steps.push(Step::Tell("Generating primary key list"));
    if settings.generated.is_some() && settings.key != Key::None && reads_keys(settings) {
        steps.push(Step::Keys("SELECT id from t1"));
    }
    if settings.commit > 0 {
        steps.push(Step::Main("SET AUTOCOMMIT=0".into()));
    }
    steps.extend(settings.pre_system.clone().map(|command| Step::System("pre_system", command)));
    steps.extend(settings.pre_queries.iter().cloned().map(Step::Main));
    steps.push(Step::Clients(clients));
    steps.extend(settings.post_queries.iter().cloned().map(Step::Main));
    steps.extend(settings.post_system.clone().map(|command| Step::System("post_system", command)));
}

fn reads_keys(settings: &Settings) -> bool {
    settings.queries.iter().any(|query| query.keyed)
}

/// Makes the schema and its tables.
fn load(settings: &Settings, engine: Option<&Engine>, steps: &mut Vec<Step>) {
    steps.push(Step::Tell("Loading Pre-data"));
    steps.push(Step::MakeSchema(settings.schema.clone()));
    steps.push(Step::Use(settings.schema.clone()));
    if let (Flavour::Mysql, Some(engine)) = (settings.flavour, engine) {
        steps.push(Step::Main(format!("set default_storage_engine=`{}`", engine.name)));
    }
    let own = settings.create.iter().enumerate().map(|(number, sql)| (number == 0, sql));
    let made = settings.generated.as_ref().map(|generated| (true, &generated.table));
    for (is_first, sql) in own.chain(made) {
        steps.push(Step::Main(match engine {
            Some(engine) if is_first => with_engine(sql, engine, settings.flavour),
            _ => sql.clone(),
        }));
    }
    if let Some(generated) = &settings.generated {
        let rows = generated.rows.iter().cycle().take(generated.writes as usize);
        steps.extend(rows.cloned().map(Step::Main));
    }
}

/// With the engine as MariaDB's client has it; MySQL's has set it before. What is said of the engine goes behind.
fn with_engine(sql: &str, engine: &Engine, flavour: Flavour) -> String {
    let name = match flavour {
        Flavour::Mariadb => format!(" Engine = {}", engine.name),
        Flavour::Mysql => String::new(),
    };
    let option = engine.option.as_ref().map(|option| format!(" {option}")).unwrap_or_default();
    format!("{sql}{name}{option}")
}

/// What one client sends, in order, as it is printed: `key` stands where a row's key would.
pub fn of_client(settings: &Settings, clients: u32, key: &str) -> Vec<String> {
    let mut sent = Vec::new();
    if settings.commit > 0 {
        sent.push("SET AUTOCOMMIT=0".into());
    }
    for number in 0..settings.per_client(clients) {
        let query = &settings.queries[(number % settings.queries.len() as u64) as usize];
        sent.push(if query.keyed { format!("{} '{key}'", query.sql) } else { query.sql.clone() });
        if settings.commit > 0 && (number + 1).is_multiple_of(settings.commit) {
            sent.push("COMMIT".into());
        }
    }
    if settings.commit > 0 {
        sent.push("COMMIT".into());
    }
    sent
}
