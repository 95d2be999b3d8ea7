//! Cancels the statements that servers still execute for a command that ends early. Without this, a server would finish
//! them, because it notices a closed connection only when it sends an answer.

use std::time::Duration;

use dbdyno_wire::Connector;
use tokio::runtime::Builder;
use tokio::task::{JoinSet, LocalSet};

use crate::RunSpec;
use crate::connector::{AnyConnector, connector};

/// Maximum time of the login of the connection that cancels.
const LOGIN_MAX: Duration = Duration::from_secs(1);

/// Cancels the statements of all sessions that `spec` has opened and not closed, within `limit`.
pub fn cancel_statements(spec: &RunSpec, limit: Duration) {
    match connector(spec) {
        AnyConnector::Mysql(mut connector) => {
            connector.options.timeout = connector.options.timeout.min(LOGIN_MAX);
            cancel(&connector, spec, limit);
        }
        AnyConnector::Postgres(mut connector) => {
            connector.options.timeout = connector.options.timeout.min(LOGIN_MAX);
            cancel(&connector, spec, limit);
        }
        AnyConnector::Null(_) => {}
    }
}

fn cancel(connector: &impl Connector, spec: &RunSpec, limit: Duration) {
    let sessions = spec.open_sessions.by_address(spec.plan.target.endpoints().len());
    // Without file descriptors for an event loop there is no connection either.
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
    let all = async {
        let mut servers = JoinSet::new();
        for (number, sessions) in sessions {
            let connector = connector.clone();
            servers.spawn_local(async move { connector.cancel(number, sessions).await });
        }
        while servers.join_next().await.is_some() {}
    };
    LocalSet::new().block_on(&runtime, async { drop(tokio::time::timeout(limit, all).await) });
}
