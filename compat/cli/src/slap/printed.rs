//! `--only-print`: the statements of an order, for nobody but the reader. Commands for the shell are run all the same.

use std::process::ExitCode;

use dbdyno_slap::Refused;
use dbdyno_slap::report::{Of, Round, Times};
use dbdyno_slap::rounds::{self, PARTS, PRINTED_KEY, STATEMENTS, Step};
use dbdyno_slap::settings::Settings;

use super::conduct::system;
use super::output::{Output, print};
use crate::exit::FAILED;

/// Prints all steps.
pub(super) fn all(settings: &Settings, mut output: Output) -> Result<ExitCode, Refused> {
    let mut times = Times::default();
    for step in rounds::steps(settings) {
        match step {
            Step::Tell(part) if settings.verbose >= PARTS => print(&format!("{part}\n")),
            Step::Tell(_) | Step::Keys(_) => {}
            Step::Main(sql) => print(&format!("{sql};\n")),
            Step::MakeSchema(schema) => print(&format!("CREATE SCHEMA `{schema}`;\n")),
            Step::Use(schema) => print(&format!("use {schema};\n")),
            Step::System(option, command) => system(option, &command),
            Step::Clients(clients) => {
                times.add(Round::default());
                for _ in 0..clients {
                    client(settings, clients);
                }
            }
            Step::Report { engine, clients } => {
                let of = Of {
                    engine: engine.as_deref(),
                    load_type: &settings.load_type,
                    clients,
                    per_client: settings.told_per_client(clients),
                    latency: settings.latency,
                };
                let times = std::mem::take(&mut times);
                if settings.csv.is_some() {
                    let written = output.report(&times, &of);
                    written.map_err(|error| Refused { text: error.to_string(), code: FAILED })?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn client(settings: &Settings, clients: u32) {
    if settings.verbose >= STATEMENTS {
        print("connected!\n");
    }
    for sql in rounds::of_client(settings, clients, PRINTED_KEY) {
        print(&format!("{sql};\n"));
    }
}
