//! The drop-in for sysbench: accepts its command line, runs the test on dbdyno's engine, and prints sysbench's output.
//!
//! - [`builtin`]: the tests cpu, memory, threads, mutex and fileio.
//! - [`native`]: the bundled database workloads, without Lua.
//! - [`script`]: Lua scripts.
//! - [`database`]: the plan of a database workload. [`reporting`]: prints reports. [`console`]: standard output.

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
    let command_line = match commandline::read(arguments, &read_text) {
        Ok(command_line) => command_line,
        Err(usage) => return fail(&usage),
    };
    if command_line.registry.bool("help") {
        return print_and_succeed(&help::general(command_line.compat));
    }
    if command_line.registry.bool("version") {
        return print_and_succeed(&format!("{NAME} {}\n", command_line.compat.version()));
    }
    if is_machine_readable(&command_line)
        && let Err(error) = console::reserve_output()
    {
        return fail(&format!("cannot reserve standard output for reports: {error}"));
    }
    command_line.notes.iter().for_each(|note| eprintln!("{note}"));
    let settings = match Settings::read(&command_line.registry, command_line.compat) {
        Ok(settings) => settings,
        Err(error) => return report_error(&error),
    };
    let console = Console::new(&settings);
    // As in sysbench, the log level does not hide these warnings.
    settings.warnings.iter().for_each(|warning| console.print(&format!("WARNING: {warning}\n")));
    console.log(Level::Notice, header(command_line.compat).trim_end_matches('\n'));
    console.log(Level::Notice, "");
    run_test(command_line, settings, console, arguments)
}

/// Whether the run writes its reports as JSON or CSV.
fn is_machine_readable(command_line: &CommandLine) -> bool {
    let format = command_line.registry.string("report-format");
    command_line.command.as_deref() == Some("run") && matches!(format, Some("json" | "csv"))
}

fn run_test(
    command_line: CommandLine,
    settings: Settings,
    console: Console,
    arguments: &[String],
) -> ExitCode {
    let name = command_line.test.clone().unwrap_or_default();
    if let Some(test) = dbdyno_builtin::test(&name) {
        return builtin::test(command_line, settings, console, test);
    }
    match oltp::NATIVE.iter().find(|(native, _)| *native == name) {
        Some(&(_, workload)) if is_native(&command_line, &settings, &name, workload) => {
            native::test(command_line, settings, console, workload)
        }
        _ => {
            let argv = std::iter::once(NAME.to_owned()).chain(arguments.iter().cloned()).collect();
            script::test(command_line, settings, console, argv)
        }
    }
}

/// Whether the engine runs the workload without Lua. Lua runs it if `--lua` is set, if a user's file replaces the bundled
/// script, or if only the script supports the options.
fn is_native(command_line: &CommandLine, settings: &Settings, name: &str, workload: WorkloadName) -> bool {
    let has_script = || Path::new(SHARE_DIR).join(format!("{name}.lua")).is_file();
    !command_line.registry.bool("lua")
        && !has_user_file(name)
        && (native::is_supported(command_line.clone(), settings, workload) || !has_script())
}

/// Whether Lua would find a user's file before the bundled script with that name.
fn has_user_file(name: &str) -> bool {
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

fn print_and_succeed(text: &str) -> ExitCode {
    print(text);
    ExitCode::SUCCESS
}

fn report_error(error: &OptionError) -> ExitCode {
    match error {
        OptionError::Usage(text) => eprintln!("{text}"),
        OptionError::Plain(text) => print(&format!("{text}\n")),
        OptionError::Fatal(text) => print(&Log::new(Level::Fatal).format(Level::Fatal, text)),
    }
    FAILED.into()
}
