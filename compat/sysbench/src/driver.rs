//! Through which client a database is spoken to, and where its servers are.

use dbdyno_schema::plan::Endpoint;

use super::refused::Refused;
use super::registry::Registry;

/// Where MySQL's own clients look for a server on this machine.
pub(super) const SOCKET: &str = "/run/mysqld/mysqld.sock";

/// Through which client a database is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// MySQL and MariaDB.
    Mysql,
    /// PostgreSQL.
    Pgsql,
}

/// The driver that `--db-driver` names.
///
/// # Errors
/// There is none of that name.
pub fn driver(registry: &Registry) -> Result<Driver, Refused> {
    match registry.string("db-driver") {
        Some("mysql") => Ok(Driver::Mysql),
        Some("pgsql") => Ok(Driver::Pgsql),
        None => Err(Refused::Fatal(
            "Multiple DB drivers are available. Use --db-driver=name to specify which one to use".into(),
        )),
        Some(other) => Err(Refused::Fatal(format!("invalid database driver name: '{other}'"))),
    }
}

/// Within how many seconds all users must be ready: 1.1 lets one say it, 1.0 waits for 30 s.
pub(super) fn init_timeout_s(registry: &Registry) -> Result<u64, Refused> {
    let name = "thread-init-timeout";
    match registry.int(name)? {
        0 if registry.string(name).is_none() => Ok(30),
        seconds if seconds > 0 => Ok(seconds as u64),
        seconds => Err(Refused::Fatal(format!("Invalid value for --{name}: {seconds}.\n"))),
    }
}

/// How long a user may take to get a connection. A little more than a run waits for all, so that a run says so.
pub(super) fn connect_timeout_us(registry: &Registry) -> Result<u64, Refused> {
    Ok((init_timeout_s(registry)? + 1) * 1_000_000)
}

/// Where the driver looks for MySQL's servers, each with the words that its messages have for it: sockets in turn, or hosts
/// and ports in turn, the ports changing fastest. The name localhost is the machine's socket, as MySQL's own clients have it,
/// and is told with the port that was given.
///
/// # Errors
/// A port that is none, or nowhere to look.
pub fn places(registry: &Registry) -> Result<Vec<(Endpoint, String)>, Refused> {
    let sockets = registry.list("mysql-socket");
    if !sockets.is_empty() {
        let at = |path: &String| (Endpoint::Unix { path: path.clone() }, format!("socket '{path}'"));
        return Ok(sockets.iter().map(at).collect());
    }
    let read = |text: &String| {
        let said = || Refused::Usage(format!("Invalid value for the 'mysql-port' option: '{text}'"));
        text.parse::<u16>().ok().filter(|&port| port > 0).ok_or_else(said)
    };
    let ports = registry.list("mysql-port").iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let hosts = registry.list("mysql-host");
    for (what, nowhere) in [("hosts", hosts.is_empty()), ("ports", ports.is_empty())] {
        if nowhere {
            return Err(Refused::Fatal(format!("No MySQL {what} specified, aborting")));
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
