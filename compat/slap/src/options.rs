//! Every option as data, in the order of the clients' `--help`. The descriptions are dbdyno's.

use super::Flavour;

/// The type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No value, or `=0` or `=1`.
    Flag,
    /// No value; counts how often the option is present.
    Count,
    /// A number with this minimum, and an optional suffix K, M, G, T, P or E.
    Number(u64),
    Text,
    /// An optional text.
    MaybeText,
}

/// The definition of an option.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub short: Option<char>,
    pub kind: Kind,
    pub help: &'static str,
    /// The only client that has the option; `None` for both.
    only: Option<Flavour>,
}

use Kind::{Count, Flag, MaybeText, Number, Text};

const fn row(name: &'static str, kind: Kind, help: &'static str) -> Row {
    Row { name, short: None, kind, help, only: None }
}

const fn short(letter: char, row: Row) -> Row {
    Row { short: Some(letter), ..row }
}

const fn mysql(row: Row) -> Row {
    Row { only: Some(Flavour::Mysql), ..row }
}

const fn mariadb(row: Row) -> Row {
    Row { only: Some(Flavour::Mariadb), ..row }
}

const NOTHING: &str = "no effect";

/// All options. The last four exist only in this drop-in.
const ALL: [Row; 75] = [
    short('?', row("help", Flag, "list the options and exit")),
    short('a', row("auto-generate-sql", Flag, "generate tables, rows and queries")),
    row("auto-generate-sql-add-autoincrement", Flag, "with an AUTO_INCREMENT key"),
    row("auto-generate-sql-execute-number", Number(0), "queries of each client"),
    row("auto-generate-sql-guid-primary", Flag, "with a UUID primary key"),
    row("auto-generate-sql-load-type", Text, "queries {mixed,update,write,key,read} [mixed]"),
    row("auto-generate-sql-secondary-indexes", Number(0), "UUID columns, each with its own index"),
    row("auto-generate-sql-unique-query-number", Number(0), "different queries [10]"),
    row("auto-generate-sql-unique-write-number", Number(0), "different rows to load [10]"),
    row("auto-generate-sql-write-number", Number(0), "rows to load, plus one [100]"),
    mariadb(row("character-sets-dir", Text, NOTHING)),
    row("commit", Number(0), "COMMIT after this many queries"),
    short('C', row("compress", Flag, "compress connections")),
    short('c', row("concurrency", Text, "concurrent clients; a list is run in sequence")),
    row("create", Text, "statements that create the tables, or a file of them"),
    row("create-schema", Text, "schema [mysqlslap]"),
    row("csv", MaybeText, "report as CSV, to standard output or appended to a file"),
    short('#', row("debug", MaybeText, NOTHING)),
    row("debug-check", Flag, NOTHING),
    short('T', row("debug-info", Flag, NOTHING)),
    row("default-auth", Text, NOTHING),
    short('F', row("delimiter", Text, "separator of statements [end of line]")),
    row("detach", Number(0), "reconnect after this many queries"),
    mysql(row("enable-cleartext-plugin", Flag, NOTHING)),
    short('e', row("engine", Text, "storage engines; a list is run in sequence")),
    short('h', row("host", Text, "host")),
    mariadb(row("init-command", Text, "first statement of every connection")),
    short('i', row("iterations", Number(1), "repetitions")),
    row("no-drop", Flag, "keep the schema"),
    short('x', row("number-char-cols", Text, "VARCHAR columns; N:1 with an index each")),
    short('y', row("number-int-cols", Text, "INT columns; N:1 with an index each")),
    row(
        "number-of-queries",
        Number(0),
        "total number of queries, divided among the clients and rounded down",
    ),
    row("only-print", Flag, "print the statements without connecting"),
    short('p', row("password", MaybeText, "password; prompts without a value")),
    mysql(row("password1", MaybeText, "same as --password")),
    mysql(row("password2", MaybeText, "not supported: one factor only")),
    mysql(row("password3", MaybeText, "not supported: one factor only")),
    row("plugin-dir", Text, NOTHING),
    short('P', row("port", Number(0), "port [3306]")),
    row("post-query", Text, "statements after the clients, or a file of them"),
    row("post-system", Text, "shell command after the clients"),
    row("pre-query", Text, "statements before the clients, or a file of them"),
    row("pre-system", Text, "shell command before the clients"),
    row("protocol", Text, "protocol {tcp,socket}"),
    short('q', row("query", Text, "queries of the clients, or a file of them")),
    short('s', row("silent", Flag, "no report")),
    short('S', row("socket", Text, "unix socket of the server")),
    mysql(row("sql-mode", Text, "sql_mode of the connection that creates the tables")),
    mysql(row("server-public-key-path", Text, "file of the server's public key")),
    mysql(row("get-server-public-key", Flag, "request the server's public key")),
    mariadb(row("ssl", Flag, "encrypt connections")),
    mysql(row(
        "ssl-mode",
        Text,
        "encryption {DISABLED,PREFERRED,REQUIRED,VERIFY_CA,VERIFY_IDENTITY} [PREFERRED]",
    )),
    row("ssl-ca", Text, "file of trusted authorities"),
    row("ssl-capath", Text, "not supported: use --ssl-ca"),
    row("ssl-cert", Text, "file of the client's certificate"),
    row("ssl-cipher", Text, NOTHING),
    row("ssl-key", Text, "file of the client's key"),
    row("ssl-crl", Text, "not supported: revocation lists are not read"),
    row("ssl-crlpath", Text, "not supported: revocation lists are not read"),
    row("tls-version", Text, NOTHING),
    mysql(row("ssl-fips-mode", Text, NOTHING)),
    mysql(row("tls-ciphersuites", Text, NOTHING)),
    mysql(row("ssl-session-data", Text, NOTHING)),
    mysql(row("ssl-session-data-continue-on-failed-reuse", Flag, NOTHING)),
    mysql(row("tls-sni-servername", Text, NOTHING)),
    mariadb(row("ssl-verify-server-cert", Flag, "verify the server's certificate and its name")),
    short('u', row("user", Text, "account [the system user's name]")),
    short('v', row("verbose", Count, "verbose output; up to three times")),
    short('V', row("version", Flag, "print the version and exit")),
    mysql(row("compression-algorithms", Text, "compression {zstd,zlib,uncompressed}; the first of a list")),
    mysql(row("zstd-compression-level", Number(1), "level of zstd [3]")),
    row("compat", Text, "client to emulate {mysql,mariadb}"),
    row("latency", Flag, "percentiles of every query"),
    row("workers", Number(0), "event loops, one thread each; 0 for a quarter of the CPUs"),
    row("connect-timeout", Number(1), "connection timeout in seconds [10]"),
];

/// Finds an option of a client by name.
pub fn named(name: &str, flavour: Flavour) -> Option<&'static Row> {
    of(flavour).find(|row| row.name == name)
}

/// All options of a client, and those that exist only in this drop-in.
pub fn of(flavour: Flavour) -> impl Iterator<Item = &'static Row> {
    ALL.iter().filter(move |row| row.only.is_none_or(|only| only == flavour))
}
