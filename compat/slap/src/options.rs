//! Every option, as data: what `--help` lists, in its order. The descriptions are ours.

use super::Flavour;

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, or `=0` and `=1`.
    Flag,
    /// Nothing; it may be given several times.
    Count,
    /// A number of at least this much, with a suffix K, M, G, T, P or E.
    Number(u64),
    /// A text.
    Text,
    /// A text, or nothing.
    MaybeText,
}

/// Who has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Both clients.
    Both,
    /// MySQL's.
    Mysql,
    /// MariaDB's.
    Mariadb,
    /// This drop-in's own.
    Ours,
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name, as it is listed.
    pub name: &'static str,
    /// Its letter.
    pub short: Option<char>,
    /// What it takes.
    pub kind: Kind,
    /// Who has it.
    pub whose: Whose,
    /// One line that describes it.
    pub help: &'static str,
}

impl Row {
    /// Whether a client knows it.
    pub fn is_of(&self, flavour: Flavour) -> bool {
        match self.whose {
            Whose::Both | Whose::Ours => true,
            Whose::Mysql => flavour == Flavour::Mysql,
            Whose::Mariadb => flavour == Flavour::Mariadb,
        }
    }
}

use Kind::{Count, Flag, MaybeText, Number, Text};
use Whose::{Both, Mariadb, Mysql, Ours};

const fn row(name: &'static str, short: &str, kind: Kind, whose: Whose, help: &'static str) -> Row {
    let letters = short.as_bytes();
    let short = if letters.is_empty() { None } else { Some(letters[0] as char) };
    Row { name, short, kind, whose, help }
}

/// What is accepted and changes nothing.
const NOTHING: &str = "accepted, and without effect";

