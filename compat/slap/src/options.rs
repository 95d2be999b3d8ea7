//! The definitions of all options, in the order of the clients' `--help`. The descriptions are dbdyno's.

use super::Flavour;

/// The type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No value, or `=0` or `=1`.
    Flag,
    /// No value; the program counts how often the option is present.
    Count,
    /// A number with this minimum, and an optional suffix K, M, G, T, P or E.
    Number(u64),
    Text,
    OptionalText,
}

/// The definition of an option.
#[derive(Clone, Copy, Debug)]
pub struct OptionDefinition {
    pub name: &'static str,
    /// The letter of the short form.
    pub letter: Option<char>,
    pub kind: Kind,
    pub help: &'static str,
    /// The client that has the option; `None` for both clients.
    only_in: Option<Flavour>,
}

use Kind::{Count, Flag, Number, OptionalText, Text};

const fn option(name: &'static str, kind: Kind, help: &'static str) -> OptionDefinition {
    OptionDefinition { name, letter: None, kind, help, only_in: None }
}

const fn with_letter(letter: char, definition: OptionDefinition) -> OptionDefinition {
    OptionDefinition { letter: Some(letter), ..definition }
}

const fn mysql_only(definition: OptionDefinition) -> OptionDefinition {
    OptionDefinition { only_in: Some(Flavour::Mysql), ..definition }
}

const fn mariadb_only(definition: OptionDefinition) -> OptionDefinition {
    OptionDefinition { only_in: Some(Flavour::Mariadb), ..definition }
}

const NO_EFFECT: &str = "no effect";

