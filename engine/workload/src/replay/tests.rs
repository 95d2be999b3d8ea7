//! Tests of replays: the statements of each file format, and the order in which they are executed.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::*;
use crate::{Contents, Program};

fn replay(format: &str) -> Replay {
    serde_json::from_value(json!({"file": "log", "format": format})).unwrap()
}

fn recording(format: &str, order: TransactionOrder, text: &str) -> Recording {
    let quoting = if format.starts_with("postgresql") { Quoting::Postgresql } else { Quoting::Mysql };
    read(&replay(format), order, quoting, text.as_bytes()).unwrap()
}

/// The transactions of a file, in its order.
fn transactions(format: &str, text: &str) -> Vec<Vec<String>> {
    let recording = recording(format, TransactionOrder::InOrder, text);
    let sql = |number: &u32| recording.texts[*number as usize].sql.to_string();
    recording.transactions.iter().map(|statements| statements.iter().map(sql).collect()).collect()
}

const MARIADB: &str = "/usr/sbin/mariadbd, Version: 10.11.6-MariaDB-log (Debian). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time\t\t    Id Command\tArgument
261121  9:05:01\t     4 Connect\tsbtest@localhost on sbtest using Socket
\t\t     5 Connect\tsbtest@localhost on  using TCP/IP
\t\t     4 Prepare\tSELECT c FROM sbtest1 WHERE id=?
\t\t     4 Execute\tBEGIN
\t\t     5 Init DB\tother
\t\t     5 Query\tSELECT 'a
\t5 Query\tstill the same' FROM t
\t\t     4 Execute\tSELECT c FROM sbtest1 WHERE id=7
261121  9:05:02\t     4 Execute\tCOMMIT
\t\t     5 Query\tPREPARE s FROM 'SELECT 1'
\t\t     5 Prepare\tSELECT 1
\t\t     5 Query\tEXECUTE s
\t\t     5 Execute\tSELECT 1
\t\t     5 Query\tSET NAMES utf8mb4
\t\t     4 Close stmt\t
\t\t     4 Quit\t
";

#[test]
fn mariadb_general_logs_are_read() {
    assert_eq!(
        transactions("general-log", MARIADB),
        [
            vec!["BEGIN", "SELECT c FROM sbtest1 WHERE id=7", "COMMIT"],
            vec!["SELECT 'a\n\t5 Query\tstill the same' FROM t"],
            vec!["SELECT 1"],
        ]
    );
    let recording = recording("general-log", TransactionOrder::InOrder, MARIADB);
    let skipped: BTreeMap<String, u64> =
        [("PREPARE", 1), ("EXECUTE", 1), ("SET", 1)].map(|(word, count)| (word.into(), count)).into();
    assert_eq!(recording.counts(), (5, &skipped));
}

#[test]
fn only_statements_of_the_selected_database_are_replayed() {
    let mut only = replay("general-log");
    only.database = Some("sbtest".into());
    let read = |only: &Replay| read(only, TransactionOrder::InOrder, Quoting::Mysql, MARIADB.as_bytes());
    let recording = read(&only).unwrap();
    assert_eq!((recording.transactions.len(), recording.skipped["in other databases"]), (1, 5));
    only.database = Some("shop".into());
    assert_eq!(
        read(&only).unwrap_err(),
        "contains no statement of the database shop, which replay.database selects; its databases are other, sbtest"
    );
}

#[test]
fn statements_whose_database_is_unknown_are_not_replayed() {
    let mut only = replay("general-log");
    only.database = Some("shop".into());
    let text = "/usr/sbin/mysqld, Version: 9.7.0 (MySQL Community Server - GPL). started with:
Tcp port: 3306  Unix socket: /tmp/mysql.sock
Time                 Id Command    Argument
2026-11-21T09:05:01.123456Z\t    7 Query\tDELETE FROM customers
2026-11-21T09:05:01.123456Z\t    8 Connect\troot@localhost on  using Socket
2026-11-21T09:05:01.123456Z\t    8 Query\tDELETE FROM invoices
2026-11-21T09:05:01.123456Z\t    8 Init DB\tshop
2026-11-21T09:05:01.123456Z\t    8 Query\tSELECT 1
";
    let recording = read(&only, TransactionOrder::InOrder, Quoting::Mysql, text.as_bytes()).unwrap();
    assert_eq!((recording.transactions.len(), recording.skipped["in an unknown database"]), (1, 2));
    let (text, _) = text.split_once("2026-11-21T09:05:01.123456Z\t    8 Init").unwrap();
    assert_eq!(
        read(&only, TransactionOrder::InOrder, Quoting::Mysql, text.as_bytes()).unwrap_err(),
        "contains no statement of the database shop, which replay.database selects; 2 statements are in an unknown \
         database"
    );
    // Without a selection all of them are replayed.
    only.database = None;
    let all = read(&only, TransactionOrder::InOrder, Quoting::Mysql, text.as_bytes()).unwrap();
    assert_eq!(all.transactions.len(), 2);
}

