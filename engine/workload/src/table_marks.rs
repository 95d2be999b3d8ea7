//! The marks in table comments by which dbdyno recognises its tables.
//!
//! A mark ends with the hash of the table that it belongs to. `CREATE TABLE … LIKE` copies comments in MySQL, and a rename
//! keeps them, so a mark without it would make dbdyno drop a table of the user.

use dbdyno_schema::placeholders::{Quoting, quoted_or_comment_length};
use dbdyno_schema::plan::Plan;

use crate::kind::Dialect;

/// Prefix of every mark (the table comment by which dbdyno recognises its tables).
pub const MARK: &str = "dbdyno";
/// The mark of a table that is not complete, without the table's hash.
pub const LOADING: &str = "dbdyno loading";
/// The mark of a table that statements of the user created, without the table's hash.
pub const SETUP: &str = "dbdyno v1 setup";
/// Maximum bytes of a comment of the user to which a mark is added; MySQL allows 2048 characters.
const COMMENT_MAX: usize = 1900;

/// The end of a mark, which names its table.
pub fn table_hash(database: &str, table: &str) -> String {
    format!(" table={:08x}", crc32fast::hash(format!("{database}.{table}").to_lowercase().as_bytes()))
}

/// Whether `comment` ends with the mark of the table with this hash.
pub fn is_own(comment: &str, hash: &str) -> bool {
    comment.contains(MARK) && comment.ends_with(hash)
}

/// Whether `comment` has a mark of a version of dbdyno whose marks name no table.
pub fn is_without_table(comment: &str) -> bool {
    comment.starts_with(MARK) && !comment.contains(" table=")
}

/// Makes the statements that create tables mark them too.
#[derive(Clone, Debug)]
pub struct SetupMarks {
    dialect: Dialect,
    /// The database of unqualified names.
    database: String,
}

/// A part of a statement outside comments: a word, a quoted text or one other character.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    text: &'a str,
    start: usize,
}

impl Token<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    fn is_quoted(&self) -> bool {
        self.text.starts_with(['\'', '"', '`'])
    }
}

/// The beginning of a CREATE TABLE, up to the table's name.
struct Creation<'a> {
    /// Database or schema, if the statement names one, and table.
    name: (Option<String>, String),
    /// The name as it is written.
    written: &'a str,
    /// Whether the table may exist already.
    is_conditional: bool,
    /// The tokens after the name.
    rest: usize,
}

impl SetupMarks {
    /// The marks that a plan asks for.
    pub fn from_plan(plan: &Plan) -> Option<Self> {
        let marks = || Self::new(Dialect::from_target(&plan.target), plan.target.database());
        plan.loading.mark_created.then(marks)
    }

    fn new(dialect: Dialect, database: &str) -> Self {
        Self { dialect, database: database.to_owned() }
    }

    /// The text with a mark in each statement that creates a table; `None` if there is none. A statement that leaves no
    /// room for a mark, such as CREATE TABLE … LIKE, stays as it is.
    pub fn add(&mut self, sql: &str) -> Option<String> {
        let tokens = tokens(sql, self.quoting());
        let mut edits = Vec::new();
        for statement in tokens.split(|token| token.text == ";") {
            if let [first, name] = statement
                && first.is("USE")
            {
                self.database = unquote(name.text);
            } else if let Some(creation) = creation(sql, statement) {
                edits.extend(self.edit(&creation, statement));
            }
        }
        if edits.is_empty() {
            return None;
        }
        let mut marked = sql.to_owned();
        for (at, text) in edits.into_iter().rev() {
            marked.insert_str(at, &text);
        }
        Some(marked)
    }

