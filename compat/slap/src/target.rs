//! Reads the address of the server, the account, and the settings of connections.

use dbdyno_schema::plan::{Compression, Endpoint, Target, Tls, TlsMode};
use dbdyno_sysbench::driver::SOCKET;

use super::commandline::OptionValues;
use super::option_files::Files;
use super::{Flavour, UsageError};

const PORT: u64 = 3306;
const SECOND_US: u64 = 1_000_000;

/// Reads the target, without the schema and the password.
///
/// # Errors
/// One line for each invalid value and each option that the engine does not support.
pub fn read(values: &OptionValues, files: &dyn Files) -> Result<Target, UsageError> {
    let mut problems = Vec::new();
    let endpoint = read_endpoint(values, files, &mut problems);
    let tls = read_tls(values, &mut problems);
    let compression = read_compression(values, &mut problems);
    let unsupported = ["ssl-capath", "ssl-crl", "ssl-crlpath", "password2", "password3"];
    for name in unsupported.into_iter().filter(|name| values.has(name)) {
        let fix = match name {
            "ssl-capath" => "name a file of certificates with --ssl-ca",
            "ssl-crl" | "ssl-crlpath" => "revocation lists are not read; omit it",
            _ => "use an account with one password",
        };
        problems.push(format!("{}: --{name} is not supported: {fix}", values.program));
    }
    if !problems.is_empty() {
        return Err(UsageError::new(problems.join("\n")));
    }
    let account = values.text("user").map(str::to_owned);
    let system_user = || ["USER", "LOGNAME"].into_iter().find_map(|name| files.env_var(name));
    Ok(Target::Mysql {
        endpoints: vec![endpoint],
        user: account.or_else(system_user).unwrap_or_else(|| "root".into()),
        password: None,
        database: String::new(),
        connect_timeout_us: values.number("connect-timeout").unwrap_or(10).saturating_mul(SECOND_US),
        tls,
        compression,
        server_public_key: values.text("server-public-key-path").map(Into::into),
        allow_public_key_retrieval: values.is_on("get-server-public-key"),
    })
}

/// The server's address. As in MySQL's clients, localhost means the socket unless `--protocol` is TCP.
fn read_endpoint(values: &OptionValues, files: &dyn Files, problems: &mut Vec<String>) -> Endpoint {
    let host = values.text("host").filter(|host| !host.is_empty()).unwrap_or("localhost");
    let uses_socket = match values.text("protocol").map(str::to_ascii_uppercase).as_deref() {
        None => host == "localhost",
        Some("TCP") => false,
        Some("SOCKET") => true,
        Some(_) => {
            let other = values.text("protocol").unwrap_or_default();
            let alternatives = match values.flavour {
                Flavour::Mysql => "'TCP','SOCKET','PIPE','MEMORY'",
                Flavour::Mariadb => "'TCP','SOCKET','PIPE'",
            };
            problems.push(format!("Unknown option to protocol: {other}\nAlternatives are: {alternatives}"));
            false
        }
    };
    if uses_socket {
        let path = values.text("socket").map(str::to_owned).or_else(|| files.env_var("MYSQL_UNIX_PORT"));
        return Endpoint::Unix { path: path.unwrap_or_else(|| SOCKET.into()) };
    }
    let default = || files.env_var("MYSQL_TCP_PORT").and_then(|port| port.parse().ok()).unwrap_or(PORT);
    let port = values.number("port").filter(|&port| port > 0).unwrap_or_else(default);
    let port = u16::try_from(port).unwrap_or_else(|_| {
        problems.push(format!("{}: --port is {port}; it must be between 1 and 65535", values.program));
        0
    });
    Endpoint::Tcp { host: host.into(), port }
}

fn read_tls(values: &OptionValues, problems: &mut Vec<String>) -> Tls {
    let file = |name: &str| values.text(name).map(str::to_owned);
    let ca = file("ssl-ca");
    let mode = match values.flavour {
        Flavour::Mariadb if values.flag("ssl") == Some(false) => TlsMode::Disabled,
        Flavour::Mariadb if values.is_on("ssl-verify-server-cert") => TlsMode::VerifyIdentity,
        Flavour::Mariadb if ca.is_some() => TlsMode::VerifyCa,
        Flavour::Mariadb => TlsMode::Preferred,
        Flavour::Mysql => read_tls_mode(values, ca.is_some(), problems),
    };
    // Like MySQL's clients, ignore a CA file if the TLS mode does not use it.
    let ca = ca.filter(|_| mode.verifies());
    let encrypts = mode != TlsMode::Disabled;
    Tls {
        mode,
        ca,
        certificate: file("ssl-cert").filter(|_| encrypts),
        key: file("ssl-key").filter(|_| encrypts),
    }
}

fn read_tls_mode(values: &OptionValues, has_ca: bool, problems: &mut Vec<String>) -> TlsMode {
    let Some(name) = values.text("ssl-mode") else {
        return if has_ca { TlsMode::VerifyCa } else { TlsMode::Preferred };
    };
    TlsMode::from_mysql_name(name).unwrap_or_else(|| {
        problems.push(format!(
            "Unknown option to ssl-mode: {name}\nAlternatives are: \
             'DISABLED','PREFERRED','REQUIRED','VERIFY_CA','VERIFY_IDENTITY'"
        ));
        TlsMode::Disabled
    })
}

fn read_compression(values: &OptionValues, problems: &mut Vec<String>) -> Compression {
    let level = values.number("zstd-compression-level").unwrap_or(3).min(255) as u8;
    let list = values.text("compression-algorithms").unwrap_or_default();
    match list.split(',').next().map(str::trim) {
        Some("zstd") => Compression::Zstd { level },
        Some("zlib") => Compression::Zlib,
        Some("uncompressed") => Compression::None,
        Some("") | None if values.is_on("compress") => Compression::Zlib,
        Some("") | None => Compression::None,
        Some(other) => {
            let program = &values.program;
            problems.push(format!(
                "{program}: --compression-algorithms is '{other}'; it must be zstd, zlib or uncompressed"
            ));
            Compression::None
        }
    }
}
