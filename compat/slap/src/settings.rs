//! Validates the options.

use dbdyno_schema::plan::limits;

use super::commandline::OptionValues;
use super::generate::{Columns, Generated, Generator, Key, LoadType, Query, generate};
use super::option_files::Files;
use super::statements::split;
use super::{Flavour, UsageError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    pub name: String,
    /// Text to append to CREATE TABLE.
    pub option: Option<String>,
}

/// The destination of CSV reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Csv {
    Output,
    /// The report is appended to this file.
    File(String),
}

/// How many queries the clients execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryCount {
    /// Every client executes every query once.
    Once,
    /// The clients share this number of queries.
    Shared(u64),
    /// Each client executes this number of queries.
    Each(u64),
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub flavour: Flavour,
    /// Numbers of clients, run in sequence.
    pub concurrencies: Vec<u32>,
    pub iterations: u64,
    /// The storage engines, tested in sequence; empty for the server's default.
    pub engines: Vec<Engine>,
    pub schema: String,
    /// The statements of `--create`.
    pub create: Vec<String>,
    /// Whether `--create` is present, even without a statement.
    pub has_create: bool,
    pub generated: Option<Generated>,
    pub queries: Vec<Query>,
    pub query_count: QueryCount,
    pub pre_queries: Vec<String>,
    pub post_queries: Vec<String>,
    pub pre_system: Option<String>,
    pub post_system: Option<String>,
    /// Queries between two commits; 0 for none.
    pub commit: u64,
    /// Queries between two reconnects; 0 for none.
    pub detach: u32,
    /// The load type as CSV reports print it.
    pub load_type: String,
    pub key: Key,
    pub no_drop: bool,
    pub only_print: bool,
    pub silent: bool,
    pub verbose: u32,
    pub csv: Option<Csv>,
    /// Whether to report latency percentiles.
    pub latency: bool,
    /// Number of event loops; 0 for the default.
    pub workers: u32,
    pub init_command: Option<String>,
    pub sql_mode: Option<String>,
}

impl Settings {
    /// # Errors
    /// One line for each conflict, invalid value and unreadable file.
    pub fn read(values: &OptionValues, files: &dyn Files) -> Result<Self, UsageError> {
        let mut problems = Vec::new();
        let generates_sql = values.is_on("auto-generate-sql");
        let load_type = values.text("auto-generate-sql-load-type").unwrap_or("mixed").to_owned();
        let key = key(values, generates_sql, &load_type, &mut problems);
        let delimiter = values.text("delimiter").filter(|text| !text.is_empty()).unwrap_or("\n");
        let mut statements = |name: &str| statements(values, name, delimiter, files, &mut problems);
        let (create, queries) = (statements("create"), statements("query"));
        let (pre_queries, post_queries) = (statements("pre-query"), statements("post-query"));
        let generated =
            (generates_sql && problems.is_empty()).then(|| generator(values, key, &load_type, &mut problems));
        let generated = generated.filter(|_| problems.is_empty()).map(|options| generate(&options));
        let user_queries = queries.into_iter().map(|sql| Query { sql, needs_key: false });
        let settings = Self {
            flavour: values.flavour,
            concurrencies: concurrencies(values, &mut problems),
            iterations: values.number("iterations").unwrap_or(1),
            engines: engines(values),
            schema: values.text("create-schema").unwrap_or("mysqlslap").to_owned(),
            create,
            has_create: values.has("create"),
            queries: generated
                .as_ref()
                .map_or_else(|| user_queries.collect(), |generated| generated.queries.clone()),
            generated,
            query_count: query_count(values, &mut problems),
            pre_queries,
            post_queries,
            pre_system: values.text("pre-system").map(Into::into),
            post_system: values.text("post-system").map(Into::into),
            commit: values.number("commit").unwrap_or(0),
            detach: values.number("detach").unwrap_or(0).try_into().unwrap_or(u32::MAX),
            load_type,
            key,
            no_drop: values.is_on("no-drop"),
            only_print: values.is_on("only-print"),
            silent: values.is_on("silent"),
            verbose: values.verbose,
            csv: csv(values),
            latency: values.is_on("latency"),
            workers: values.number("workers").unwrap_or(0).min(limits::WORKERS.into()) as u32,
            init_command: values.text("init-command").map(Into::into),
            sql_mode: values.text("sql-mode").map(Into::into),
        };
        if problems.is_empty() {
            return Ok(settings);
        }
        let lines: Vec<_> = problems.iter().map(|problem| format!("{}: {problem}", values.program)).collect();
        Err(UsageError::new(lines.join("\n")))
    }

    pub fn creates_schema(&self) -> bool {
        self.has_create || self.generated.is_some()
    }

    /// Number of queries that each client executes.
    pub fn queries_per_client(&self, concurrency: u32) -> u64 {
        let list_length = self.queries.len() as u64;
        match self.query_count {
            _ if list_length == 0 => 0,
            QueryCount::Once => list_length,
            QueryCount::Each(each) => each,
            // As in mysqlslap, a total below the number of clients sets no limit.
            QueryCount::Shared(total) => {
                Some(total / u64::from(concurrency)).filter(|&each| each > 0).unwrap_or(list_length)
            }
        }
    }

    /// The value of [`Self::queries_per_client`] that mysqlslap reports.
    pub fn reported_queries_per_client(&self, concurrency: u32) -> u64 {
        match self.query_count {
            QueryCount::Shared(total) => total / u64::from(concurrency),
            // mysqlslap does not count the queries of a list that it generates.
            QueryCount::Once if self.generated.is_some() => 0,
            _ => self.queries_per_client(concurrency),
        }
    }
}