    /// The statement that marks the table of a CREATE TABLE … LIKE of MySQL, which has no room for a mark and copies
    /// that of the other table. It is sent right after it.
    pub fn after(&self, sql: &str) -> Option<String> {
        let tokens = tokens(sql, self.quoting());
        let creation = creation(sql, &tokens)?;
        let is_copy = tokens[creation.rest..]
            .iter()
            .find(|token| token.text != "(")
            .is_some_and(|token| token.is("LIKE"));
        if self.dialect != Dialect::Mysql || creation.is_conditional || !is_copy {
            return None;
        }
        let (schema, table) = &creation.name;
        let hash = table_hash(schema.as_deref().unwrap_or(&self.database), table);
        Some(format!("ALTER TABLE {} COMMENT = '{SETUP}{hash}'", creation.written))
    }

    fn quoting(&self) -> Quoting {
        match self.dialect {
            Dialect::Mysql => Quoting::Mysql,
            Dialect::Postgresql => Quoting::Postgresql,
        }
    }

    /// What to insert into a statement, and where.
    fn edit(&self, creation: &Creation<'_>, tokens: &[Token<'_>]) -> Option<(usize, String)> {
        let (schema, table) = &creation.name;
        let last = tokens.last()?.end();
        if self.dialect == Dialect::Mysql {
            let database = schema.as_deref().unwrap_or(&self.database);
            return mysql_edit(creation, tokens, &format!("{SETUP}{}", table_hash(database, table)));
        }
        // Statements of one message are one transaction.
        let name = creation.written;
        let comment = format!("COMMENT ON TABLE {name} IS '{SETUP}{}'", table_hash(&self.database, table));
        let text = if creation.is_conditional {
            // The table of the user stays unmarked: only a table of this transaction has its number.
            let name = name.replace('\'', "''");
            format!(
                "; DO $dbdyno$ BEGIN IF EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = '{name}'::regclass \
                 AND xmin::text = (txid_current() % 4294967296)::text) THEN {comment}; END IF; END $dbdyno$"
            )
        } else {
            format!("; {comment}")
        };
        Some((last, text))
    }
}

/// Where a CREATE TABLE of MySQL has room for table options, and the option.
fn mysql_edit(creation: &Creation<'_>, tokens: &[Token<'_>], mark: &str) -> Option<(usize, String)> {
    let (before, rest) = tokens.split_at(creation.rest);
    let option = format!(" COMMENT = '{mark}'");
    let first = rest.first()?;
    let is_query =
        |token: &Token<'_>| ["SELECT", "WITH", "VALUES", "TABLE", "("].iter().any(|word| token.is(word));
    let (at, options) = match rest {
        [open, second, ..] if open.text == "(" && second.is("LIKE") => return None,
        [open, second, ..] if open.text == "(" && !is_query(second) => {
            let close = matching_parenthesis(rest)?;
            (rest[close].end(), &rest[close + 1..])
        }
        _ if first.is("LIKE") => return None,
        _ => (before.last()?.end(), rest),
    };
    let ends = ["AS", "SELECT", "VALUES", "IGNORE", "REPLACE", "("];
    let options = options.split(|token| ends.iter().any(|word| token.is(word))).next()?;
    let Some(comment) = options.iter().position(|token| token.is("COMMENT")) else {
        return Some((at, option));
    };
    // Of two comments the last one counts, which is the user's.
    let text = options[comment + 1..].iter().find(|token| token.text != "=")?;
    let is_room = text.is_quoted() && text.text.len() > 1 && text.text.len() < COMMENT_MAX;
    let separator = if text.text.len() == 2 { "" } else { " " };
    is_room.then(|| (text.end() - 1, format!("{separator}{mark}")))
}

/// The position of the parenthesis that closes the first token.
fn matching_parenthesis(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0;
    tokens.iter().position(|token| {
        depth += i32::from(token.text == "(") - i32::from(token.text == ")");
        depth == 0
    })
}