/// All of them.
pub const ALL: [Row; 75] = [
    row("help", "?", Flag, Both, "list the options and end"),
    row("auto-generate-sql", "a", Flag, Both, "make tables, rows and queries by itself"),
    row("auto-generate-sql-add-autoincrement", "", Flag, Both, "with an AUTO_INCREMENT key"),
    row("auto-generate-sql-execute-number", "", Number(0), Both, "queries that every client runs"),
    row("auto-generate-sql-guid-primary", "", Flag, Both, "with a primary key of UUIDs"),
    row(
        "auto-generate-sql-load-type",
        "",
        Text,
        Both,
        "queries {mixed,update,write,key,read}; mixed without it",
    ),
    row(
        "auto-generate-sql-secondary-indexes",
        "",
        Number(0),
        Both,
        "columns of UUIDs with an index of their own",
    ),
    row("auto-generate-sql-unique-query-number", "", Number(0), Both, "different queries; 10 without it"),
    row(
        "auto-generate-sql-unique-write-number",
        "",
        Number(0),
        Both,
        "different rows to load; 10 without it",
    ),
    row(
        "auto-generate-sql-write-number",
        "",
        Number(0),
        Both,
        "one more than the rows that are loaded; 100 without it",
    ),
    row("character-sets-dir", "", Text, Mariadb, NOTHING),
    row("commit", "", Number(0), Both, "COMMIT after this many queries"),
    row("compress", "C", Flag, Both, "compress what is sent"),
    row("concurrency", "c", Text, Both, "clients at the same time; a list is run one after the other"),
    row("create", "", Text, Both, "statements that make the tables, or a file of them"),
    row("create-schema", "", Text, Both, "schema to work in; mysqlslap without it"),
    row("csv", "", MaybeText, Both, "report as CSV, to standard output or at the end of a file"),
    row("debug", "#", MaybeText, Both, NOTHING),
    row("debug-check", "", Flag, Both, NOTHING),
    row("debug-info", "T", Flag, Both, NOTHING),
    row("default-auth", "", Text, Both, NOTHING),
    row("delimiter", "F", Text, Both, "what separates statements; the end of the line without it"),
    row("detach", "", Number(0), Both, "close and open the connection after this many queries"),
    row("enable-cleartext-plugin", "", Flag, Mysql, NOTHING),
    row("engine", "e", Text, Both, "storage engines of the tables; a list is run one after the other"),
    row("host", "h", Text, Both, "host"),
    row("init-command", "", Text, Mariadb, "statement sent first on every connection"),
    row("iterations", "i", Number(1), Both, "how often everything is repeated"),
    row("no-drop", "", Flag, Both, "leave the schema behind"),
    row("number-char-cols", "x", Text, Both, "VARCHAR columns; N:1 with an index each"),
    row("number-int-cols", "y", Text, Both, "INT columns; N:1 with an index each"),
    row(
        "number-of-queries",
        "",
        Number(0),
        Both,
        "queries of all clients together, rounded down to the same for each",
    ),
    row("only-print", "", Flag, Both, "print the statements, and connect to no server"),
    row("password", "p", MaybeText, Both, "password; asked for on the terminal where none is given"),
    row("password1", "", MaybeText, Mysql, "the same"),
    row("password2", "", MaybeText, Mysql, "refused: there are no further factors"),
    row("password3", "", MaybeText, Mysql, "refused: there are no further factors"),
    row("plugin-dir", "", Text, Both, NOTHING),
    row("port", "P", Number(0), Both, "port; 3306 without it"),
    row("post-query", "", Text, Both, "statements sent after the clients, or a file of them"),
    row("post-system", "", Text, Both, "command for the shell after the clients"),
    row("pre-query", "", Text, Both, "statements sent before the clients, or a file of them"),
    row("pre-system", "", Text, Both, "command for the shell before the clients"),
    row("protocol", "", Text, Both, "way to the server {tcp,socket}"),
    row("query", "q", Text, Both, "queries of the clients, or a file of them"),
    row("silent", "s", Flag, Both, "no report"),
    row("socket", "S", Text, Both, "unix socket of the server"),
    row("sql-mode", "", Text, Mysql, "sql_mode of the connection that makes the tables"),
    row("server-public-key-path", "", Text, Mysql, "file with the server's public key"),
    row("get-server-public-key", "", Flag, Mysql, "ask the server for its public key"),
    row("ssl", "", Flag, Mariadb, "encrypt connections"),
    row(
        "ssl-mode",
        "",
        Text,
        Mysql,
        "{DISABLED,PREFERRED,REQUIRED,VERIFY_CA,VERIFY_IDENTITY}; PREFERRED without it",
    ),
    row("ssl-ca", "", Text, Both, "file with the authorities that are trusted"),
    row("ssl-capath", "", Text, Both, "refused: name a file by --ssl-ca"),
    row("ssl-cert", "", Text, Both, "file with the client's certificate"),
    row("ssl-cipher", "", Text, Both, NOTHING),
    row("ssl-key", "", Text, Both, "file with the client's key"),
    row("ssl-crl", "", Text, Both, "refused: no lists of revoked certificates are read"),
    row("ssl-crlpath", "", Text, Both, "refused: no lists of revoked certificates are read"),
    row("tls-version", "", Text, Both, NOTHING),
    row("ssl-fips-mode", "", Text, Mysql, NOTHING),
    row("tls-ciphersuites", "", Text, Mysql, NOTHING),
    row("ssl-session-data", "", Text, Mysql, NOTHING),
    row("ssl-session-data-continue-on-failed-reuse", "", Flag, Mysql, NOTHING),
    row("tls-sni-servername", "", Text, Mysql, NOTHING),
    row("ssl-verify-server-cert", "", Flag, Mariadb, "verify the server's certificate and its name"),
    row("user", "u", Text, Both, "account; the user's own name without it"),
    row("verbose", "v", Count, Both, "tell more; up to three times"),
    row("version", "V", Flag, Both, "print the version and end"),
    row(
        "compression-algorithms",
        "",
        Text,
        Mysql,
        "compression {zstd,zlib,uncompressed}; the first of a list",
    ),
    row("zstd-compression-level", "", Number(1), Mysql, "level of zstd; 3 without it"),
    row("compat", "", Text, Ours, "which client to be like {mysql,mariadb}"),
    row("latency", "", Flag, Ours, "percentiles of every query"),
    row("workers", "", Number(0), Ours, "event loops, a thread each; 0 for a quarter of the CPUs"),
    row("connect-timeout", "", Number(1), Ours, "seconds that a connection may take to open; 10 without it"),
];

/// The option of this name, as far as the client knows it.
pub fn named(name: &str, flavour: Flavour) -> Option<&'static Row> {
    of(flavour).find(|row| row.name == name)
}

/// All options that a client knows, and ours.
pub fn of(flavour: Flavour) -> impl Iterator<Item = &'static Row> {
    ALL.iter().filter(move |row| row.is_of(flavour))
}
