//! Database wire protocols, as far as a load generator needs them.
//!
//! Functions over bytes, without sockets, write and read the messages ([`mysql::message`], [`mysql::skim`],
//! [`postgres::message`], [`postgres::skim`]). One thin layer ([`socket`]) transfers the bytes. The client skims result
//! sets: it counts their rows and bytes, and stores no row unless the caller requests the rows.

// This crate owns the sockets and the clock of time limits (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods)]

mod address;
mod blocking;
pub mod bulk;
mod compressed;
mod connection;
pub mod delay;
mod der;
mod error;
mod login_socket;
pub mod mysql;
pub mod null;
mod open_sessions;
pub mod placeholders;
pub mod postgres;
mod rows;
pub mod scripted;
mod server_message;
mod session_options;
mod socket;
pub mod tls;

pub use self::address::Address;
pub use self::connection::{Connection, Connector, Outcome, TextRow, Value};
pub use self::error::WireError;
pub use self::open_sessions::{OpenSessions, SessionKey};
pub use self::session_options::SessionOptions;
