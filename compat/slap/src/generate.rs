//! Generates the SQL of `--auto-generate-sql`: a table `t1`, rows to load, and queries.

use super::random::Random;

/// The primary key of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    None,
    AutoIncrement,
    /// UUIDs that the server generates.
    Guid,
}

/// The kind of queries, `--auto-generate-sql-load-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadType {
    /// INSERT and SELECT alternate.
    Mixed,
    Update,
    Write,
    /// SELECT of one row.
    Key,
    /// SELECT of all rows.
    Read,
}

impl LoadType {
    /// An unknown name means `mixed`, as in mysqlslap.
    pub fn from_name(name: &str) -> Self {
        match name {
            "update" => LoadType::Update,
            "write" => LoadType::Write,
            "key" => LoadType::Key,
            "read" => LoadType::Read,
            _ => LoadType::Mixed,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    pub count: u32,
    pub indexed: bool,
}

/// The options of `--auto-generate-sql`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    pub ints: Columns,
    pub chars: Columns,
    pub key: Key,
    /// Number of additional UUID columns, each with an index.
    pub uuid_columns: u32,
    pub load: LoadType,
    /// Number of different rows to load.
    pub unique_writes: u64,
    /// Number of rows to load plus one, as mysqlslap counts.
    pub writes: u64,
    /// Number of different queries minus one, as mysqlslap counts.
    pub unique_queries: u64,
}

/// A query that the clients execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The text of the query. If `needs_key`, it ends with `id = `.
    pub sql: String,
    /// Whether the key of a row must be appended.
    pub needs_key: bool,
}

/// The generated SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    pub create_table: String,
    /// INSERT statements of different rows.
    pub rows: Vec<String>,
    /// Number of rows to load; `rows` are repeated until this number is reached.
    pub writes: u64,
    pub queries: Vec<Query>,
}

/// Generates the SQL. The same options always yield the same SQL.
pub fn generate(options: &Generator) -> Generated {
    let mut random = Random::new();
    let writes = options.writes.saturating_sub(1);
    let rows = (0..options.unique_writes.max(1)).map(|_| insert(options, &mut random)).collect();
    let queries = (0..=options.unique_queries).map(|number| query(options, number, &mut random)).collect();
    Generated { create_table: create_table(options), rows, writes, queries }
}

fn create_table(options: &Generator) -> String {
    let mut columns = Vec::new();
    match options.key {
        Key::None => {}
        Key::AutoIncrement => columns.push("id serial".to_owned()),
        Key::Guid => columns.push("id varchar(36) primary key".to_owned()),
    }
    columns.extend((0..options.uuid_columns).map(|number| format!("id{number} varchar(36) unique key")));
    columns.extend((1..=options.ints.count).map(|number| match options.ints.indexed {
        true => format!("intcol{number} INT(32), INDEX(intcol{number})"),
        false => format!("intcol{number} INT(32) "),
    }));
    columns.extend((1..=options.chars.count).map(|number| match options.chars.indexed {
        true => format!("charcol{number} VARCHAR(128), INDEX(charcol{number}) "),
        false => format!("charcol{number} VARCHAR(128)"),
    }));
    format!("CREATE TABLE `t1` ({})", columns.join(","))
}

fn insert(options: &Generator, random: &mut Random) -> String {
    let mut values = Vec::new();
    match options.key {
        Key::None => {}
        Key::AutoIncrement => values.push("NULL".to_owned()),
        Key::Guid => values.push("uuid()".to_owned()),
    }
    values.extend((0..options.uuid_columns).map(|_| "uuid()".to_owned()));
    values.extend((0..options.ints.count).map(|_| random.number().to_string()));
    values.extend((0..options.chars.count).map(|_| format!("'{}'", random.string())));
    format!("INSERT INTO t1 VALUES ({})", values.join(","))
}

fn query(options: &Generator, number: u64, random: &mut Random) -> Query {
    let needs_key = options.key != Key::None;
    match options.load {
        LoadType::Write => Query { sql: insert(options, random), needs_key: false },
        LoadType::Mixed if number.is_multiple_of(2) => {
            Query { sql: insert(options, random), needs_key: false }
        }
        LoadType::Mixed | LoadType::Key => select(options, needs_key),
        LoadType::Read => select(options, false),
        LoadType::Update => update(options, needs_key, random),
    }
}

fn select(options: &Generator, needs_key: bool) -> Query {
    let ints = (1..=options.ints.count).map(|number| format!("intcol{number}"));
    let chars = (1..=options.chars.count).map(|number| format!("charcol{number}"));
    let columns = ints.chain(chars).collect::<Vec<_>>().join(",");
    where_key(format!("SELECT {columns} FROM t1"), needs_key)
}

fn update(options: &Generator, needs_key: bool, random: &mut Random) -> Query {
    let mut assignments = Vec::new();
    assignments
        .extend((1..=options.ints.count).map(|number| format!("intcol{number} = {}", random.number())));
    assignments
        .extend((1..=options.chars.count).map(|number| format!("charcol{number} = '{}'", random.string())));
    where_key(format!("UPDATE t1 SET {}", assignments.join(",")), needs_key)
}

fn where_key(sql: String, needs_key: bool) -> Query {
    if needs_key { Query { sql: format!("{sql} WHERE id = "), needs_key } } else { Query { sql, needs_key } }
}
