//! How a failure reads: the lines that sysbench, its driver and its script would say one after the other.

use dbdyno_runner::external::postgres_errors;
use dbdyno_schema::plan::Endpoint;
use dbdyno_schema::record::{FailedAction, Failure, ServerFailure};

use super::super::Compat;
use super::super::driver::Driver;
use super::super::settings::Settings;

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// `run`.
    Run,
    /// Another command of the bundled workloads.
    Command(Command),
}

/// A command that works on tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `prepare`.
    Prepare,
    /// `prewarm`.
    Prewarm,
    /// `cleanup`.
    Cleanup,
}

/// FATAL lines, without that word.
pub fn lines(failure: &Failure, doing: Doing, settings: &Settings) -> Vec<String> {
    match &failure.server {
        Some(server) => of_server(server, doing, settings),
        None => std::iter::once(failure.text.clone()).chain(failure.hint.clone()).collect(),
    }
}

/// FATAL lines where the database's driver cannot be had: `said` is the driver's own.
pub fn without_driver(said: String, doing: Doing, compat: Compat) -> Vec<String> {
    let function = if doing == Doing::Run { "thread_init" } else { function_of(doing) };
    let mut lines = vec![said, format!("`{function}' function failed: failed to initialize the DB driver")];
    if doing == Doing::Run {
        lines.push(at_start(compat).into());
    }
    lines
}

/// The last line of a run whose threads cannot begin.
pub(super) fn at_start(compat: Compat) -> &'static str {
    match compat {
        Compat::V10 => "Thread initialization failed!",
        Compat::V11 => "Threads initialization failed!",
    }
}

fn of_server(server: &ServerFailure, doing: Doing, settings: &Settings) -> Vec<String> {
    let driver = settings.driver;
    // Where the connection broke no server has given it a number, and PostgreSQL's library has none.
    let is_lost = driver == Driver::Pgsql && server.code != 0;
    let lost = || ServerFailure {
        code: 0,
        sqlstate: postgres_errors::CONNECTION_FAILURE.into(),
        message: "server closed the connection unexpectedly".into(),
        ..server.clone()
    };
    let server = &if is_lost { lost() } else { server.clone() };
    let ServerFailure { code, sqlstate, message, .. } = server;
    let mut lines = match driver {
        Driver::Mysql => of_mysql(server, settings),
        Driver::Pgsql => of_pgsql(server),
    };
    let told = match server.action {
        FailedAction::Connect => "connection creation failed".to_owned(),
        FailedAction::Prepare => "SQL API error".to_owned(),
        _ => format!("SQL error, errno = {code}, state = '{sqlstate}': {message}"),
    };
    match (doing, server.action) {
        (Doing::Run, FailedAction::Connect | FailedAction::Prepare) => {
            lines.push(format!("`thread_init' function failed: {told}"));
            lines.push(at_start(settings.compat).into());
        }
        _ => lines.push(format!("`{}' function failed: {told}", function_of(doing))),
    }
    lines
}

/// What the driver for MySQL says.
fn of_mysql(server: &ServerFailure, settings: &Settings) -> Vec<String> {
    let ServerFailure { code, message, statement, .. } = server;
    match server.action {
        FailedAction::Connect => {
            vec![
                format!("unable to connect to MySQL server on {}, aborting...", place(server, settings)),
                format!("error {code}: {message}"),
            ]
        }
        FailedAction::Prepare => {
            vec!["mysql_stmt_prepare() failed".into(), format!("MySQL error: {code} \"{message}\"")]
        }
        FailedAction::Execute => {
            vec![format!("mysql_stmt_execute() returned error {code} ({message}) for query '{statement}'")]
        }
        FailedAction::Query => {
            vec![format!("mysql_drv_query() returned error {code} ({message}) for query '{statement}'")]
        }
    }
}

/// What the driver for PostgreSQL says; 7 is PGRES_FATAL_ERROR.
fn of_pgsql(server: &ServerFailure) -> Vec<String> {
    let ServerFailure { message, statement, .. } = server;
    match server.action {
        FailedAction::Connect => vec![format!("Connection to database failed: {message}\n")],
        FailedAction::Prepare => vec![format!("PQprepare() failed: ERROR:  {message}\n")],
        FailedAction::Execute => vec![format!("PQexecPrepared() failed: 7 {message}")],
        FailedAction::Query => {
            vec![format!("PQexec() failed: 7 {message}"), format!("failed query was: {statement}")]
        }
    }
}