fn csv(values: &OptionValues) -> Option<Csv> {
    values.has("csv").then(|| match values.text("csv").filter(|path| !path.is_empty() && *path != "-") {
        Some(path) => Csv::File(path.into()),
        None => Csv::Output,
    })
}

fn key(values: &OptionValues, generates_sql: bool, load_type: &str, problems: &mut Vec<String>) -> Key {
    let has_autoincrement = values.is_on("auto-generate-sql-add-autoincrement");
    let has_guid = values.is_on("auto-generate-sql-guid-primary");
    if generates_sql && (values.has("create") || values.has("query")) {
        problems.push("Can't use --auto-generate-sql when create and query strings are specified!".into());
    }
    if has_autoincrement && has_guid {
        problems.push(
            "Either auto-generate-sql-guid-primary or auto-generate-sql-add-autoincrement can be used!"
                .into(),
        );
    }
    if load_type == "key" && !has_autoincrement && !has_guid {
        problems.push("Can't perform key test without a primary key!".into());
    }
    match (has_autoincrement, has_guid) {
        (true, _) => Key::AutoIncrement,
        (_, true) => Key::Guid,
        _ => Key::None,
    }
}

fn query_count(values: &OptionValues, problems: &mut Vec<String>) -> QueryCount {
    let total = values.number("number-of-queries").filter(|&number| number > 0);
    let each = values.number("auto-generate-sql-execute-number").filter(|&number| number > 0);
    match (total, each) {
        (Some(_), Some(_)) => {
            problems.push("Either auto-generate-sql-execute-number or number-of-queries can be used!".into());
            QueryCount::Once
        }
        (Some(total), None) => QueryCount::Shared(total),
        (None, Some(each)) => QueryCount::Each(each),
        (None, None) => QueryCount::Once,
    }
}

fn concurrencies(values: &OptionValues, problems: &mut Vec<String>) -> Vec<u32> {
    let text = values.text("concurrency").unwrap_or("1");
    let mut clients = Vec::new();
    for number in text.split(',').map(str::trim).filter(|number| !number.is_empty()) {
        match number.parse() {
            Ok(count) if (1..=limits::CONNECTIONS).contains(&count) => clients.push(count),
            _ => problems.push(format!(
                "--concurrency: '{number}' is not a number of clients; it must be between 1 and {}",
                limits::CONNECTIONS
            )),
        }
    }
    if clients.is_empty() && problems.is_empty() {
        problems.push(format!(
            "--concurrency: '{text}' is not a number of clients; use one number, or several numbers separated by commas"
        ));
    }
    clients
}

fn engines(values: &OptionValues) -> Vec<Engine> {
    let names = values.text("engine").unwrap_or_default().split(',').map(str::trim);
    let engine = |text: &str| match text.split_once(':') {
        Some((name, option)) => Engine { name: name.into(), option: Some(option.into()) },
        None => Engine { name: text.into(), option: None },
    };
    names.filter(|name| !name.is_empty()).map(engine).collect()
}

/// The statements in an option's value, or in the file with that name.
fn statements(
    values: &OptionValues,
    name: &str,
    delimiter: &str,
    files: &dyn Files,
    problems: &mut Vec<String>,
) -> Vec<String> {
    let Some(text) = values.text(name) else { return Vec::new() };
    if !files.exists(text) {
        return split(text, delimiter);
    }
    match files.read(text) {
        Ok(contents) => split(&contents, delimiter),
        Err(problem) => {
            problems.push(format!("--{name}: cannot read {text}: {problem}"));
            Vec::new()
        }
    }
}

fn generator(values: &OptionValues, key: Key, load_type: &str, problems: &mut Vec<String>) -> Generator {
    let number = |name: &str, default: u64| values.number(name).unwrap_or(default);
    let mut bounded_number = |name: &str, default: u64, max: u64| {
        let value = number(name, default);
        if value > max {
            problems.push(format!("--{name} is {value}; the maximum is {max}"));
        }
        value.min(max)
    };
    let unique_writes = bounded_number("auto-generate-sql-unique-write-number", 10, limits::SQL_STATEMENTS);
    let unique_queries =
        bounded_number("auto-generate-sql-unique-query-number", 10, limits::SQL_STATEMENTS - 1);
    let uuid_columns = bounded_number("auto-generate-sql-secondary-indexes", 0, 4096) as u32;
    Generator {
        ints: parse_columns(values, "number-int-cols", problems),
        chars: parse_columns(values, "number-char-cols", problems),
        key,
        uuid_columns,
        load: LoadType::from_name(load_type),
        unique_writes,
        writes: number("auto-generate-sql-write-number", 100),
        unique_queries,
    }
}

/// Parses the number of columns `N`, or `N:1` for N columns with an index each.
fn parse_columns(values: &OptionValues, name: &str, problems: &mut Vec<String>) -> Columns {
    let text = values.text(name).unwrap_or("1");
    let (count, indexed) = text.split_once(':').unwrap_or((text, "0"));
    match (count.trim().parse(), indexed.trim().parse::<u32>()) {
        (Ok(count), Ok(indexed)) if count <= 4096 => Columns { count, indexed: indexed > 0 },
        _ => {
            problems.push(format!(
                "--{name}: '{text}' is not a number of columns; use N or N:1, with N up to 4096"
            ));
            Columns { count: 1, indexed: false }
        }
    }
}
