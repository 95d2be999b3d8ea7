//! Where the server is, and how to get in.

use dbdyno_schema::plan::{Compression, Endpoint, Target, Tls, TlsMode};

use super::commandline::Given;
use super::option_files::Files;
use super::{Flavour, Refused};

/// Where MySQL's own clients look for a server on this machine.
const SOCKET: &str = "/run/mysqld/mysqld.sock";
const PORT: u64 = 3306;
const SECOND_US: u64 = 1_000_000;

/// The target of the connections, without a schema and a password.
///
/// # Errors
/// Values that mean nothing, or ask for what the engine does not do; all at once.
pub fn target(given: &Given, files: &dyn Files) -> Result<Target, Refused> {
    let mut faults = Vec::new();
    let endpoint = endpoint(given, files, &mut faults);
    let tls = tls(given, &mut faults);
    let compression = compression(given, &mut faults);
    let refused = ["ssl-capath", "ssl-crl", "ssl-crlpath", "password2", "password3"];
    for name in refused.into_iter().filter(|name| given.has(name)) {
        let instead = match name {
            "ssl-capath" => "name one file of certificates by --ssl-ca",
            "ssl-crl" | "ssl-crlpath" => "no lists of revoked certificates are read; leave it out",
            _ => "an account with one password is wanted",
        };
        faults.push(format!("{}: --{name} is not served: {instead}", given.program));
    }
    if !faults.is_empty() {
        return Err(Refused::new(faults.join("\n")));
    }
    let account = given.text("user").map(str::to_owned);
    let own = || ["USER", "LOGNAME"].into_iter().find_map(|name| files.variable(name));
    Ok(Target::Mysql {
        endpoints: vec![endpoint],
        user: account.or_else(own).unwrap_or_else(|| "root".into()),
        password: None,
        database: String::new(),
        connect_timeout_us: given.number("connect-timeout").unwrap_or(10).saturating_mul(SECOND_US),
        tls,
        compression,
        server_public_key: given.text("server-public-key-path").map(Into::into),
        allow_public_key_retrieval: given.is_on("get-server-public-key"),
    })
}

/// A socket for the name localhost unless `--protocol` says otherwise, as MySQL's clients have it.
fn endpoint(given: &Given, files: &dyn Files, faults: &mut Vec<String>) -> Endpoint {
    let host = given.text("host").filter(|host| !host.is_empty()).unwrap_or("localhost");
    let by_socket = match given.text("protocol").map(str::to_ascii_uppercase).as_deref() {
        None => host == "localhost",
        Some("TCP") => false,
        Some("SOCKET") => true,
        Some(_) => {
            let other = given.text("protocol").unwrap_or_default();
            let ways = match given.flavour {
                Flavour::Mysql => "'TCP','SOCKET','PIPE','MEMORY'",
                Flavour::Mariadb => "'TCP','SOCKET','PIPE'",
            };
            faults.push(format!("Unknown option to protocol: {other}\nAlternatives are: {ways}"));
            false
        }
    };
    if by_socket {
        let path = given.text("socket").map(str::to_owned).or_else(|| files.variable("MYSQL_UNIX_PORT"));
        return Endpoint::Unix { path: path.unwrap_or_else(|| SOCKET.into()) };
    }
    let usual = || files.variable("MYSQL_TCP_PORT").and_then(|port| port.parse().ok()).unwrap_or(PORT);
    let port = given.number("port").filter(|&port| port > 0).unwrap_or_else(usual);
    let port = u16::try_from(port).unwrap_or_else(|_| {
        faults.push(format!("{}: --port is {port}; it must be between 1 and 65535", given.program));
        0
    });
    Endpoint::Tcp { host: host.into(), port }
}

fn tls(given: &Given, faults: &mut Vec<String>) -> Tls {
    let file = |name: &str| given.text(name).map(str::to_owned);
    let ca = file("ssl-ca");
    let mode = match given.flavour {
        Flavour::Mariadb if given.flag("ssl") == Some(false) => TlsMode::Disabled,
        Flavour::Mariadb if given.is_on("ssl-verify-server-cert") => TlsMode::VerifyIdentity,
        Flavour::Mariadb if ca.is_some() => TlsMode::VerifyCa,
        Flavour::Mariadb => TlsMode::Preferred,
        Flavour::Mysql => mode(given, ca.is_some(), faults),
    };
    // MySQL's clients take an authority that nobody asks for without a word.
    let ca = ca.filter(|_| mode.verifies());
    let own = mode != TlsMode::Disabled;
    Tls { mode, ca, certificate: file("ssl-cert").filter(|_| own), key: file("ssl-key").filter(|_| own) }
}

fn mode(given: &Given, has_ca: bool, faults: &mut Vec<String>) -> TlsMode {
    let Some(word) = given.text("ssl-mode") else {
        return if has_ca { TlsMode::VerifyCa } else { TlsMode::Preferred };
    };
    TlsMode::named(word).unwrap_or_else(|| {
        faults.push(format!(
            "Unknown option to ssl-mode: {word}\nAlternatives are: \
             'DISABLED','PREFERRED','REQUIRED','VERIFY_CA','VERIFY_IDENTITY'"
        ));
        TlsMode::Disabled
    })
}

fn compression(given: &Given, faults: &mut Vec<String>) -> Compression {
    let level = given.number("zstd-compression-level").unwrap_or(3).min(255) as u8;
    let list = given.text("compression-algorithms").unwrap_or_default();
    match list.split(',').next().map(str::trim) {
        Some("zstd") => Compression::Zstd { level },
        Some("zlib") => Compression::Zlib,
        Some("uncompressed") => Compression::None,
        Some("") | None if given.is_on("compress") => Compression::Zlib,
        Some("") | None => Compression::None,
        Some(other) => {
            let program = &given.program;
            faults.push(format!(
                "{program}: --compression-algorithms: '{other}' is none; it may be zstd, zlib or uncompressed"
            ));
            Compression::None
        }
    }
}