#[test]
fn the_database_is_read_from_the_fields_of_a_prefix() {
    let mut only = replay("postgresql-log");
    only.database = Some("shop".into());
    let prefixes = [
        // Left out: databases of other applications, and no database.
        "2026-01-05 10:00:00 UTC [1]: user=a@corp,db=crm,app=db=shop,client=10.0.0.5 ",
        "2026-01-05 10:00:00.123 UTC [2] [database=crm user=shop] ",
        "2026-01-05 10:00:00 UTC [3] a@crm ",
        "2026-01-05 10:00:00 UTC [4] ",
        "2026-01-05 10:00:00 UTC [5]: user=[unknown],db=[unknown],app=x ",
        // Replayed.
        "2026-01-05 10:00:00 UTC [6]: user=a@corp,db=shop,app=db=crm,client=10.0.0.5 ",
        "2026-01-05 10:00:00 UTC [7] (dbname=shop;user=crm) ",
        "2026-01-05 10:00:00 UTC [8] crm@shop ",
    ];
    let text: String = prefixes.iter().map(|prefix| format!("{prefix}LOG:  statement: SELECT 1\n")).collect();
    let recording = read(&only, TransactionOrder::InOrder, Quoting::Postgresql, text.as_bytes()).unwrap();
    assert_eq!(recording.transactions.len(), 3);
    assert_eq!(
        (recording.skipped["in other databases"], recording.skipped["in an unknown database"]),
        (3, 2)
    );
}

#[test]
fn mysql_general_logs_are_read() {
    let text = "/usr/sbin/mysqld, Version: 9.7.0 (MySQL Community Server - GPL). started with:
Tcp port: 3306  Unix socket: /tmp/mysql.sock
Time                 Id Command    Argument
2026-11-21T09:05:01.123456Z\t    8 Connect\troot@localhost on shop using Socket
2026-11-21T09:05:01.123456Z\t    8 Query\tSET autocommit=0
2026-11-21T09:05:01.123457+02:00\t    8 Query\tinsert into t values (1)
2026-11-21T09:05:01.123456Z\t    8 Query\tSAVEPOINT a
2026-11-21T09:05:01.123456Z\t    8 Query\tROLLBACK TO SAVEPOINT a
2026-11-21T09:05:01.123456Z\t    8 Query\tcommit
2026-11-21T09:05:01.123456Z\t    8 Query\tSELECT 1
2026-11-21T09:05:01.123456Z\t    9 Query\tSTART TRANSACTION READ ONLY
2026-11-21T09:05:01.123456Z\t    9 Query\tSELECT 2
2026-11-21T09:05:01.123456Z\t    8 Query\tSET @@autocommit = ON
2026-11-21T09:05:01.123456Z\t   10 Query\tSELECT 3 INTO OUTFILE '/tmp/x'
2026-11-21T09:05:01.123456Z\t   10 Query\tSTART REPLICA
";
    assert_eq!(
        transactions("general-log", text),
        [
            vec!["BEGIN", "insert into t values (1)", "SAVEPOINT a", "ROLLBACK TO SAVEPOINT a", "commit"],
            vec!["BEGIN", "SELECT 1", "COMMIT"],
            // The log ends before the transaction does.
            vec!["START TRANSACTION READ ONLY", "SELECT 2", "ROLLBACK"],
        ]
    );
}