/// All options. The last four exist only in dbdyno.
const ALL: [OptionDefinition; 75] = [
    with_letter('?', option("help", Flag, "list the options and exit")),
    with_letter('a', option("auto-generate-sql", Flag, "generate tables, rows and queries")),
    option(
        "auto-generate-sql-add-autoincrement",
        Flag,
        "generated tables have an AUTO_INCREMENT primary key",
    ),
    option("auto-generate-sql-execute-number", Number(0), "number of queries of each client"),
    option("auto-generate-sql-guid-primary", Flag, "generated tables have a UUID primary key"),
    option(
        "auto-generate-sql-load-type",
        Text,
        "kind of generated queries {mixed,update,write,key,read} [mixed]",
    ),
    option(
        "auto-generate-sql-secondary-indexes",
        Number(0),
        "number of additional UUID columns, each with an index",
    ),
    option("auto-generate-sql-unique-query-number", Number(0), "number of different generated queries [10]"),
    option("auto-generate-sql-unique-write-number", Number(0), "number of different generated rows [10]"),
    option("auto-generate-sql-write-number", Number(0), "number of rows to load, plus one [100]"),
    mariadb_only(option("character-sets-dir", Text, NO_EFFECT)),
    option("commit", Number(0), "number of queries between two COMMITs"),
    with_letter('C', option("compress", Flag, "compress connections")),
    with_letter(
        'c',
        option(
            "concurrency",
            Text,
            "number of concurrent clients; the numbers of a list are run in sequence",
        ),
    ),
    option("create", Text, "statements that create the tables, or the name of a file that contains them"),
    option("create-schema", Text, "name of the schema [mysqlslap]"),
    option("csv", OptionalText, "print the report as CSV, or append it to this file"),
    with_letter('#', option("debug", OptionalText, NO_EFFECT)),
    option("debug-check", Flag, NO_EFFECT),
    with_letter('T', option("debug-info", Flag, NO_EFFECT)),
    option("default-auth", Text, NO_EFFECT),
    with_letter('F', option("delimiter", Text, "separator between statements [end of line]")),
    option("detach", Number(0), "number of queries between two reconnects"),
    mysql_only(option("enable-cleartext-plugin", Flag, NO_EFFECT)),
    with_letter('e', option("engine", Text, "storage engine; the engines of a list are run in sequence")),
    with_letter('h', option("host", Text, "host of the server [localhost]")),
    mariadb_only(option("init-command", Text, "first statement of every connection")),
    with_letter('i', option("iterations", Number(1), "number of repetitions of each test")),
    option("no-drop", Flag, "keep the schema at the end"),
    with_letter(
        'x',
        option("number-char-cols", Text, "number of VARCHAR columns; N:1 for N columns with an index each"),
    ),
    with_letter(
        'y',
        option("number-int-cols", Text, "number of INT columns; N:1 for N columns with an index each"),
    ),
    option(
        "number-of-queries",
        Number(0),
        "total number of queries, divided among the clients and rounded down",
    ),
    option("only-print", Flag, "print the statements without connecting"),
    with_letter('p', option("password", OptionalText, "password; without a value, prompts for it")),
    mysql_only(option("password1", OptionalText, "same as --password")),
    mysql_only(option("password2", OptionalText, "not supported: use an account with one password")),
    mysql_only(option("password3", OptionalText, "not supported: use an account with one password")),
    option("plugin-dir", Text, NO_EFFECT),
    with_letter('P', option("port", Number(0), "TCP port of the server [3306]")),
    option(
        "post-query",
        Text,
        "statements to execute after the clients, or the name of a file that contains them",
    ),
    option("post-system", Text, "shell command to run after the clients"),
    option(
        "pre-query",
        Text,
        "statements to execute before the clients, or the name of a file that contains them",
    ),
    option("pre-system", Text, "shell command to run before the clients"),
    option("protocol", Text, "protocol {tcp,socket}"),
    with_letter(
        'q',
        option("query", Text, "queries of the clients, or the name of a file that contains them"),
    ),
    with_letter('s', option("silent", Flag, "print no report")),
    with_letter('S', option("socket", Text, "Unix socket of the server")),
    mysql_only(option("sql-mode", Text, "sql_mode of the connection that creates the tables")),
    mysql_only(option("server-public-key-path", Text, "file of the server's public key")),
    mysql_only(option("get-server-public-key", Flag, "request the server's public key")),
    mariadb_only(option("ssl", Flag, "encrypt connections")),
    mysql_only(option(
        "ssl-mode",
        Text,
        "encryption {DISABLED,PREFERRED,REQUIRED,VERIFY_CA,VERIFY_IDENTITY} [PREFERRED]",
    )),
    option("ssl-ca", Text, "file with the certificates of trusted authorities"),
    option("ssl-capath", Text, "not supported: use --ssl-ca"),
    option("ssl-cert", Text, "file of the client's certificate"),
    option("ssl-cipher", Text, NO_EFFECT),
    option("ssl-key", Text, "file of the client's key"),
    option("ssl-crl", Text, "not supported: revocation lists are not read"),
    option("ssl-crlpath", Text, "not supported: revocation lists are not read"),
    option("tls-version", Text, NO_EFFECT),
    mysql_only(option("ssl-fips-mode", Text, NO_EFFECT)),
    mysql_only(option("tls-ciphersuites", Text, NO_EFFECT)),
    mysql_only(option("ssl-session-data", Text, NO_EFFECT)),
    mysql_only(option("ssl-session-data-continue-on-failed-reuse", Flag, NO_EFFECT)),
    mysql_only(option("tls-sni-servername", Text, NO_EFFECT)),
    mariadb_only(option("ssl-verify-server-cert", Flag, "verify the server's certificate and its name")),
    with_letter('u', option("user", Text, "user name [the name of the system user]")),
    with_letter('v', option("verbose", Count, "verbose output; up to three times")),
    with_letter('V', option("version", Flag, "print the version and exit")),
    mysql_only(option(
        "compression-algorithms",
        Text,
        "compression {zstd,zlib,uncompressed}; of a list, the first one is used",
    )),
    mysql_only(option("zstd-compression-level", Number(1), "compression level of zstd [3]")),
    option("compat", Text, "client to emulate {mysql,mariadb}"),
    option("latency", Flag, "report latency percentiles of every query"),
    option("workers", Number(0), "event loops, one thread each; 0 for a quarter of the CPUs"),
    option("connect-timeout", Number(1), "connection timeout in seconds [10]"),
];

/// Finds an option of a client by name.
pub fn find(name: &str, flavour: Flavour) -> Option<&'static OptionDefinition> {
    all(flavour).find(|option| option.name == name)
}

/// All options of a client, including the options that exist only in dbdyno.
pub fn all(flavour: Flavour) -> impl Iterator<Item = &'static OptionDefinition> {
    ALL.iter().filter(move |option| option.only_in.is_none_or(|only_in| only_in == flavour))
}
