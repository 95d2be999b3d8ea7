//! The drop-in for sysbench: its command line, output and exit codes, executed by dbdyno's engine.
//!
//! - [`builtin`]: cpu, memory, threads, mutex and fileio.
//! - [`native`]: the bundled database workloads, without Lua.
//! - [`script`]: Lua scripts.
//! - [`database`]: the plan of native workloads and scripts. [`reporting`]: records as reports. [`console`]: standard output.

mod builtin;
mod console;
mod database;
mod native;
mod reporting;
pub(crate) mod script;

use std::path::Path;
use std::process::ExitCode;

use dbdyno_lua::modules::SHARE_DIR;
use dbdyno_schema::plan::WorkloadName;
use dbdyno_sysbench::commandline::{self, CommandLine};
use dbdyno_sysbench::error::OptionError;
use dbdyno_sysbench::log::{Level, Log};
use dbdyno_sysbench::settings::Settings;
use dbdyno_sysbench::{NAME, header, help, oltp};

use self::console::Console;
pub(crate) use self::console::print;
use crate::system::{FAILED, fail, read_text};

pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let line = match commandline::read(arguments, &read_text) {
        Ok(line) => line,
        Err(usage) => return fail(&usage),
    };
    if line.registry.bool("help") {
        return succeed(&help::general(line.compat));
    }
    if line.registry.bool("version") {
        return succeed(&format!("{NAME} {}\n", line.compat.version()));
    }
    if reports_for_programs(&line)
        && let Err(error) = console::reserve_output()
    {
        return fail(&format!("cannot reserve standard output for reports: {error}"));
    }
    line.notes.iter().for_each(|note| eprintln!("{note}"));
    let settings = match Settings::read(&line.registry, line.compat) {
        Ok(settings) => settings,
        Err(error) => return report(&error),
    };
    let console = Console::new(&settings);
    settings.warnings.iter().for_each(|warning| console.log(Level::Warning, warning));
    console.log(Level::Notice, header(line.compat).trim_end_matches('\n'));
    console.log(Level::Notice, "");
    test(line, settings, console, arguments)
}

/// Whether the run writes machine-readable reports (JSON or CSV) to standard output.
fn reports_for_programs(line: &CommandLine) -> bool {
    let format = line.registry.string("report-format");
    line.command.as_deref() == Some("run") && matches!(format, Some("json" | "csv"))
}

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

/// Whether the engine runs the workload without Lua. It does not with `--lua`, if a user's file replaces the bundled
/// script, or with options that only the script supports.
fn is_native(line: &CommandLine, settings: &Settings, name: &str, workload: WorkloadName) -> bool {
    let has_script = || Path::new(SHARE_DIR).join(format!("{name}.lua")).is_file();
    !line.registry.bool("lua")
        && !is_shadowed(name)
        && (native::is_supported(line.clone(), settings, workload) || !has_script())
}

/// Whether Lua would find a user's file before the bundled script with that name.
fn is_shadowed(name: &str) -> bool {
    let is_file = |path: &str| Path::new(path).is_file();
    if is_file(name) {
        return true;
    }
    let path = script::module_paths().path;
    let templates = path.split(';').filter(|template| !template.is_empty());
    let mut before_share =
        templates.take_while(|template| Path::new(template).parent() != Some(Path::new(SHARE_DIR)));
    before_share.any(|template| is_file(&template.replace('?', name)))
}

fn succeed(text: &str) -> ExitCode {
    print(text);
    ExitCode::SUCCESS
}

fn report(error: &OptionError) -> ExitCode {
    match error {
        OptionError::Usage(text) => eprintln!("{text}"),
        OptionError::Plain(text) => print(&format!("{text}\n")),
        OptionError::Fatal(text) => print(&Log::new(Level::Fatal).line(Level::Fatal, text)),
    }
    FAILED.into()
}
