//! Converts the database options into a plan and its secrets.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use dbdyno_runner::RunSpec;
use dbdyno_schema::plan::{Target, TlsMode};
use dbdyno_sysbench::commandline::CommandLine;
use dbdyno_sysbench::driver::Driver;
use dbdyno_sysbench::error::OptionError;
use dbdyno_sysbench::plan::{self, TestKind};
use dbdyno_sysbench::settings::Settings;
use dbdyno_sysbench::{Compat, pgsql, problems};

use crate::system::{env_var, event_loops};
use dbdyno_cli::input;

pub(super) enum PlanError {
    /// A message at level FATAL, which sysbench logs when it starts its database driver.
    Driver(String),
    /// A line for standard error.
    Other(String),
    /// Lines for standard error: errors in the plan.
    Plan(String),
}

pub(super) fn run_spec(
    kind: TestKind<'_>,
    command_line: &CommandLine,
    settings: &Settings,
) -> Result<RunSpec, PlanError> {
    let mut registry = Cow::Borrowed(&command_line.registry);
    if settings.driver == Driver::Pgsql {
        pgsql::apply_env_vars(registry.to_mut(), env_var);
    }
    let workers = event_loops(settings.workers);
    // The default number of event loops is at most the number of users.
    let workers = if settings.workers > 0 { workers } else { workers.min(settings.threads) };
    let plan =
        plan::plan(kind, &registry, settings, seed(command_line.command.as_deref(), settings), workers);
    let mut plan = plan.map_err(|error| match error {
        OptionError::Fatal(text) => PlanError::Driver(text),
        OptionError::Usage(text) | OptionError::Plain(text) => PlanError::Other(text),
    })?;
    match settings.driver {
        Driver::Mysql if settings.compat == Compat::V1_0 => set_mysql_files(&mut plan.target),
        Driver::Mysql => {}
        Driver::Pgsql => set_libpq_files(&mut plan.target),
    }
    let replace_plan_keys =
        |problem: &str| problems::replace_plan_keys(problem, settings.driver == Driver::Pgsql);
    let problems: Vec<_> = plan.problems().iter().map(|problem| replace_plan_keys(problem)).collect();
    if !problems.is_empty() {
        return Err(PlanError::Plan(problems.join("\n")));
    }
    let mut secrets =
        input::read_secrets(&plan).map_err(|problem| PlanError::Other(replace_plan_keys(&problem)))?;
    secrets.password = match settings.driver {
        Driver::Mysql => command_line.registry.string("mysql-password").map(Into::into),
        Driver::Pgsql => {
            command_line.registry.string("pgsql-password").map(Into::into).or(env_var("PGPASSWORD"))
        }
    }
    .unwrap_or_default();
    Ok(RunSpec { options: plan::options(&plan, &registry), ..RunSpec::new(plan, secrets) })
}

/// Sets the certificate files that libpq would use. Its environment variables name them; by default they are in
/// ~/.postgresql.
fn set_libpq_files(target: &mut Target) {
    let Target::Postgresql { tls, .. } = target else { return };
    let find = |name: &str, file: &str| {
        let default = || Some(Path::new(&env_var("HOME")?).join(".postgresql").join(file));
        path_of_existing_file(env_var(name).map(PathBuf::from).or_else(default)?)
    };
    if tls.mode.verifies() {
        tls.ca = find("PGSSLROOTCERT", "root.crt");
    }
    if tls.mode != TlsMode::Disabled {
        let client = (find("PGSSLCERT", "postgresql.crt"), find("PGSSLKEY", "postgresql.key"));
        if let (Some(certificate), Some(key)) = client {
            (tls.certificate, tls.key) = (Some(certificate), Some(key));
        }
    }
}

/// Sets the certificate files of `--mysql-ssl`: sysbench 1.0 reads files with fixed names from the working directory.
fn set_mysql_files(target: &mut Target) {
    let Target::Mysql { tls, .. } = target else { return };
    let find = |name: &str| path_of_existing_file(Path::new(".").join(name));
    if tls.mode == TlsMode::Disabled {
        return;
    }
    if let Some(ca) = find("cacert.pem") {
        (tls.mode, tls.ca) = (TlsMode::VerifyCa, Some(ca));
    }
    if let (Some(certificate), Some(key)) = (find("client-cert.pem"), find("client-key.pem")) {
        (tls.certificate, tls.key) = (Some(certificate), Some(key));
    }
}

fn path_of_existing_file(path: PathBuf) -> Option<String> {
    path.is_file().then(|| path.to_string_lossy().into_owned())
}

/// The value of `--rand-seed`. Without it, `run` gets a seed from the time of day, and every other command the same seed, so
/// that `prepare` loads the same rows each time.
pub(super) fn seed(command: Option<&str>, settings: &Settings) -> u64 {
    match (settings.seed, command) {
        (0, Some("run")) => {
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64)
        }
        (0, _) => 1,
        (seed, _) => u64::from(seed as u32),
    }
}
