//! The users of a worker that have lost their connection and could not reopen it so far.

use std::collections::BTreeMap;

use dbdyno_load::Nanos;
use dbdyno_schema::record::{EndReason, Warning};
use dbdyno_wire::WireError;

use crate::control::CoordinatorLink;
use crate::failure;

/// Code of the warning that some connections were lost for good.
pub const SERVER_GONE: &str = "server-gone";

/// The users of a worker without a connection.
#[derive(Default)]
pub(crate) struct LostConnections {
    /// When each of them lost its connection, by its number on the worker.
    since: BTreeMap<usize, Nanos>,
    /// The error of the last attempt to open a connection.
    last_error: Option<WireError>,
}

impl LostConnections {
    /// Records that `user`, which lost its connection at `since`, could not open a new one.
    pub(crate) fn add(&mut self, user: usize, since: Nanos, error: &WireError) {
        self.since.entry(user).or_insert(since);
        self.last_error = Some(error.clone());
    }

    /// Records that `user` has opened a new connection.
    pub(crate) fn remove(&mut self, user: usize) {
        self.since.remove(&user);
    }

    /// Reports at the end of the run the connections that could not be opened again. The run fails if none of the worker's
    /// `users` has one. The measurement began at `measured_from`.
    pub(crate) fn report(&self, users: usize, measured_from: Nanos, coordinator: &CoordinatorLink) {
        let (Some(&since), Some(error)) = (self.since.values().min(), &self.last_error) else { return };
        let second = since.saturating_sub(measured_from) / 1_000_000_000;
        let counts_last_events = coordinator.finish.counts_last_events();
        let count = self.since.len();
        if count == users {
            // If events in progress count, the load has been measured up to its planned end.
            let reason = match counts_last_events {
                true => coordinator.finish.end_reason(),
                false => EndReason::ConnectionLost,
            };
            coordinator.fail_run(reason, failure::all_connections_lost(error, second));
        } else if counts_last_events {
            coordinator.warn(Warning {
                code: SERVER_GONE.into(),
                text: format!(
                    "server gone since second {second} for {count} of {users} connections: {error}"
                ),
                fix: "look for the cause in the server's error log".into(),
            });
        }
    }
}
