//! What the options mean together, and what is refused.

use dbdyno_schema::plan::limits;

use super::commandline::Given;
use super::generate::{Columns, Generated, Key, LoadType, Query, Wanted, generate};
use super::option_files::Files;
use super::statements::split;
use super::{Flavour, Refused};

/// A storage engine to run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// Its name.
    pub name: String,
    /// What stands behind the statement that makes the table.
    pub option: Option<String>,
}

/// Where CSV goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Csv {
    /// Standard output.
    Output,
    /// The end of a file.
    File(String),
}

/// How much the clients run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Every query once.
    Once,
    /// As many, shared out among all clients.
    Shared(u64),
    /// As many each.
    Each(u64),
}

/// A whole order.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which client to be like.
    pub flavour: Flavour,
    /// Numbers of clients, one after the other.
    pub concurrencies: Vec<u32>,
    /// How often each is repeated.
    pub iterations: u64,
    /// Storage engines, one after the other; none for the server's own choice.
    pub engines: Vec<Engine>,
    /// Schema to work in.
    pub schema: String,
    /// Statements of `--create`.
    pub create: Vec<String>,
    /// Whether `--create` was given, even without a statement.
    pub has_create: bool,
    /// What was made by `--auto-generate-sql`.
    pub generated: Option<Generated>,
    /// What the clients run.
    pub queries: Vec<Query>,
    /// How much of it.
    pub amount: Amount,
    /// Statements before the clients.
    pub pre_queries: Vec<String>,
    /// Statements after the clients.
    pub post_queries: Vec<String>,
    /// Command before the clients.
    pub pre_system: Option<String>,
    /// Command after the clients.
    pub post_system: Option<String>,
    /// COMMIT after so many queries; 0 for never.
    pub commit: u64,
    /// A new connection after so many queries; 0 for never.
    pub detach: u32,
    /// What the generated queries do, as it is called in CSV.
    pub load_type: String,
    /// Whether the generated table has a key.
    pub key: Key,
    /// Whether the schema stays.
    pub no_drop: bool,
    /// Whether statements are printed and not sent.
    pub only_print: bool,
    /// Whether there is no report.
    pub silent: bool,
    /// How much is told, to 3.
    pub verbose: u32,
    /// CSV in place of the report.
    pub csv: Option<Csv>,
    /// Whether percentiles are told.
    pub latency: bool,
    /// Event loops; 0 for a quarter of the CPUs.
    pub workers: u32,
    /// Sent first on every connection.
    pub init_command: Option<String>,
    /// sql_mode of the main connection.
    pub sql_mode: Option<String>,
}

impl Settings {
    /// What the options mean; all that is wrong with them comes at once.
    ///
    /// # Errors
    /// Options that do not go together, a value out of bounds, a file that cannot be read.
    pub fn read(given: &Given, files: &dyn Files) -> Result<Self, Refused> {
        let mut faults = Vec::new();
        let auto = given.is_on("auto-generate-sql");
        let load_type = given.text("auto-generate-sql-load-type").unwrap_or("mixed").to_owned();
        let key = key(given, auto, &load_type, &mut faults);
        let delimiter = given.text("delimiter").filter(|text| !text.is_empty()).unwrap_or("\n");
        let mut statements = |name: &str| statements(given, name, delimiter, files, &mut faults);
        let (create, queries) = (statements("create"), statements("query"));
        let (pre_queries, post_queries) = (statements("pre-query"), statements("post-query"));
        let generated = (auto && faults.is_empty()).then(|| wanted(given, key, &load_type, &mut faults));
        let generated = generated.filter(|_| faults.is_empty()).map(|wanted| generate(&wanted));
        let own = queries.into_iter().map(|sql| Query { sql, keyed: false });
        let settings = Self {
            flavour: given.flavour,
            concurrencies: concurrencies(given, &mut faults),
            iterations: given.number("iterations").unwrap_or(1),
            engines: engines(given),
            schema: given.text("create-schema").unwrap_or("mysqlslap").to_owned(),
            create,
            has_create: given.has("create"),
            queries: generated.as_ref().map_or_else(|| own.collect(), |made| made.queries.clone()),
            generated,
            amount: amount(given, &mut faults),
            pre_queries,
            post_queries,
            pre_system: given.text("pre-system").map(Into::into),
            post_system: given.text("post-system").map(Into::into),
            commit: given.number("commit").unwrap_or(0),
            detach: given.number("detach").unwrap_or(0).try_into().unwrap_or(u32::MAX),
            load_type,
            key,
            no_drop: given.is_on("no-drop"),
            only_print: given.is_on("only-print"),
            silent: given.is_on("silent"),
            verbose: given.verbose,
            csv: csv(given),
            latency: given.is_on("latency"),
            workers: given.number("workers").unwrap_or(0).min(limits::WORKERS.into()) as u32,
            init_command: given.text("init-command").map(Into::into),
            sql_mode: given.text("sql-mode").map(Into::into),
        };
        if faults.is_empty() {
            return Ok(settings);
        }
        let lines: Vec<_> = faults.iter().map(|fault| format!("{}: {fault}", given.program)).collect();
        Err(Refused::new(lines.join("\n")))
    }

    /// Whether the schema is made, and so taken away again.
    pub fn makes_schema(&self) -> bool {
        self.has_create || self.generated.is_some()
    }

    /// Queries that each of so many clients runs.
    pub fn per_client(&self, concurrency: u32) -> u64 {
        let once = self.queries.len() as u64;
        match self.amount {
            _ if once == 0 => 0,
            Amount::Once => once,
            Amount::Each(each) => each,
            // Fewer queries than clients are no limit, as the clients have it.
            Amount::Shared(all) => {
                Some(all / u64::from(concurrency)).filter(|&each| each > 0).unwrap_or(once)
            }
        }
    }

