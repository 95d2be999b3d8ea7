//! The connector of an order's target, whatever its protocol.

use std::time::Duration;

use dbdyno_schema::plan::{Endpoint, Target};
use dbdyno_wire::Address;
use dbdyno_wire::mysql::MysqlConnector;
use dbdyno_wire::null::NullConnector;
use dbdyno_wire::postgres::PostgresConnector;

use crate::Order;

fn address(endpoint: &Endpoint) -> Address {
    match endpoint {
        Endpoint::Tcp { host, port } => Address::Tcp(host.clone(), *port),
        Endpoint::Unix { path } => Address::Unix(path.into()),
    }
}

/// A connector of one of the protocols.
pub enum AnyConnector {
    /// MySQL and MariaDB.
    Mysql(MysqlConnector),
    /// PostgreSQL.
    Postgres(PostgresConnector),
    /// Answers from memory.
    Null(NullConnector),
}

/// The connector of an order's target.
pub fn connector(Order { plan, options, secrets }: &Order) -> AnyConnector {
    match &plan.target {
        Target::Mysql {
            endpoints,
            user,
            database,
            connect_timeout_us,
            compression,
            allow_public_key_retrieval,
            ..
        } => AnyConnector::Mysql(MysqlConnector {
            addresses: endpoints.iter().map(address).collect(),
            user: user.clone(),
            password: secrets.password.clone(),
            database: database.clone(),
            timeout: Duration::from_micros(*connect_timeout_us),
            local_data: false,
            multi_statements: options.multi_statements,
            sampled: 0,
            tls: secrets.tls.clone(),
            compression: *compression,
            server_public_key: secrets.server_public_key.clone(),
            allow_public_key_retrieval: *allow_public_key_retrieval,
        }),
        Target::Postgresql { endpoints, user, database, connect_timeout_us, .. } => {
            AnyConnector::Postgres(PostgresConnector {
                addresses: endpoints.iter().map(address).collect(),
                user: user.clone(),
                password: secrets.password.clone(),
                database: database.clone(),
                timeout: Duration::from_micros(*connect_timeout_us),
                sampled: 0,
                tls: secrets.tls.clone(),
            })
        }
        Target::Null { answer_us } => AnyConnector::Null(NullConnector {
            answer: Duration::from_micros(*answer_us),
            rows: plan.workload.options.table_size,
            empty_answers: options.empty_answers,
        }),
    }
}
