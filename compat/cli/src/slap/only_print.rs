//! Executes `--only-print`: prints the statements instead of sending them. Shell commands still run, as in mysqlslap.

use std::process::ExitCode;

use dbdyno_slap::UsageError;
use dbdyno_slap::report::{Labels, Round, Times};
use dbdyno_slap::rounds::{self, PRINTED_KEY, Step, VERBOSE_PHASES, VERBOSE_STATEMENTS};
use dbdyno_slap::settings::Settings;

use super::benchmark::run_shell_command;
use super::output::{Output, print};
use crate::system::FAILED;

pub(super) fn print_steps(settings: &Settings, mut output: Output) -> Result<ExitCode, UsageError> {
    let mut times = Times::default();
    for step in rounds::steps(settings) {
        match step {
            Step::Announce(phase) if settings.verbose >= VERBOSE_PHASES => print(&format!("{phase}\n")),
            Step::Announce(_) | Step::Keys(_) => {}
            Step::Statement(sql) => print(&format!("{sql};\n")),
            Step::CreateSchema(schema) => print(&format!("CREATE SCHEMA `{schema}`;\n")),
            Step::Use(schema) => print(&format!("use {schema};\n")),
            Step::System(option, command) => run_shell_command(option, &command),
            Step::Clients(clients) => {
                times.add(Round::default());
                for _ in 0..clients {
                    print_client(settings, clients);
                }
            }
            Step::Report { engine, clients } => {
                let times = std::mem::take(&mut times);
                if settings.csv.is_some() {
                    let result = output.report(&times, &Labels::new(settings, engine.as_deref(), clients));
                    result.map_err(|error| UsageError { text: error.to_string(), code: FAILED })?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_client(settings: &Settings, clients: u32) {
    if settings.verbose >= VERBOSE_STATEMENTS {
        print("connected!\n");
    }
    for sql in rounds::client_statements(settings, clients, PRINTED_KEY) {
        print(&format!("{sql};\n"));
    }
}
