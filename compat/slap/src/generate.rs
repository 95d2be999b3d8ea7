//! The SQL of `--auto-generate-sql`: one table `t1`, rows to load, and queries.

use super::random::Random;

/// Which key the table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// None.
    None,
    /// Numbers that the server gives.
    AutoIncrement,
    /// UUIDs that the server makes.
    Guid,
}

/// What the queries do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadType {
    /// An INSERT and a SELECT in turn.
    Mixed,
    /// UPDATE.
    Update,
    /// INSERT.
    Write,
    /// SELECT of one row.
    Key,
    /// SELECT of all rows.
    Read,
}

impl LoadType {
    /// By its name; the clients take any other name for the first one.
    pub fn named(name: &str) -> Self {
        match name {
            "update" => LoadType::Update,
            "write" => LoadType::Write,
            "key" => LoadType::Key,
            "read" => LoadType::Read,
            _ => LoadType::Mixed,
        }
    }
}

/// Columns of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// How many.
    pub count: u32,
    /// Whether each has an index.
    pub indexed: bool,
}

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Integer columns.
    pub ints: Columns,
    /// String columns.
    pub chars: Columns,
    /// The key.
    pub key: Key,
    /// Columns of UUIDs, each with an index of its own.
    pub secondary: u32,
    /// What the queries do.
    pub load: LoadType,
    /// Different rows to load.
    pub unique_writes: u64,
    /// Rows to load, and one more.
    pub writes: u64,
    /// Different queries, but one.
    pub unique_queries: u64,
}

/// A query of the clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its text; where it takes a key, what stands before that.
    pub sql: String,
    /// Whether a key of a row follows.
    pub keyed: bool,
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// CREATE TABLE.
    pub table: String,
    /// Different rows to load.
    pub rows: Vec<String>,
    /// Rows to load, these from the first again and again.
    pub writes: u64,
    /// Queries.
    pub queries: Vec<Query>,
}

/// Makes the SQL; the same for the same wishes.
pub fn generate(wanted: &Wanted) -> Generated {
    let mut random = Random::new();
    let writes = wanted.writes.saturating_sub(1);
    let rows = (0..wanted.unique_writes.max(1)).map(|_| insert(wanted, &mut random)).collect();
    let queries = (0..=wanted.unique_queries).map(|number| query(wanted, number, &mut random)).collect();
    Generated { table: table(wanted), rows, writes, queries }
}

fn table(wanted: &Wanted) -> String {
    let mut columns = Vec::new();
    match wanted.key {
        Key::None => {}
        Key::AutoIncrement => columns.push("id serial".to_owned()),
        Key::Guid => columns.push("id varchar(36) primary key".to_owned()),
    }
    columns.extend((0..wanted.secondary).map(|number| format!("id{number} varchar(36) unique key")));
    columns.extend((1..=wanted.ints.count).map(|number| match wanted.ints.indexed {
        true => format!("intcol{number} INT(32), INDEX(intcol{number})"),
        false => format!("intcol{number} INT(32) "),
    }));
    columns.extend((1..=wanted.chars.count).map(|number| match wanted.chars.indexed {
        true => format!("charcol{number} VARCHAR(128), INDEX(charcol{number}) "),
        false => format!("charcol{number} VARCHAR(128)"),
    }));
    format!("CREATE TABLE `t1` ({})", columns.join(","))
}

fn insert(wanted: &Wanted, random: &mut Random) -> String {
    let mut values = Vec::new();
    match wanted.key {
        Key::None => {}
        Key::AutoIncrement => values.push("NULL".to_owned()),
        Key::Guid => values.push("uuid()".to_owned()),
    }
    values.extend((0..wanted.secondary).map(|_| "uuid()".to_owned()));
    values.extend((0..wanted.ints.count).map(|_| random.number().to_string()));
    values.extend((0..wanted.chars.count).map(|_| format!("'{}'", random.string())));
    format!("INSERT INTO t1 VALUES ({})", values.join(","))
}

fn query(wanted: &Wanted, number: u64, random: &mut Random) -> Query {
    let keyed = wanted.key != Key::None;
    match wanted.load {
        LoadType::Write => Query { sql: insert(wanted, random), keyed: false },
        LoadType::Mixed if number.is_multiple_of(2) => Query { sql: insert(wanted, random), keyed: false },
        LoadType::Mixed | LoadType::Key => select(wanted, keyed),
        LoadType::Read => select(wanted, false),
        LoadType::Update => update(wanted, keyed, random),
    }
}

fn select(wanted: &Wanted, keyed: bool) -> Query {
    let ints = (1..=wanted.ints.count).map(|number| format!("intcol{number}"));
    let chars = (1..=wanted.chars.count).map(|number| format!("charcol{number}"));
    let columns = ints.chain(chars).collect::<Vec<_>>().join(",");
    by_key(format!("SELECT {columns} FROM t1"), keyed)
}

fn update(wanted: &Wanted, keyed: bool, random: &mut Random) -> Query {
    let mut sets = Vec::new();
    sets.extend((1..=wanted.ints.count).map(|number| format!("intcol{number} = {}", random.number())));
    sets.extend((1..=wanted.chars.count).map(|number| format!("charcol{number} = '{}'", random.string())));
    by_key(format!("UPDATE t1 SET {}", sets.join(",")), keyed)
}

fn by_key(sql: String, keyed: bool) -> Query {
    if keyed { Query { sql: format!("{sql} WHERE id = "), keyed } } else { Query { sql, keyed } }
}