/// The function of a script that does this work, which the original names in its messages.
fn function_of(doing: Doing) -> &'static str {
    match doing {
        Doing::Run => "thread_run",
        Doing::Command(Command::Prepare | Command::Prewarm) => "sysbench.cmdline.call_command",
        Doing::Command(Command::Cleanup) => "cleanup",
    }
}

/// As it was given. Where that says the same socket twice, by several ports of localhost, the first is as good.
fn place(server: &ServerFailure, settings: &Settings) -> String {
    let is_it = |(endpoint, _): &&(Endpoint, String)| server.endpoint.as_ref() == Some(endpoint);
    let place = settings.places.iter().find(is_it).or(settings.places.first());
    place.map(|(_, words)| words.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn settings(options: &[(&str, &str)], compat: Compat) -> Settings {
        let mut registry = Registry::new(compat);
        options.iter().for_each(|(name, value)| registry.set(name, Some(value)).unwrap());
        Settings::read(&registry, compat).unwrap()
    }

    fn mysql(compat: Compat) -> Settings {
        settings(&[("mysql-host", "127.0.0.1"), ("mysql-port", "1")], compat)
    }

    fn failure(action: FailedAction) -> Failure {
        let server = ServerFailure {
            action,
            code: 1146,
            sqlstate: "42S02".into(),
            message: "Table 'sbtest.sbtest1' doesn't exist".into(),
            statement: "SELECT 1".into(),
            endpoint: Some(Endpoint::Tcp { host: "127.0.0.1".into(), port: 1 }),
        };
        Failure { server: Some(Box::new(server)), ..Failure::default() }
    }

    #[test]
    fn each_layer_has_its_line() {
        let said = lines(&failure(FailedAction::Connect), Doing::Run, &mysql(Compat::V10));
        assert_eq!(said[0], "unable to connect to MySQL server on host '127.0.0.1', port 1, aborting...");
        assert_eq!(said.len(), 4);
        assert_eq!(said[3], "Thread initialization failed!");
        let newer = lines(&failure(FailedAction::Connect), Doing::Run, &mysql(Compat::V11));
        assert_eq!(newer[3], "Threads initialization failed!");
        let said = lines(&failure(FailedAction::Prepare), Doing::Run, &mysql(Compat::V10));
        assert_eq!(said[1], "MySQL error: 1146 \"Table 'sbtest.sbtest1' doesn't exist\"");
        let said = lines(&failure(FailedAction::Execute), Doing::Run, &mysql(Compat::V10));
        assert_eq!(
            said[1],
            "`thread_run' function failed: SQL error, errno = 1146, state = '42S02': Table 'sbtest.sbtest1' doesn't exist"
        );
        let said =
            lines(&failure(FailedAction::Query), Doing::Command(Command::Prepare), &mysql(Compat::V10));
        assert!(said[1].starts_with("`sysbench.cmdline.call_command' function failed: SQL error"));
    }

    #[test]
    fn the_machines_own_socket_is_told_as_it_was_given() {
        let mut failure = failure(FailedAction::Connect);
        let mut told = |options: &[(&str, &str)]| {
            let settings = settings(options, Compat::V10);
            failure.server.as_deref_mut().unwrap().endpoint = Some(settings.places[0].0.clone());
            lines(&failure, Doing::Run, &settings).remove(0)
        };
        let on = |place: &str| format!("unable to connect to MySQL server on {place}, aborting...");
        assert_eq!(told(&[("mysql-port", "3307")]), on("host 'localhost', port 3307"));
        let path = "/run/mysqld/mysqld.sock";
        assert_eq!(told(&[("mysql-socket", path)]), on(&format!("socket '{path}'")));
    }

    #[test]
    fn the_other_driver_has_its_own() {
        let said = |action, code| {
            let mut failure = failure(action);
            let server = failure.server.as_deref_mut().unwrap();
            (server.code, server.message) = (code, "relation does not exist".into());
            lines(&failure, Doing::Run, &settings(&[("db-driver", "pgsql")], Compat::V10))
        };
        let query = said(FailedAction::Query, 0);
        assert_eq!(query[..2], ["PQexec() failed: 7 relation does not exist", "failed query was: SELECT 1"]);
        assert!(query[2].ends_with("errno = 0, state = '42S02': relation does not exist"), "{query:?}");
        let connect = said(FailedAction::Connect, 0);
        assert_eq!(connect[0], "Connection to database failed: relation does not exist\n");
        let lost = said(FailedAction::Execute, 2013);
        assert_eq!(lost[0], "PQexecPrepared() failed: 7 server closed the connection unexpectedly");
    }
}