#[test]
fn slow_logs_are_read() {
    let mysql = "/usr/sbin/mysqld, Version: 9.7.0 (MySQL Community Server - GPL). started with:
Tcp port: 3306  Unix socket: /tmp/mysql.sock
Time                 Id Command    Argument
# Time: 2026-11-21T09:05:01.123456Z
# User@Host: root[root] @ localhost []  Id:     8
# Query_time: 0.000123  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1
use shop;
SET timestamp=1719206820;
BEGIN;
# Time: 2026-11-21T09:05:01.123457Z
# User@Host: root[root] @ localhost []  Id:     9
# Query_time: 0.000123  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1
SET timestamp=1719206820;
SELECT '
# a line of the statement;
' ;
# Time: 2026-11-21T09:05:01.123458Z
# User@Host: root[root] @ localhost []  Id:     8
# Query_time: 0.000123  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1
SET timestamp=1719206820;
UPDATE t SET a=1;
# User@Host: root[root] @ localhost []  Id:     8
# Query_time: 0.000123  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1
SET timestamp=1719206820;
# administrator command: Quit;
";
    let expected =
        [vec!["BEGIN", "UPDATE t SET a=1", "ROLLBACK"], vec!["SELECT '\n# a line of the statement;\n' "]];
    assert_eq!(transactions("slow-log", mysql), expected.map(|statements| trimmed(&statements)));
    let mariadb = "# Time: 261121  9:05:01
# User@Host: root[root] @ localhost []
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.000200  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0
# Rows_affected: 1  Bytes_sent: 11
SET timestamp=1719206820;
START TRANSACTION;
# User@Host: root[root] @ localhost []
# Thread_id: 6  Schema: other  QC_hit: No
# Query_time: 0.000200  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0
SET timestamp=1719206820;
SELECT 2;
# User@Host: root[root] @ localhost []
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.000200  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0
SET timestamp=1719206820;
COMMIT;
";
    assert_eq!(transactions("slow-log", mariadb), [vec!["START TRANSACTION", "COMMIT"], vec!["SELECT 2"]]);
}

fn trimmed(statements: &[&str]) -> Vec<String> {
    statements.iter().map(|sql| sql.trim().to_owned()).collect()
}

#[test]
fn postgresql_text_logs_are_read() {
    let text = "2026-11-21 09:05:01.123 UTC [77] LOG:  statement: BEGIN
2026-11-21 09:05:01.123 UTC [78] app@shop LOG:  duration: 0.012 ms  statement: SELECT 1
\t  FROM t
2026-11-21 09:05:01.124 UTC [77] LOG:  execute s1: SELECT '$1', $1 FROM t WHERE a=$2 AND b=$3
2026-11-21 09:05:01.124 UTC [77] DETAIL:  Parameters: $1 = 'it''s, $2 = ', $2 = '5', $3 = NULL
2026-11-21 09:05:01.124 UTC [78] app@shop LOG:  duration: 0.100 ms  parse <unnamed>: SELECT 9
2026-11-21 09:05:01.124 UTC [78] app@shop LOG:  duration: 0.100 ms  execute <unnamed>: SELECT 9
2026-11-21 09:05:01.124 UTC [78] app@shop ERROR:  relation \"x\" does not exist at character 1
2026-11-21 09:05:01.124 UTC [78] app@shop STATEMENT:  SELECT x
2026-11-21 09:05:01.125 UTC [77] LOG:  statement: COMMIT
2026-11-21 09:05:01.125 UTC [70] LOG:  checkpoint starting: time
";
    assert_eq!(
        transactions("postgresql-log", text),
        [
            vec!["BEGIN", "SELECT '$1', 'it''s, $2 = ' FROM t WHERE a='5' AND b=NULL", "COMMIT"],
            vec!["SELECT 1\n  FROM t"],
            vec!["SELECT 9"],
        ]
    );
}

#[test]
fn postgresql_csv_logs_are_read() {
    let line = |message: &str, detail: &str| {
        format!(
            "2026-11-21 09:05:01.123 UTC,\"app\",\"shop\",77,\"[local]\",1.4d,1,\"SELECT\",2026-11-21 09:05:01 UTC,3/1,0,LOG,00000,\
             {message},{detail},,,,,,,,\"psql\",\"client backend\",,0\n"
        )
    };
    let text = line("\"statement: SELECT \"\"a\"\",\n 1\"", "")
        + &line("\"execute <unnamed>: SELECT $1\"", "\"parameters: $1 = '5'\"")
        + &line("\"disconnection: session time: 0:00:00.001\"", "");
    assert_eq!(transactions("postgresql-csv", &text), [vec!["SELECT \"a\",\n 1"], vec!["SELECT '5'"]]);
}

