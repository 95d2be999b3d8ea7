//! The drop-in for mysqlslap and mariadb-slap: their command lines, reports and exit codes over the engine.
//!
//! - [`conduct`]: the steps of an order, on a server. [`printed`]: the same with `--only-print`.
//! - [`disk`]: option files and files of statements. [`password`]: where it comes from. [`output`]: reports.

mod conduct;
mod disk;
mod output;
mod password;
mod printed;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use dbdyno_slap::commandline::{self, Given};
use dbdyno_slap::settings::Settings;
use dbdyno_slap::{Flavour, Refused, help, option_files, target};

use disk::Disk;
use output::Output;

/// The programs it takes the place of.
const NAMES: [&str; 2] = ["mysqlslap", "mariadb-slap"];

/// The program's name and its arguments, where this process was started as one of them: under its name, or with it as the
/// first argument.
pub(crate) fn called(arguments: &[OsString]) -> Option<(String, Vec<String>)> {
    let named = |argument: Option<&OsString>| {
        let name = Path::new(argument?).file_name()?.to_str()?;
        NAMES.contains(&name).then(|| name.to_owned())
    };
    let (program, skip) = match named(arguments.first()) {
        Some(program) => (program, 1),
        None => (named(arguments.get(1))?, 2),
    };
    let rest = arguments[skip..].iter().map(|argument| argument.to_string_lossy().into_owned());
    Some((program, rest.collect()))
}

/// Does what `arguments` ask for.
pub(crate) fn main(program: &str, arguments: &[String]) -> ExitCode {
    match order(program, arguments) {
        Ok(code) => code,
        Err(refused) => {
            eprintln!("{}", refused.text);
            refused.code.into()
        }
    }
}

fn order(program: &str, arguments: &[String]) -> Result<ExitCode, Refused> {
    let flavour = commandline::flavour(program, arguments)?;
    let collected = option_files::collect(flavour, program, arguments, &Disk)?;
    if collected.print {
        output::print(&defaults(program, &collected.arguments));
        return Ok(ExitCode::SUCCESS);
    }
    let given = commandline::read(flavour, program, &collected.arguments)?;
    given.notes.iter().for_each(|note| eprintln!("{note}"));
    if let Some(text) = asked(&given, flavour) {
        output::print(&text);
        return Ok(ExitCode::SUCCESS);
    }
    let settings = Settings::read(&given, &Disk);
    let target = target::target(&given, &Disk);
    let (settings, target) = match (settings, target) {
        (Ok(settings), Ok(target)) => (settings, target),
        (Err(one), Err(other)) => {
            return Err(Refused { text: format!("{}\n{}", one.text, other.text), code: one.code });
        }
        (Err(refused), _) | (_, Err(refused)) => return Err(refused),
    };
    let output = Output::open(program, &settings)?;
    if settings.only_print {
        return printed::all(&settings, output);
    }
    let password = password::of(&given)?;
    conduct::Conductor::open(program, settings, target, password, output)?.run()
}

fn asked(given: &Given, flavour: Flavour) -> Option<String> {
    if given.is_on("help") {
        return Some(help::text(flavour, &given.program));
    }
    given.is_on("version").then(|| help::version(flavour, &given.program))
}

/// What `--print-defaults` says; of a password that there is one.
fn defaults(program: &str, arguments: &[String]) -> String {
    let shown = arguments.iter().map(|argument| match argument.split_once('=') {
        Some((name, _)) if name.starts_with("--password") => format!("{name}=*****"),
        _ => argument.clone(),
    });
    let shown = shown.collect::<Vec<_>>().join(" ");
    format!("{program} would have been started with the following arguments:\n{shown} \n")
}
