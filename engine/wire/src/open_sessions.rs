//! The sessions that a process has opened and not closed, so that their statements can be cancelled when it ends early.
//!
//! A session is registered at its login and removed when it is closed in order. A connection that breaks or is dropped
//! stays registered, because the server may still execute its last statement.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What identifies a session in a request to cancel its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKey {
    /// MySQL and MariaDB: the connection id of the greeting.
    Mysql(u32),
    /// PostgreSQL: the process of the server, and its secret.
    Postgres {
        /// Process id.
        process: i32,
        /// The secret that the server sent for this session.
        secret: i32,
    },
}

/// The open sessions of a process. Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct OpenSessions(Arc<Mutex<Sessions>>);

#[derive(Debug, Default)]
struct Sessions {
    /// Sessions registered so far.
    registered: u64,
    /// Number of the connection, which selects the server's address, and key; by registration.
    open: HashMap<u64, (u64, SessionKey)>,
}

impl OpenSessions {
    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the session of connection `number`.
    pub(crate) fn register(&self, number: u64, key: SessionKey) -> Registration {
        let mut sessions = self.lock();
        sessions.registered += 1;
        let id = sessions.registered;
        sessions.open.insert(id, (number, key));
        Registration { sessions: self.clone(), id }
    }

    /// The open sessions, by number of the address of their server; there are `addresses` of them.
    pub fn by_address(&self, addresses: usize) -> BTreeMap<u64, Vec<SessionKey>> {
        let mut by_address = BTreeMap::<u64, Vec<SessionKey>>::new();
        for &(number, key) in self.lock().open.values() {
            by_address.entry(number % addresses.max(1) as u64).or_default().push(key);
        }
        by_address
    }
}

/// One registered session.
#[derive(Debug)]
pub(crate) struct Registration {
    sessions: OpenSessions,
    id: u64,
}

impl Registration {
    /// Removes a session that was closed in order.
    pub(crate) fn remove(&self) {
        self.sessions.lock().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_closed_sessions_are_removed() {
        let sessions = OpenSessions::default();
        let closed = sessions.register(0, SessionKey::Mysql(7));
        let dropped = sessions.register(1, SessionKey::Mysql(8));
        let _open = sessions.register(2, SessionKey::Mysql(9));
        closed.remove();
        drop((closed, dropped));
        let by_address = sessions.by_address(2);
        assert_eq!(by_address, [(0, vec![SessionKey::Mysql(9)]), (1, vec![SessionKey::Mysql(8)])].into());
    }
}
