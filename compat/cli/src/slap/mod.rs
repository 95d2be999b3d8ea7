//! The drop-in for mysqlslap and mariadb-slap: accepts their command lines, runs the benchmark on dbdyno's engine, and
//! prints their reports.
//!
//! - [`benchmark`]: executes the steps of the benchmark on a server. [`only_print`]: prints the statements for
//!   `--only-print`.
//! - [`password`]: reads the password. [`output`]: writes reports.

mod benchmark;
mod only_print;
mod output;
mod password;

use std::path::Path;
use std::process::ExitCode;

use dbdyno_slap::commandline::{self, OptionValues};
use dbdyno_slap::option_files::{self, Files};
use dbdyno_slap::settings::Settings;
use dbdyno_slap::{Flavour, UsageError, help, target};

use output::Output;

struct LocalFiles;

impl Files for LocalFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        crate::system::read_text(path)
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn list(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path().to_string_lossy().into_owned());
        let mut paths: Vec<_> = paths.filter(|path| path.ends_with(".cnf")).collect();
        paths.sort();
        paths
    }

    fn env_var(&self, name: &str) -> Option<String> {
        crate::system::env_var(name)
    }
}

pub(crate) fn main(program: &str, arguments: &[String]) -> ExitCode {
    execute(program, arguments).unwrap_or_else(|error| {
        eprintln!("{}", error.text);
        error.code.into()
    })
}

fn execute(program: &str, arguments: &[String]) -> Result<ExitCode, UsageError> {
    let flavour = commandline::flavour(program, arguments)?;
    let collected = option_files::collect(flavour, program, arguments, &LocalFiles)?;
    if collected.print {
        output::print(&format_defaults(program, &collected.arguments));
        return Ok(ExitCode::SUCCESS);
    }
    let values = commandline::read(flavour, program, &collected.arguments)?;
    values.notes.iter().for_each(|note| eprintln!("{note}"));
    if let Some(text) = help_or_version(&values, flavour) {
        output::print(&text);
        return Ok(ExitCode::SUCCESS);
    }
    let (settings, target) = match (Settings::read(&values, &LocalFiles), target::read(&values, &LocalFiles))
    {
        (Ok(settings), Ok(target)) => (settings, target),
        (Err(first), Err(second)) => {
            return Err(UsageError { text: format!("{}\n{}", first.text, second.text), code: first.code });
        }
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let output = Output::open(program, &settings)?;
    if settings.only_print {
        return only_print::print_steps(&settings, output);
    }
    let password = password::read(&values)?;
    benchmark::Benchmark::open(program, settings, target, password, output)?.run()
}

fn help_or_version(values: &OptionValues, flavour: Flavour) -> Option<String> {
    if values.is_on("help") {
        return Some(help::text(flavour, &values.program));
    }
    values.is_on("version").then(|| help::version(flavour, &values.program))
}

/// The output of `--print-defaults`, which hides passwords.
fn format_defaults(program: &str, arguments: &[String]) -> String {
    let hidden = arguments.iter().map(|argument| match argument.split_once('=') {
        Some((name, _)) if name.starts_with("--password") => format!("{name}=*****"),
        _ => argument.clone(),
    });
    let text = hidden.collect::<Vec<_>>().join(" ");
    format!("{program} would have been started with the following arguments:\n{text} \n")
}
