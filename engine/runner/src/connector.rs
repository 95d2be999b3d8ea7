//! Selects the connector for a plan's target.

use std::time::Duration;

use dbdyno_schema::plan::{Endpoint, Target};
use dbdyno_wire::mysql::MysqlConnector;
use dbdyno_wire::null::NullConnector;
use dbdyno_wire::postgres::PostgresConnector;
use dbdyno_wire::{Address, SessionOptions};

use crate::RunSpec;

/// A connector for any of the protocols.
pub enum AnyConnector {
    /// MySQL and MariaDB.
    Mysql(MysqlConnector),
    /// PostgreSQL.
    Postgres(PostgresConnector),
    /// Without a server: returns results from memory.
    Null(NullConnector),
}

/// The connector, with its session options and secrets.
pub fn connector(spec @ RunSpec { plan, options, .. }: &RunSpec) -> AnyConnector {
    match &plan.target {
        Target::Mysql {
            user, database, connect_timeout_us, compression, allow_public_key_retrieval, ..
        } => AnyConnector::Mysql(MysqlConnector {
            options: session_options(spec, user, database, *connect_timeout_us),
            local_data: false,
            multi_statements: options.multi_statements,
            only_changed_rows: options.only_changed_rows,
            compression: *compression,
            server_public_key: spec.secrets.server_public_key.clone(),
            allow_public_key_retrieval: *allow_public_key_retrieval,
        }),
        Target::Postgresql { user, database, connect_timeout_us, allow_clear_text_password, .. } => {
            let options = session_options(spec, user, database, *connect_timeout_us);
            let allow_clear_text_password = *allow_clear_text_password;
            AnyConnector::Postgres(PostgresConnector { options, allow_clear_text_password })
        }
        Target::Null { answer_us } => AnyConnector::Null(NullConnector {
            answer: Duration::from_micros(*answer_us),
            rows: plan.workload.options.table_size,
            empty_answers: options.empty_answers,
        }),
    }
}

fn session_options(spec: &RunSpec, user: &str, database: &str, timeout_us: u64) -> SessionOptions {
    let address = |endpoint: &Endpoint| match endpoint {
        Endpoint::Tcp { host, port } => Address::Tcp(host.clone(), *port),
        Endpoint::Unix { path } => Address::Unix(path.into()),
    };
    SessionOptions {
        addresses: spec.plan.target.endpoints().iter().map(address).collect(),
        user: user.to_owned(),
        password: spec.secrets.password.clone(),
        database: database.to_owned(),
        timeout: Duration::from_micros(timeout_us),
        sampled_connections: 0,
        tls: spec.secrets.tls.clone(),
        open_sessions: spec.open_sessions.clone(),
    }
}
