//! With whom: the protocols of the databases, as far as a load generator needs them.
//!
//! Every protocol is split in two: messages are functions over bytes without sockets ([`mysql::message`],
//! [`mysql::skim`], [`postgres::message`], [`postgres::skim`]), and one thin socket layer ([`socket`]) moves the bytes. Result sets are skimmed, not read:
//! rows and bytes are counted, and nothing is stored unless [`Connection::rows`] asks for it.

// The sockets and the clock of a time limit live here (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods)]

mod address;
mod blocking_wait;
pub mod bulk;
mod compressed;
mod connection;
pub mod delay;
mod error;
pub mod mysql;
pub mod null;
mod parameter;
pub mod postgres;
mod rows;
pub mod scripted;
mod socket;
pub mod tls;
mod trouble;
mod words;

pub use self::address::Address;
pub use self::connection::{Connection, Connector, Outcome, TextRow, Value};
pub use self::error::WireError;