/// Reads the beginning of a CREATE TABLE; `None` for other statements and for temporary tables.
fn creation<'a>(sql: &'a str, tokens: &[Token<'_>]) -> Option<Creation<'a>> {
    let mut at = 0;
    let mut skip = |words: &[&str]| {
        let is_next = words.iter().zip(tokens.get(at..)?).all(|(word, token)| token.is(word));
        let is_next = is_next && tokens.len() >= at + words.len();
        at += if is_next { words.len() } else { 0 };
        Some(is_next)
    };
    if !skip(&["CREATE"])? {
        return None;
    }
    skip(&["OR", "REPLACE"])?;
    skip(&["UNLOGGED"])?;
    if !skip(&["TABLE"])? {
        return None;
    }
    let is_conditional = skip(&["IF", "NOT", "EXISTS"])?;
    let begin = tokens.get(at)?.start;
    let mut parts = vec![];
    loop {
        let part = tokens.get(at)?;
        if !(part.is_quoted() || part.text.starts_with(is_name)) {
            return None;
        }
        parts.push(unquote(part.text));
        at += 1;
        if tokens.get(at).is_none_or(|token| token.text != ".") {
            break;
        }
        at += 1;
    }
    let table = parts.pop()?;
    let written = sql.get(begin..tokens[at - 1].end())?;
    Some(Creation { name: (parts.pop(), table), written, is_conditional, rest: at })
}

/// The tokens of a text, without comments.
fn tokens(sql: &str, quoting: Quoting) -> Vec<Token<'_>> {
    let (mut list, mut at) = (Vec::<Token<'_>>::new(), 0);
    while let Some(first) = sql[at..].chars().next() {
        let mut length = quoted_or_comment_length(sql, at, quoting);
        let is_comment = length > 0 && !(first == '$' || ['\'', '"', '`'].contains(&first));
        if length == 0 {
            length = sql[at..].find(|one| !is_name(one)).unwrap_or(sql.len() - at).max(first.len_utf8());
        }
        let text = &sql[at..at + length];
        let continues =
            |last: &Token<'_>| last.end() == at && last.is_quoted() && text.starts_with(&last.text[..1]);
        if let Some(last) = list.last_mut().filter(|last| continues(last)) {
            // A doubled quote inside quotes.
            last.text = &sql[last.start..at + length];
        } else if !is_comment && !first.is_whitespace() {
            list.push(Token { text, start: at });
        }
        at += length;
    }
    list
}

fn is_name(one: char) -> bool {
    one.is_alphanumeric() || one == '_' || one == '$'
}

/// A name without its quotes.
fn unquote(name: &str) -> String {
    match name.chars().next() {
        Some(quote @ ('"' | '`' | '\'')) if name.len() > 1 => {
            name[1..name.len() - 1].replace(&format!("{quote}{quote}"), &quote.to_string())
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mysql(sql: &str) -> Option<String> {
        SetupMarks::new(Dialect::Mysql, "db").add(sql)
    }

    fn postgresql(sql: &str) -> Option<String> {
        SetupMarks::new(Dialect::Postgresql, "db").add(sql)
    }

    fn mark(database: &str, table: &str) -> String {
        format!("{SETUP}{}", table_hash(database, table))
    }

    #[test]
    fn mysql_has_the_mark_among_the_table_options() {
        let own = mark("db", "t");
        for (before, after) in [
            ("CREATE TABLE t (a INT DEFAULT (1))", ""),
            ("create table if not exists `t`(a INT COMMENT 'x')", " ENGINE=InnoDB"),
            ("CREATE OR REPLACE TABLE db.T (a ENUM(')'), b INT)", " PARTITION BY HASH(a) PARTITIONS 2"),
            ("CREATE TABLE t", " AS SELECT 1 AS a"),
            ("CREATE TABLE t", " SELECT comment = 'a' FROM x"),
            ("CREATE TABLE t", " (SELECT 1 AS a)"),
            ("CREATE TABLE t (a INT)", " SELECT a FROM x WHERE comment = 'a'"),
            ("/* why */ CREATE TABLE t (a INT) /*! ENGINE = innodb */ -- end", ""),
        ] {
            let at = if before.contains("/*!") { before.find(" /*!").unwrap() } else { before.len() };
            let (head, tail) = before.split_at(at);
            let expected = format!("{head} COMMENT = '{own}'{tail}{after}");
            assert_eq!(mysql(&format!("{before}{after}")), Some(expected));
        }
        let other = mark("o`ther", "t");
        assert_eq!(
            mysql("CREATE TABLE `o``ther`.`t` (a INT)"),
            Some(format!("CREATE TABLE `o``ther`.`t` (a INT) COMMENT = '{other}'"))
        );
    }

    #[test]
    fn mysql_keeps_the_comment_of_the_user() {
        let own = mark("db", "t");
        for (head, tail) in [
            ("CREATE TABLE t (a INT) ENGINE=InnoDB COMMENT='it''s mine ", "' ROW_FORMAT=DYNAMIC"),
            ("CREATE TABLE t (a INT) comment \"mine ", "\""),
            ("CREATE TABLE t (a INT) COMMENT = '", "'"),
        ] {
            let sql = format!("{}{tail}", head.strip_suffix(' ').unwrap_or(head));
            assert_eq!(mysql(&sql), Some(format!("{head}{own}{tail}")));
        }
    }

    #[test]
    fn other_statements_stay() {
        for sql in [
            "CREATE TABLE t LIKE s",
            "CREATE TABLE t (LIKE s)",
            "CREATE TEMPORARY TABLE t (a INT)",
            "INSERT INTO t VALUES ('CREATE TABLE t (a INT)')",
            "# CREATE TABLE t (a INT)\nSELECT 1",
            "CREATE TABLE",
            "CREATE TABLE t",
            "CREATE TABLE t (a INT",
            "CREATE TABLE é.",
            "CREATE",
            "",
        ] {
            assert_eq!(mysql(sql), None, "{sql}");
        }
        let marks = SetupMarks::new(Dialect::Mysql, "db");
        let copied = format!("ALTER TABLE `t` COMMENT = '{}'", mark("db", "t"));
        assert_eq!(marks.after("CREATE TABLE `t` (LIKE s)"), Some(copied));
        assert_eq!(marks.after("CREATE TABLE IF NOT EXISTS t LIKE s"), None, "the table may be the user's");
        assert_eq!(marks.after("CREATE TABLE t (a INT)"), None);
        assert_eq!(postgresql("CREATE TEMP TABLE t (a int)"), None);
    }

    #[test]
    fn several_statements_and_another_database() {
        let marked =
            mysql("DROP TABLE IF EXISTS a; CREATE TABLE a (x INT); USE other; CREATE TABLE b (x INT)");
        let (a, b) = (mark("db", "a"), mark("other", "b"));
        let expected = format!(
            "DROP TABLE IF EXISTS a; CREATE TABLE a (x INT) COMMENT = '{a}'; USE other; CREATE TABLE b (x INT) COMMENT = '{b}'"
        );
        assert_eq!(marked, Some(expected));
    }

    #[test]
    fn postgresql_marks_in_the_same_transaction() {
        let own = mark("db", "T");
        assert_eq!(
            postgresql("CREATE TABLE s.\"T\" (a int) -- end"),
            Some(format!("CREATE TABLE s.\"T\" (a int); COMMENT ON TABLE s.\"T\" IS '{own}' -- end"))
        );
        let conditional = postgresql("CREATE TABLE IF NOT EXISTS t AS SELECT 1").unwrap();
        assert!(
            conditional.starts_with("CREATE TABLE IF NOT EXISTS t AS SELECT 1; DO $dbdyno$"),
            "{conditional}"
        );
        assert!(conditional.contains(&format!("THEN COMMENT ON TABLE t IS '{own}'")), "{conditional}");
    }

    #[test]
    fn a_mark_belongs_to_one_table() {
        let comment = format!("{LOADING}{}", table_hash("db", "t"));
        // As `table_hash` of the lab.
        assert_eq!(table_hash("dbdyno", "sbtest1"), " table=f07a682b");
        assert!(is_own(&comment, &table_hash("DB", "T")));
        assert!(!is_own(&comment, &table_hash("db", "mine")));
        assert!(!is_own(&comment, &table_hash("other", "t")));
        assert!(is_without_table(LOADING) && !is_without_table(&comment));
    }
}