#[test]
fn query_files_are_read() {
    let text = "SELECT ';' -- a; b\n, 1;\n\nBEGIN; DELETE FROM t WHERE id=1; COMMIT;\n-- the end\n";
    let transactions = transactions("queries", text);
    assert_eq!(
        transactions,
        [vec!["SELECT ';' -- a; b\n, 1"], vec!["BEGIN", "DELETE FROM t WHERE id=1", "COMMIT"]]
    );
}

#[test]
fn a_log_without_statements_is_an_error() {
    let read = |text: &str| {
        let error = read(&replay("general-log"), TransactionOrder::InOrder, Quoting::Mysql, text.as_bytes());
        error.unwrap_err()
    };
    assert!(read("SELECT 1;\n").contains("check that replay.format is the format of the file"));
    let shows = "\t\t     4 Query\tSHOW TABLES\n";
    assert_eq!(read(shows), "contains no statement that reads or writes data; skipped: 1 SHOW");
}

/// A program that replays these queries.
fn program(text: &str, sql: Json) -> Program {
    let mut plan = json!({
        "schema": 1, "target": {"protocol": "null"}, "load": {"connections": 2}, "phases": {"measure_us": 0}, "seed": 1,
        "workload": {"name": "sql", "sql": sql}
    });
    plan["workload"]["sql"]["replay"]["file"] = "f".into();
    plan["workload"]["sql"]["replay"]["format"] = "queries".into();
    let plan: Plan = serde_json::from_value(plan).unwrap();
    let custom = plan.workload.custom_sql().unwrap();
    let recording =
        read(custom.replay.as_ref().unwrap(), custom.order, Quoting::Mysql, text.as_bytes()).unwrap();
    Program::from_plan(
        &plan,
        &Contents { columns: Default::default(), recording: Some(Arc::new(recording)) },
        crate::NewRowIds::default(),
    )
}

fn sent(call: &Call) -> String {
    let [Value::Verbatim(sql)] = &call.values[..] else { panic!("{call:?}") };
    String::from_utf8(sql.clone()).unwrap()
}

fn execute(program: &Program, event: &mut crate::Event) -> Vec<String> {
    std::iter::from_fn(|| event.next(program).map(sent)).collect()
}

fn user(program: &Program, index: u64) -> crate::Event {
    let mut event = program.events(UserIndex { global: index, users: 2 });
    event.restart();
    event
}

#[test]
fn the_same_text_is_one_transaction_with_a_weight() {
    let text = "SELECT 1;".repeat(3) + "SELECT 2;" + &"BEGIN; DO 1; COMMIT;".repeat(4);
    let program = program(&text, json!({"replay": {}}));
    let (mut event, mut seen) = (user(&program, 0), BTreeMap::new());
    for _ in 0..8000 {
        *seen.entry(execute(&program, &mut event).concat()).or_insert(0.0) += 1.0;
    }
    // Chi-square with two degrees of freedom: 18.4 is its 99.99 % point.
    let shares = [("SELECT 1", 3000.0), ("SELECT 2", 1000.0), ("BEGINDO 1COMMIT", 4000.0)];
    let chi_square: f64 =
        shares.iter().map(|(text, expected): &(_, f64)| (seen[*text] - expected).powi(2) / expected).sum();
    assert!(seen.len() == 3 && chi_square < 18.4, "{seen:?}");
}

#[test]
fn in_order_every_transaction_runs_times_times() {
    let text: String = (0..7).map(|number| format!("SELECT {number};")).collect();
    let program = program(&text, json!({"order": "in-order", "replay": {"times": 2}}));
    let (mut users, mut executed) = ([user(&program, 0), user(&program, 1)], Vec::new());
    for turn in 0.. {
        let event = &mut users[turn % 2];
        if event.is_done() {
            break;
        }
        executed.extend(execute(&program, event));
    }
    executed.sort();
    let expected: Vec<String> = (0..14).map(|number| format!("SELECT {}", number / 2)).collect();
    assert_eq!(executed, expected);
    assert!(users.iter().all(|event| event.is_done()));
    // The list is complete, so a third user has nothing to execute.
    assert!(user(&program, 2).is_done());
}

