//! Reads the options that select the database driver and its servers.

use dbdyno_schema::plan::Endpoint;

use super::error::OptionError;
use super::registry::Registry;

/// The default socket of MySQL's clients.
pub const SOCKET: &str = "/run/mysqld/mysqld.sock";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    Mysql,
    Pgsql,
}

/// The driver that `--db-driver` names.
///
/// # Errors
/// No driver has that name.
pub fn driver(registry: &Registry) -> Result<Driver, OptionError> {
    match registry.string("db-driver") {
        Some("mysql") => Ok(Driver::Mysql),
        Some("pgsql") => Ok(Driver::Pgsql),
        None => Err(OptionError::Fatal(
            "Multiple DB drivers are available. Use --db-driver=name to specify which one to use".into(),
        )),
        Some(other) => Err(OptionError::Fatal(format!("invalid database driver name: '{other}'"))),
    }
}

/// Seconds within which all users must be ready: an option in 1.1, fixed at 30 s in 1.0.
pub(super) fn init_timeout_s(registry: &Registry) -> Result<u64, OptionError> {
    let name = "thread-init-timeout";
    match registry.int(name)? {
        0 if registry.string(name).is_none() => Ok(30),
        seconds if seconds > 0 => Ok(seconds as u64),
        seconds => Err(OptionError::Fatal(format!("Invalid value for --{name}: {seconds}.\n"))),
    }
}

/// The time limit for opening a connection. It exceeds the time limit for all users to be ready, so that the run reports
/// the timeout.
pub(super) fn connect_timeout_us(registry: &Registry) -> Result<u64, OptionError> {
    Ok((init_timeout_s(registry)? + 1) * 1_000_000)
}

/// MySQL's servers, each with its name in the driver's messages: all sockets, or, without sockets, every host with
/// every port. As in MySQL's clients, localhost means the default socket; messages still show the port.
///
/// # Errors
/// An invalid port, or no host or port at all.
pub fn servers(registry: &Registry) -> Result<Vec<(Endpoint, String)>, OptionError> {
    let sockets = registry.list("mysql-socket");
    if !sockets.is_empty() {
        let at = |path: &String| (Endpoint::Unix { path: path.clone() }, format!("socket '{path}'"));
        return Ok(sockets.iter().map(at).collect());
    }
    let read = |text: &String| {
        let error = || OptionError::Usage(format!("Invalid value for the 'mysql-port' option: '{text}'"));
        text.parse::<u16>().ok().filter(|&port| port > 0).ok_or_else(error)
    };
    let ports = registry.list("mysql-port").iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let hosts = registry.list("mysql-host");
    for (what, is_empty) in [("hosts", hosts.is_empty()), ("ports", ports.is_empty())] {
        if is_empty {
            return Err(OptionError::Fatal(format!("No MySQL {what} specified, aborting")));
        }
    }
    let at = |host: &String, port: u16| {
        let endpoint = match host.as_str() {
            "localhost" | "" => Endpoint::Unix { path: SOCKET.into() },
            _ => Endpoint::Tcp { host: host.clone(), port },
        };
        (endpoint, format!("host '{host}', port {port}"))
    };
    Ok(hosts.iter().flat_map(|host| ports.iter().map(move |&port| at(host, port))).collect())
}
