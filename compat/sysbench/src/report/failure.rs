//! Formats the messages about a failed run or command in sysbench's order: first those of the database driver, then those of
//! the script, then sysbench's own.

use dbdyno_runner::external::postgres_errors;
use dbdyno_schema::plan::Endpoint;
use dbdyno_schema::record::{FailedAction, Failure, ServerFailure};

use super::super::Compat;
use super::super::driver::Driver;
use super::super::settings::Settings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Run,
    Prepare,
    Prewarm,
    Cleanup,
}

/// The FATAL lines, without the prefix.
pub fn lines(failure: &Failure, command: Command, settings: &Settings) -> Vec<String> {
    match &failure.server {
        Some(server) => server_lines(server, command, settings),
        None => std::iter::once(failure.text.clone()).chain(failure.fix.clone()).collect(),
    }
}

/// The FATAL lines if the database driver cannot start; `message` is the driver's own.
pub fn driver_failure_lines(message: String, command: Command, compat: Compat) -> Vec<String> {
    let function = if command == Command::Run { "thread_init" } else { script_function(command) };
    let mut lines =
        vec![message, format!("`{function}' function failed: failed to initialize the DB driver")];
    if command == Command::Run {
        lines.push(initialization_failed(compat).into());
    }
    lines
}

/// The last line of a run whose threads cannot start.
pub(super) fn initialization_failed(compat: Compat) -> &'static str {
    match compat {
        Compat::V1_0 => "Thread initialization failed!",
        Compat::V1_1 => "Threads initialization failed!",
    }
}

fn server_lines(server: &ServerFailure, command: Command, settings: &Settings) -> Vec<String> {
    let driver = settings.driver;
    // For a lost connection the engine reports a code, but libpq does not.
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
        Driver::Mysql => mysql_lines(server, settings),
        Driver::Pgsql => pgsql_lines(server),
    };
    let cause = match server.action {
        FailedAction::Connect => "connection creation failed".to_owned(),
        FailedAction::Prepare => "SQL API error".to_owned(),
        _ => format!("SQL error, errno = {code}, state = '{sqlstate}': {message}"),
    };
    match (command, server.action) {
        (Command::Run, FailedAction::Connect | FailedAction::Prepare) => {
            lines.push(format!("`thread_init' function failed: {cause}"));
            lines.push(initialization_failed(settings.compat).into());
        }
        _ => lines.push(format!("`{}' function failed: {cause}", script_function(command))),
    }
    lines
}

/// The lines of the MySQL driver.
fn mysql_lines(server: &ServerFailure, settings: &Settings) -> Vec<String> {
    let ServerFailure { code, message, statement, .. } = server;
    match server.action {
        FailedAction::Connect => {
            vec![
                format!(
                    "unable to connect to MySQL server on {}, aborting...",
                    server_name(server, settings)
                ),
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

/// The lines of the PostgreSQL driver. The 7 is libpq's PGRES_FATAL_ERROR.
fn pgsql_lines(server: &ServerFailure) -> Vec<String> {
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

/// The name of the script's function that sysbench prints in its messages.
fn script_function(command: Command) -> &'static str {
    match command {
        Command::Run => "thread_run",
        Command::Prepare | Command::Prewarm => "sysbench.cmdline.call_command",
        Command::Cleanup => "cleanup",
    }
}

/// The server as the options name it. All ports of localhost mean the same socket, so messages show the first port.
fn server_name(server: &ServerFailure, settings: &Settings) -> String {
    let is_same = |(endpoint, _): &&(Endpoint, String)| server.endpoint.as_ref() == Some(endpoint);
    let server = settings.servers.iter().find(is_same).or(settings.servers.first());
    server.map(|(_, name)| name.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::settings;

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
    fn mysql_failures_have_driver_script_and_sysbench_lines() {
        let messages = lines(&failure(FailedAction::Connect), Command::Run, &mysql(Compat::V1_0));
        assert_eq!(messages[0], "unable to connect to MySQL server on host '127.0.0.1', port 1, aborting...");
        assert_eq!(messages.len(), 4);
        assert_eq!(messages[3], "Thread initialization failed!");
        let newer = lines(&failure(FailedAction::Connect), Command::Run, &mysql(Compat::V1_1));
        assert_eq!(newer[3], "Threads initialization failed!");
        let messages = lines(&failure(FailedAction::Prepare), Command::Run, &mysql(Compat::V1_0));
        assert_eq!(messages[1], "MySQL error: 1146 \"Table 'sbtest.sbtest1' doesn't exist\"");
        let messages = lines(&failure(FailedAction::Execute), Command::Run, &mysql(Compat::V1_0));
        assert_eq!(
            messages[1],
            "`thread_run' function failed: SQL error, errno = 1146, state = '42S02': Table 'sbtest.sbtest1' doesn't exist"
        );
        let messages = lines(&failure(FailedAction::Query), Command::Prepare, &mysql(Compat::V1_0));
        assert!(messages[1].starts_with("`sysbench.cmdline.call_command' function failed: SQL error"));
    }

    #[test]
    fn localhost_is_named_as_in_the_options() {
        let mut failure = failure(FailedAction::Connect);
        let mut first_line = |options: &[(&str, &str)]| {
            let settings = settings(options, Compat::V1_0);
            failure.server.as_deref_mut().unwrap().endpoint = Some(settings.servers[0].0.clone());
            lines(&failure, Command::Run, &settings).remove(0)
        };
        let on = |place: &str| format!("unable to connect to MySQL server on {place}, aborting...");
        assert_eq!(first_line(&[("mysql-port", "3307")]), on("host 'localhost', port 3307"));
        let path = "/run/mysqld/mysqld.sock";
        assert_eq!(first_line(&[("mysql-socket", path)]), on(&format!("socket '{path}'")));
    }

    #[test]
    fn pgsql_failures_have_libpq_lines() {
        let messages = |action, code| {
            let mut failure = failure(action);
            let server = failure.server.as_deref_mut().unwrap();
            (server.code, server.message) = (code, "relation does not exist".into());
            lines(&failure, Command::Run, &settings(&[("db-driver", "pgsql")], Compat::V1_0))
        };
        let query = messages(FailedAction::Query, 0);
        assert_eq!(query[..2], ["PQexec() failed: 7 relation does not exist", "failed query was: SELECT 1"]);
        assert!(query[2].ends_with("errno = 0, state = '42S02': relation does not exist"), "{query:?}");
        let connect = messages(FailedAction::Connect, 0);
        assert_eq!(connect[0], "Connection to database failed: relation does not exist\n");
        let lost = messages(FailedAction::Execute, 2013);
        assert_eq!(lost[0], "PQexecPrepared() failed: 7 server closed the connection unexpectedly");
    }
}