#[test]
fn each_user_executes_the_whole_list() {
    let program = program("DO 1; DO 2", json!({"order": "each-in-order", "replay": {"times": 1}}));
    for index in 0..2 {
        let mut event = user(&program, index);
        assert_eq!([execute(&program, &mut event), execute(&program, &mut event)].concat(), ["DO 1", "DO 2"]);
        assert!(event.is_done());
    }
}

#[test]
fn a_transaction_is_abandoned_after_three_attempts() {
    let program =
        program("INSERT INTO t VALUES (1); DO 2", json!({"order": "in-order", "replay": {"times": 1}}));
    let (mut event, mut sent_all) = (user(&program, 0), Vec::new());
    for _ in 0..4 {
        sent_all.push(sent(event.next(&program).unwrap()));
        event.restart();
    }
    assert_eq!(sent_all, [["INSERT INTO t VALUES (1)"; 3].as_slice(), &["DO 2"]].concat());
}

#[test]
fn statements_are_counted_by_their_texts_without_values() {
    let text = "SELECT a FROM t WHERE id=1; SELECT a FROM t WHERE id=22; UPDATE t SET a='x'";
    let program = program(text, json!({"replay": {}}));
    let kinds: Vec<_> = program.describe().into_iter().map(|kind| (kind.kind, kind.sql)).collect();
    let expected = [("1-select", "SELECT a FROM t WHERE id=?"), ("2-update", "UPDATE t SET a=?")];
    assert_eq!(kinds, expected.map(|(kind, sql)| (kind.to_owned(), sql.to_owned())));
    let many: String = (0..300).map(|number| format!("SELECT c{number} FROM t;")).collect();
    let kinds = self::program(&many, json!({"replay": {}})).describe();
    assert_eq!((kinds.len(), kinds[200].kind.as_str()), (201, "others"));
}

/// Statements of a log, and how many of them may write.
const WRITES: &[(&str, u64)] = &[
    ("SELECT c FROM t WHERE a='INSERT INTO t'", 0),
    ("SELECT REPLACE(a, 'x', 'y'), INSERT(b, 1, 2, 'z') FROM t FOR UPDATE", 0),
    ("SELECT a INTO @b FROM t", 0),
    ("SELECT a INTO copied FROM t", 1),
    ("WITH d AS (SELECT 1) SELECT * FROM d", 0),
    ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", 1),
    ("INSERT INTO t VALUES (1)", 1),
    ("/* SELECT */ UPDATE t SET a=1", 1),
    ("CALL p()", 1),
    ("BEGIN", 0),
    ("COMMIT", 0),
];

#[test]
fn what_may_write_is_counted_and_can_be_left_out() {
    for (sql, writes) in WRITES {
        let recording = recording("queries", TransactionOrder::InOrder, &format!("SELECT 1;{sql};"));
        let counted: u64 = recording.recorded().iter().map(|entry| entry.writes).sum();
        assert_eq!(counted, *writes, "{sql}");
        let replay = Replay { skip_writes: true, ..replay("queries") };
        let text = format!("SELECT 1;{sql};");
        let left = read(&replay, TransactionOrder::InOrder, Quoting::Mysql, text.as_bytes()).unwrap();
        assert_eq!(left.counts().1.values().sum::<u64>(), *writes, "{sql}");
        assert_eq!(left.recorded().iter().map(|entry| entry.writes).sum::<u64>(), 0, "{sql}");
    }
}

#[test]
fn a_transaction_keeps_its_reads_without_its_writes() {
    let replay = Replay { skip_writes: true, ..replay("queries") };
    let text = "BEGIN; SELECT a FROM t; UPDATE t SET a=2; COMMIT; DELETE FROM t;";
    let recording = read(&replay, TransactionOrder::InOrder, Quoting::Mysql, text.as_bytes()).unwrap();
    let sql = |number: &u32| recording.texts[*number as usize].sql.to_string();
    let transactions: Vec<Vec<String>> =
        recording.transactions.iter().map(|statements| statements.iter().map(sql).collect()).collect();
    assert_eq!(transactions, [["BEGIN", "SELECT a FROM t", "COMMIT"]]);
}
