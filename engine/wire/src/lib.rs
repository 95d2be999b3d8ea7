//! With whom: the protocols of the databases, as far as a load generator needs them.
//!
//! Every protocol has two parts: messages are functions over bytes without sockets ([`mysql::message`], [`mysql::skim`],
//! [`postgres::message`], [`postgres::skim`]), and one thin socket layer ([`socket`]) moves the bytes. Result sets are
//! skimmed: the client counts rows and bytes, and stores nothing unless [`Connection::rows`] asks for it.

// The sockets and the clock of a time limit live here (ARCHITECTURE.md, rule 2).
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
pub use self::session_options::SessionOptions;
