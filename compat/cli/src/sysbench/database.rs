//! What the database options come to: a plan, and the password beside it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use dbdyno_runner::Order;
use dbdyno_schema::plan::{Target, TlsMode};
use dbdyno_sysbench::commandline::CommandLine;
use dbdyno_sysbench::driver::Driver;
use dbdyno_sysbench::plan::{self, Played};
use dbdyno_sysbench::refused::Refused;
use dbdyno_sysbench::settings::Settings;
use dbdyno_sysbench::{Compat, faults, pgsql};

use dbdyno_cli::input;

/// Why there is no plan.
pub(super) enum Unusable {
    /// A FATAL line: the original says it when it starts its database driver.
    Driver(String),
    /// A line for standard error.
    Other(String),
    /// Lines for standard error: the engine has no such plan.
    Plan(String),
}

/// The order of a native workload or of a script.
pub(super) fn plan(played: Played<'_>, line: &CommandLine, settings: &Settings) -> Result<Order, Unusable> {
    let mut registry = Cow::Borrowed(&line.registry);
    if settings.driver == Driver::Pgsql {
        pgsql::take_variables(registry.to_mut(), env);
    }
    let made = plan::plan(played, &registry, settings, seed(settings), workers(settings));
    let mut plan = made.map_err(|refused| match refused {
        Refused::Fatal(said) => Unusable::Driver(said),
        Refused::Usage(said) | Refused::Plain(said) => Unusable::Other(said),
    })?;
    match settings.driver {
        Driver::Mysql if settings.compat == Compat::V10 => files_here(&mut plan.target, Path::new(".")),
        Driver::Mysql => {}
        Driver::Pgsql => libpq_files(&mut plan.target),
    }
    let by_option = |fault: &str| faults::of_options(fault, settings.driver == Driver::Pgsql);
    let found = plan.faults();
    if !found.is_empty() {
        let told: Vec<_> = found.iter().map(|fault| by_option(fault)).collect();
        return Err(Unusable::Plan(told.join("\n")));
    }
    let mut secrets = input::secrets(&plan).map_err(|fault| Unusable::Other(by_option(&fault)))?;
    secrets.password = match settings.driver {
        Driver::Mysql => line.registry.string("mysql-password").map(Into::into),
        // As libpq has it: what is not given may stand in its variable.
        Driver::Pgsql => line.registry.string("pgsql-password").map(Into::into).or(env("PGPASSWORD")),
    }
    .unwrap_or_default();
    Ok(Order { options: plan::options(&plan, &registry), ..Order::new(plan, secrets) })
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The certificates that libpq reads where nobody names any: those of its variables, else those in ~/.postgresql.
fn libpq_files(target: &mut Target) {
    let Target::Postgresql { tls, .. } = target else { return };
    let found = |variable: &str, name: &str| {
        let usual = || Some(Path::new(&env("HOME")?).join(".postgresql").join(name));
        let path = env(variable).map(PathBuf::from).or_else(usual)?;
        path.is_file().then(|| path.to_string_lossy().into_owned())
    };
    if tls.mode.verifies() {
        tls.ca = found("PGSSLROOTCERT", "root.crt");
    }
    if tls.mode != TlsMode::Disabled {
        let own = (found("PGSSLCERT", "postgresql.crt"), found("PGSSLKEY", "postgresql.key"));
        if let (Some(certificate), Some(key)) = own {
            (tls.certificate, tls.key) = (Some(certificate), Some(key));
        }
    }
}

/// The certificates that `--mysql-ssl` of 1.0 names without asking: those of these names in the working directory.
fn files_here(target: &mut Target, folder: &Path) {
    let Target::Mysql { tls, .. } = target else { return };
    let found = |name: &str| {
        let path = folder.join(name);
        path.is_file().then(|| path.to_string_lossy().into_owned())
    };
    if tls.mode == TlsMode::Disabled {
        return;
    }
    if let Some(authorities) = found("cacert.pem") {
        (tls.mode, tls.ca) = (TlsMode::VerifyCa, Some(authorities));
    }
    if let (Some(certificate), Some(key)) = (found("client-cert.pem"), found("client-key.pem")) {
        (tls.certificate, tls.key) = (Some(certificate), Some(key));
    }
}

/// `--rand-seed`, or the time of day.
pub(super) fn seed(settings: &Settings) -> u64 {
    if settings.seed != 0 {
        return u64::from(settings.seed as u32);
    }
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64)
}

/// Event loops. The server is often on the same machine, and one loop plays the users of several CPUs of it.
fn workers(settings: &Settings) -> u32 {
    if settings.workers > 0 {
        return settings.workers;
    }
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    cpus.div_ceil(4).clamp(1, 64).min(settings.threads)
}
