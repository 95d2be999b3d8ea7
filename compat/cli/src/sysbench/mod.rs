//! The drop-in for sysbench: its command line, its texts and exit codes over the engine.
//!
//! - [`builtin`]: the tests of the machine itself.
//! - [`native`]: the bundled database workloads, which the engine has itself.
//! - [`script`]: scripts in Lua.
//! - [`database`]: the plan of either. [`reporting`]: its records as text. [`console`]: where the text goes.

mod builtin;
mod console;
mod database;
mod native;
mod reporting;
mod script;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use dbdyno_lua::modules::SHARE;
use dbdyno_schema::plan::WorkloadName;
use dbdyno_sysbench::commandline::{self, CommandLine, Files};
use dbdyno_sysbench::log::{Level, Log};
use dbdyno_sysbench::refused::Refused;
use dbdyno_sysbench::settings::Settings;
use dbdyno_sysbench::{NAME, header, help, oltp};

use self::console::Console;
pub(crate) use self::console::print;
use crate::exit::FAILED;

/// The arguments after the program's name, where this process was started as sysbench: under that name, or with it as
/// the first argument.
pub(crate) fn called(arguments: &[OsString]) -> Option<Vec<String>> {
    let named = |argument: Option<&OsString>| {
        argument.and_then(|text| Path::new(text).file_name()).is_some_and(|name| name == NAME)
    };
    let skip = match arguments {
        [program, ..] if named(Some(program)) => 1,
        [_, first, ..] if first == NAME => 2,
        _ => return None,
    };
    Some(arguments[skip..].iter().map(|argument| argument.to_string_lossy().into_owned()).collect())
}

/// Files as the system has them.
struct Disk;

impl Files for Disk {
    fn text(&self, path: &str) -> Result<String, String> {
        let bytes = std::fs::read(path).map_err(|error| match error.raw_os_error() {
            // As perror(3) words it, without the number that Rust adds.
            Some(_) => error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
            None => error.to_string(),
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Does what `arguments` ask for.
pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let line = match commandline::read(arguments, &Disk) {
        Ok(line) => line,
        Err(usage) => return refuse(&Refused::Usage(usage.0)),
    };
    if line.registry.bool("help") {
        return said(&help::general(line.compat));
    }
    if line.registry.bool("version") {
        return said(&format!("{NAME} {}\n", line.compat.version()));
    }
    if reports_for_programs(&line)
        && let Err(error) = console::keep_output_for_reports()
    {
        eprintln!("standard output cannot be kept for reports: {error}");
        return FAILED.into();
    }
    line.notes.iter().for_each(|note| eprintln!("{note}"));
    let settings = match Settings::read(&line.registry, line.compat) {
        Ok(settings) => settings,
        Err(refused) => return refuse(&refused),
    };
    let console = Console::new(&settings);
    settings.warnings.iter().for_each(|warning| console.log(Level::Warning, warning));
    console.log(Level::Notice, header(line.compat).trim_end_matches('\n'));
    console.log(Level::Notice, "");
    test(line, settings, console, arguments)
}

/// Whether a run is to be told to programs, which read standard output.
fn reports_for_programs(line: &CommandLine) -> bool {
    let format = line.registry.string("report-format");
    line.command.as_deref() == Some("run") && matches!(format, Some("json" | "csv"))
}

/// The test that the first word names.
fn test(line: CommandLine, settings: Settings, console: Console, arguments: &[String]) -> ExitCode {
    let name = line.test.clone().unwrap_or_default();
    if let Some(test) = dbdyno_builtin::test(&name) {
        return builtin::test(line, settings, console, test);
    }
    match oltp::NATIVE.iter().find(|(native, _)| *native == name) {
        Some(&(_, workload)) if is_native(&line, &settings, &name, workload) => {
            native::test(line, settings, console, workload)
        }
        _ => {
            let argv = std::iter::once(NAME.to_owned()).chain(arguments.iter().cloned()).collect();
            script::test(line, settings, console, argv)
        }
    }
}

/// Whether the engine plays the workload itself. The script does where it is asked to, where a file of the user's stands
/// in its place, and where it takes what the engine does not.
fn is_native(line: &CommandLine, settings: &Settings, name: &str, workload: WorkloadName) -> bool {
    let has_script = || Path::new(SHARE).join(format!("{name}.lua")).is_file();
    !line.registry.bool("lua")
        && !is_shadowed(name)
        && (native::can_play(line.clone(), settings, workload) || !has_script())
}

/// Whether a file of the user's stands before the bundled script of that name, where Lua looks for it.
fn is_shadowed(name: &str) -> bool {
    let here = |path: String| Path::new(&path).is_file();
    if here(name.to_owned()) {
        return true;
    }
    let path = script::module_paths().path;
    let templates = path.split(';').filter(|template| !template.is_empty());
    let mut before_share =
        templates.take_while(|template| Path::new(template).parent() != Some(Path::new(SHARE)));
    before_share.any(|template| here(template.replace('?', name)))
}

fn said(text: &str) -> ExitCode {
    print(text);
    ExitCode::SUCCESS
}

fn refuse(refused: &Refused) -> ExitCode {
    match refused {
        Refused::Usage(text) => eprintln!("{text}"),
        Refused::Plain(text) => print(&format!("{text}\n")),
        Refused::Fatal(text) => {
            print(&Log::new(Level::Fatal).line(Level::Fatal, text));
        }
    }
    FAILED.into()
}