    /// As [`Self::per_client`], as reports tell it.
    pub fn told_per_client(&self, concurrency: u32) -> u64 {
        match self.amount {
            Amount::Shared(all) => all / u64::from(concurrency),
            _ => self.per_client(concurrency),
        }
    }
}

fn csv(given: &Given) -> Option<Csv> {
    given.has("csv").then(|| match given.text("csv").filter(|path| !path.is_empty() && *path != "-") {
        Some(path) => Csv::File(path.into()),
        None => Csv::Output,
    })
}

fn key(given: &Given, auto: bool, load_type: &str, faults: &mut Vec<String>) -> Key {
    let increment = given.is_on("auto-generate-sql-add-autoincrement");
    let guid = given.is_on("auto-generate-sql-guid-primary");
    if auto && (given.has("create") || given.has("query")) {
        faults.push("Can't use --auto-generate-sql when create and query strings are specified!".into());
    }
    if increment && guid {
        faults.push(
            "Either auto-generate-sql-guid-primary or auto-generate-sql-add-autoincrement can be used!"
                .into(),
        );
    }
    if load_type == "key" && !increment && !guid {
        faults.push("Can't perform key test without a primary key!".into());
    }
    match (increment, guid) {
        (true, _) => Key::AutoIncrement,
        (_, true) => Key::Guid,
        _ => Key::None,
    }
}

fn amount(given: &Given, faults: &mut Vec<String>) -> Amount {
    let all = given.number("number-of-queries").filter(|&number| number > 0);
    let each = given.number("auto-generate-sql-execute-number").filter(|&number| number > 0);
    match (all, each) {
        (Some(_), Some(_)) => {
            faults.push("Either auto-generate-sql-execute-number or number-of-queries can be used!".into());
            Amount::Once
        }
        (Some(all), None) => Amount::Shared(all),
        (None, Some(each)) => Amount::Each(each),
        (None, None) => Amount::Once,
    }
}

fn concurrencies(given: &Given, faults: &mut Vec<String>) -> Vec<u32> {
    let text = given.text("concurrency").unwrap_or("1");
    let mut clients = Vec::new();
    for number in text.split(',').map(str::trim).filter(|number| !number.is_empty()) {
        match number.parse() {
            Ok(count) if (1..=limits::CONNECTIONS).contains(&count) => clients.push(count),
            _ => faults.push(format!(
                "--concurrency: '{number}' is no number of clients; it must be between 1 and {}",
                limits::CONNECTIONS
            )),
        }
    }
    if clients.is_empty() && faults.is_empty() {
        faults.push(format!(
            "--concurrency: '{text}' names no number of clients; give one, or several with commas"
        ));
    }
    clients
}

fn engines(given: &Given) -> Vec<Engine> {
    let named = given.text("engine").unwrap_or_default().split(',').map(str::trim);
    let engine = |text: &str| match text.split_once(':') {
        Some((name, option)) => Engine { name: name.into(), option: Some(option.into()) },
        None => Engine { name: text.into(), option: None },
    };
    named.filter(|name| !name.is_empty()).map(engine).collect()
}

/// The statements of an option, or of the file that it names.
fn statements(
    given: &Given,
    name: &str,
    delimiter: &str,
    files: &dyn Files,
    faults: &mut Vec<String>,
) -> Vec<String> {
    let Some(text) = given.text(name) else { return Vec::new() };
    if !files.exists(text) {
        return split(text, delimiter);
    }
    match files.text(text) {
        Ok(contents) => split(&contents, delimiter),
        Err(fault) => {
            faults.push(format!("--{name}: the file {text} cannot be read: {fault}"));
            Vec::new()
        }
    }
}

fn wanted(given: &Given, key: Key, load_type: &str, faults: &mut Vec<String>) -> Wanted {
    let number = |name: &str, default: u64| given.number(name).unwrap_or(default);
    let mut bounded = |name: &str, default: u64, most: u64| {
        let value = number(name, default);
        if value > most {
            faults.push(format!("--{name} is {value}; {most} is the most"));
        }
        value.min(most)
    };
    let unique_writes = bounded("auto-generate-sql-unique-write-number", 10, limits::SQL_STATEMENTS);
    let unique_queries = bounded("auto-generate-sql-unique-query-number", 10, limits::SQL_STATEMENTS - 1);
    let secondary = bounded("auto-generate-sql-secondary-indexes", 0, 4096) as u32;
    Wanted {
        ints: columns(given, "number-int-cols", faults),
        chars: columns(given, "number-char-cols", faults),
        key,
        secondary,
        load: LoadType::named(load_type),
        unique_writes,
        writes: number("auto-generate-sql-write-number", 100),
        unique_queries,
    }
}

/// `N`, or `N:1` with an index on each.
fn columns(given: &Given, name: &str, faults: &mut Vec<String>) -> Columns {
    let text = given.text(name).unwrap_or("1");
    let (count, indexed) = text.split_once(':').unwrap_or((text, "0"));
    match (count.trim().parse(), indexed.trim().parse::<u32>()) {
        (Ok(count), Ok(indexed)) if count <= 4096 => Columns { count, indexed: indexed > 0 },
        _ => {
            faults.push(format!(
                "--{name}: '{text}' is no number of columns; give N or N:1, with N up to 4096"
            ));
            Columns { count: 1, indexed: false }
        }
    }
}
