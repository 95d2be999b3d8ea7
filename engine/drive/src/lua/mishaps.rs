//! What becomes of errors: counted, logged in sysbench's words, and for some of them a connection opened anew.

use std::time::Duration;

use dbdyno_script::sql::{Answer, ConnectionId, SqlError, StatementId};
use dbdyno_script::{Context, Level};
use dbdyno_wire::WireError;
use dbdyno_wire::scripted::ScriptedConnector;

use super::broker::{Broker, Line, Place};
use crate::client_words;

/// Error "this command is not supported in the prepared statement protocol yet".
pub(super) const ER_UNSUPPORTED_PS: u16 = 1295;

/// Errors of the client library after which, where they are to be ignored, the connection is opened anew.
const LOST: [u16; 4] = [2006, 2011, 2013, 2055];

/// Between attempts to open a lost connection.
const PAUSE: Duration = Duration::from_millis(1);

/// Most bytes of a statement that a message tells. A bulk insert has half a MiB.
const TOLD_BYTES: usize = 4096;

/// With which call a statement was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A prepared one.
    Execute,
    /// Text.
    Query,
}

impl Said {
    fn words(self) -> &'static str {
        match self {
            Said::Execute => "mysql_stmt_execute()",
            Said::Query => "mysql_drv_query()",
        }
    }
}

impl<C: ScriptedConnector> Broker<C> {
    /// A statement has failed.
    pub(super) async fn mishap(
        &self,
        context: &Context,
        connection: ConnectionId,
        error: WireError,
        said: Said,
        text: impl FnOnce() -> Vec<u8>,
        hold: bool,
    ) -> Answer {
        let (code, state, message) = client_words::told(&error);
        let database = &context.program.database;
        let ignorable = database.ignore_all || database.ignored.contains(&code);
        self.count_error(context, &code.to_string());
        let lost = matches!(error, WireError::Lost(_)) || LOST.contains(&code);
        if !ignorable {
            let text = text();
            let text = String::from_utf8_lossy(&text[..text.len().min(TOLD_BYTES)]);
            self.shared.front.log(
                Level::Fatal,
                &format!("{} returned error {code} ({message}) for query '{text}'", said.words()),
            );
        } else {
            self.shared.front.log(Level::Debug, &format!("Ignoring error {code} {message}, "));
            if lost && LOST.contains(&code) {
                self.reopen(context, connection, hold).await;
            }
        }
        context.sql.failed(connection, SqlError { code, state, message, ignorable })
    }

    /// Opens a lost connection again and again, until it stands or the run is over.
    async fn reopen(&self, context: &Context, connection: ConnectionId, hold: bool) {
        let Some(lost) = self.take(connection, false) else { return };
        let number = lost.number;
        drop(lost);
        context.sql.opened(connection, false);
        loop {
            let opened = match self.place() {
                Some(Place { desk, .. }) if !hold => match desk.unless_over(self.open(number, false)).await {
                    Some(opened) => opened,
                    None => return,
                },
                _ => self.open(number, hold).await,
            };
            if let Ok(opened) = opened {
                self.put(connection, Line { connection: opened, number }, false);
                context.sql.opened(connection, true);
                self.count_reconnect(context);
                return;
            }
            if hold {
                if self.place().is_none_or(|place| place.desk.is_over()) {
                    return;
                }
                std::thread::sleep(PAUSE);
            } else {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    pub(super) fn not_connected(&self, error: &WireError, number: u64) -> Answer {
        use dbdyno_door::plan::Endpoint;
        let endpoint = client_words::endpoint(&self.shared.plan.target, number);
        let failure = client_words::connecting(error, endpoint);
        let place = match endpoint {
            Some(Endpoint::Tcp { host, port }) => format!("host '{host}', port {port}"),
            Some(Endpoint::Unix { path }) => format!("socket '{path}'"),
            None => "nobody".into(),
        };
        let log = |text: String| self.shared.front.log(Level::Fatal, &text);
        log(format!("unable to connect to MySQL server on {place}, aborting..."));
        log(format!("error {}: {}", failure.code, failure.message));
        Answer::Flag(false)
    }

    pub(super) fn not_prepared(
        &self,
        context: &Context,
        connection: ConnectionId,
        error: &WireError,
    ) -> Answer {
        let (code, state, message) = client_words::told(error);
        self.shared.front.log(Level::Fatal, "mysql_stmt_prepare() failed");
        self.shared.front.log(Level::Fatal, &format!("MySQL error: {code} \"{message}\""));
        let ignorable = context.program.database.ignored.contains(&code);
        context.sql.refused(connection, SqlError { code, state, message, ignorable })
    }

    /// An execution without its parameters.
    pub(super) fn unbound(
        &self,
        context: &Context,
        connection: ConnectionId,
        statement: StatementId,
    ) -> Answer {
        let text = context.sql.statement_text(statement);
        let text = String::from_utf8_lossy(&text);
        self.count_error(context, "0");
        let log = |text: &str| self.shared.front.log(Level::Fatal, text);
        if context.sql.has_parameters(statement) {
            log("Wrong number of parameters to mysql_stmt_bind_param");
        }
        log(&format!("mysql_stmt_execute() returned error 0 () for query '{text}'"));
        let state = "00000".to_owned();
        context.sql.failed(connection, SqlError { state, ..SqlError::default() })
    }

    /// A connection that could not be opened again.
    pub(super) fn closed(&self, context: &Context, connection: ConnectionId) -> Answer {
        let message = "Server has gone away".to_owned();
        let error = SqlError { code: 2006, state: "HY000".into(), message, ignorable: false };
        context.sql.failed(connection, error)
    }
}
