//! Reads the options of the pgsql driver: server, account, encryption, and the errors after which an event restarts.
//!
//! The driver passes its options to libpq, so they have the same meaning as there. The caller reads libpq's environment
//! variables and files.

use crate::option_definition::{Kind, OptionDefinition};
use dbdyno_schema::plan::{Endpoint, ErrorCode, Retry, Target, Tls, TlsMode};

use super::driver::connect_timeout_us;
use super::error::OptionError;
use super::registry::Registry;

/// The directory of the unix socket that PostgreSQL's clients use by default.
const SOCKET_DIR: &str = "/var/run/postgresql";

/// Options, each with the environment variable that libpq reads if the option has no value.
const ENV_VARS: [(&str, &str); 5] = [
    ("pgsql-host", "PGHOST"),
    ("pgsql-port", "PGPORT"),
    ("pgsql-user", "PGUSER"),
    ("pgsql-db", "PGDATABASE"),
    ("pgsql-sslmode", "PGSSLMODE"),
];

/// Gives each option that has no value that of libpq's environment variable. `env_var` returns a variable's value.
pub fn apply_env_vars(registry: &mut Registry, env_var: impl Fn(&str) -> Option<String>) {
    for (option, name) in ENV_VARS {
        let Some(value) = env_var(name).filter(|_| registry.string(option).is_none()) else { continue };
        // This declares the option instead of setting it, because sysbench 1.0 has no --pgsql-sslmode.
        registry.declare(OptionDefinition::new(option, Kind::String, Some(&value), ""));
    }
}

pub(super) fn target(registry: &Registry) -> Result<Target, OptionError> {
    let string = |name: &str| registry.string(name).unwrap_or_default().to_owned();
    let user = string("pgsql-user");
    let database = Some(string("pgsql-db")).filter(|name| !name.is_empty()).unwrap_or_else(|| user.clone());
    Ok(Target::Postgresql {
        endpoints: vec![endpoint(registry)?],
        user,
        password: None,
        database,
        connect_timeout_us: connect_timeout_us(registry)?,
        tls: Tls { mode: mode(registry)?, ..Tls::default() },
        allow_clear_text_password: false,
    })
}

fn connection_error(text: &str) -> OptionError {
    OptionError::Fatal(format!("Connection to database failed: {text}\n"))
}

fn endpoint(registry: &Registry) -> Result<Endpoint, OptionError> {
    let number = registry.int("pgsql-port")?;
    let port = match number {
        0 if registry.string("pgsql-port").is_none() => 5432,
        1..=65_535 => number as u16,
        _ => return Err(connection_error(&format!("invalid port number: \"{number}\""))),
    };
    Ok(match registry.string("pgsql-host").unwrap_or(SOCKET_DIR) {
        folder if folder.starts_with('/') => Endpoint::Unix { path: format!("{folder}/.s.PGSQL.{port}") },
        host => Endpoint::Tcp { host: host.to_owned(), port },
    })
}

/// The TLS mode. The default is libpq's, `prefer`; sysbench 1.0 has no option for it.
fn mode(registry: &Registry) -> Result<TlsMode, OptionError> {
    let mode = registry.string("pgsql-sslmode").unwrap_or("prefer");
    Ok(match mode {
        // With `allow` libpq encrypts only if the server refuses plain connections. dbdyno does not try a second time.
        "disable" | "allow" => TlsMode::Disabled,
        "prefer" => TlsMode::Preferred,
        "require" => TlsMode::Required,
        "verify-ca" => TlsMode::VerifyCa,
        "verify-full" => TlsMode::VerifyIdentity,
        _ => return Err(connection_error(&format!("invalid sslmode value: \"{mode}\""))),
    })
}

/// The errors after which an event restarts. The driver first sends a ROLLBACK, which is not among the counted queries.
pub(super) fn retry(registry: &Registry) -> Result<Retry, OptionError> {
    let listed = registry.list("db-ignore-errors");
    let all = listed.iter().any(|code| code == "all");
    let parse_state = |text: &String| {
        let is_state =
            text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        is_state.then(|| ErrorCode::State(text.clone())).ok_or_else(|| {
            OptionError::Fatal(format!(
                "Invalid value for --db-ignore-errors: '{text}'; PostgreSQL's errors are SQLSTATEs such as 40P01"
            ))
        })
    };
    let codes = if listed.is_empty() {
        Retry::postgresql_codes().into()
    } else {
        listed.iter().filter(|code| *code != "all").map(parse_state).collect::<Result<_, _>>()?
    };
    Ok(Retry { codes, all, rollback: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compat;

    fn registry(options: &[(&str, &str)]) -> Registry {
        crate::testing::registry(options, Compat::V1_1)
    }

    #[test]
    fn hosts_and_socket_directories() {
        let endpoint_of = |options: &[(&str, &str)]| endpoint(&registry(options)).unwrap();
        assert_eq!(endpoint_of(&[]), Endpoint::Tcp { host: "localhost".into(), port: 5432 });
        let unix = |path: &str| Endpoint::Unix { path: path.into() };
        assert_eq!(endpoint_of(&[("pgsql-host", "/tmp"), ("pgsql-port", "7")]), unix("/tmp/.s.PGSQL.7"));
        assert_eq!(endpoint_of(&[("pgsql-host", "")]), unix("/var/run/postgresql/.s.PGSQL.5432"));
        assert!(endpoint(&registry(&[("pgsql-port", "70000")])).is_err());
    }

    #[test]
    fn tls_modes_match_libpq() {
        let given = |given: &str| mode(&registry(&[("pgsql-sslmode", given)]));
        assert_eq!(given("verify-full"), Ok(TlsMode::VerifyIdentity));
        assert_eq!(given(""), Ok(TlsMode::Preferred));
        assert_eq!(mode(&Registry::new(Compat::V1_0)), Ok(TlsMode::Preferred));
        assert!(given("on").is_err());
    }

    #[test]
    fn env_vars_apply_to_empty_options() {
        let env_var = |name: &str| match name {
            "PGHOST" => Some("/tmp".to_owned()),
            "PGUSER" => Some("them".to_owned()),
            "PGSSLMODE" => Some("require".to_owned()),
            _ => None,
        };
        let mut given = Registry::new(Compat::V1_0);
        given.set("pgsql-host", Some("")).unwrap();
        apply_env_vars(&mut given, env_var);
        assert_eq!(endpoint(&given).unwrap(), Endpoint::Unix { path: "/tmp/.s.PGSQL.5432".into() });
        assert_eq!(given.string("pgsql-user"), Some("sbtest"), "the option's default has precedence");
        assert_eq!(mode(&given), Ok(TlsMode::Required));
        let mut newer = registry(&[("pgsql-user", "")]);
        apply_env_vars(&mut newer, env_var);
        assert_eq!((newer.string("pgsql-user"), mode(&newer)), (Some("them"), Ok(TlsMode::Preferred)));
    }

    #[test]
    fn ignored_errors_are_sqlstates() {
        let codes = |given: &str| {
            retry(&registry(&[("db-ignore-errors", given)])).map(|retry| (retry.codes, retry.all))
        };
        assert_eq!(codes("").unwrap().0.len(), 3);
        assert_eq!(codes("40001,all").unwrap(), (vec![ErrorCode::State("40001".into())], true));
        assert!(codes("1213").is_err());
    }
}
