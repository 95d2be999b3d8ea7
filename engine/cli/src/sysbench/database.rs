//! What the database options come to: a plan, and the password beside it.

use std::time::{SystemTime, UNIX_EPOCH};

use dbdyno_door::Plan;
use dbdyno_door::plan::WorkloadName;
use dbdyno_drive::Secrets;
use dbdyno_frontends::sysbench::commandline::CommandLine;
use dbdyno_frontends::sysbench::plan;
use dbdyno_frontends::sysbench::settings::{Refused, Settings};

use crate::input;

/// Why there is no plan.
pub(super) enum Unusable {
    /// A FATAL line: the original says it when it starts its database driver.
    Driver(String),
    /// A line for standard error.
    Other(String),
    /// Lines for standard error: the engine has no such plan.
    Plan(String),
}

/// The plan of a native workload or of a script, and its secrets.
pub(super) fn plan(
    workload: Option<WorkloadName>,
    line: &CommandLine,
    settings: &Settings,
) -> Result<(Plan, Secrets), Unusable> {
    let made = plan::plan(workload, &line.registry, settings, seed(settings), workers(settings));
    let plan = made.map_err(|refused| match refused {
        Refused::Fatal(said) => Unusable::Driver(said),
        Refused::Usage(said) | Refused::Plain(said) => Unusable::Other(said),
    })?;
    let faults = plan.faults();
    if !faults.is_empty() {
        return Err(Unusable::Plan(faults.join("\n")));
    }
    let mut secrets = input::secrets(&plan).map_err(Unusable::Other)?;
    secrets.password = line.registry.string("mysql-password").unwrap_or_default().into();
    Ok((plan, secrets))
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
