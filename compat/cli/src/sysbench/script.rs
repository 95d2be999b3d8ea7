//! Scripts in Lua: the life of a command, and what a script finds of the command line.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dbdyno_lua::modules::ModulePaths;
use dbdyno_lua::play::{self, CommandKind, LuaFailure, Script, ScriptSetup};
use dbdyno_lua::{Database, Jit, Program, RandomSettings, ScriptHost, Source};
use dbdyno_runner::Order;
use dbdyno_schema::record::Warning;
use dbdyno_sysbench::commandline::CommandLine;
use dbdyno_sysbench::declaration::{Declared, Value};
use dbdyno_sysbench::driver::Driver;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::plan::Played;
use dbdyno_sysbench::registry::Registry;
use dbdyno_sysbench::report::Nothing;
use dbdyno_sysbench::settings::Settings;
use dbdyno_sysbench::{Compat, NAME, help};

use super::console::Console;
use super::database;
use super::reporting::{Reporting, code, failed};
use crate::exit::FAILED;

/// Name of what standard input says.
const STDIN: &str = "stdin";

/// What scripts find of the command line and of the log. Shared by all threads.
struct Desk {
    line: Mutex<CommandLine>,
    console: Console,
    /// What the script declares.
    declared: Mutex<Option<Vec<Declared>>>,
    argv: Vec<String>,
    command: Option<String>,
    path: Option<String>,
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    fn fatal(&self, text: &str) -> ExitCode {
        self.log(Level::Fatal, text);
        FAILED.into()
    }
}

impl ScriptHost for Desk {
    fn print(&self, text: &str) {
        self.console.print(text);
    }

    fn log(&self, level: Level, text: &str) {
        self.console.log(level, text);
    }

    fn warn(&self, warning: &Warning) {
        self.console.warn(warning);
    }

    fn read_options(&self, declared: Option<&[Declared]>) -> Result<Vec<(String, Value)>, String> {
        let mut line = lock(&self.line);
        if declared.is_none() && line.compat == Compat::V10 {
            line.adopt();
        }
        line.declare(declared.unwrap_or_default()).map_err(|usage| usage.0)?;
        *lock(&self.declared) = declared.map(<[_]>::to_vec);
        line.registry.values().map_err(|usage| usage.0)
    }

    fn options(&self) -> Vec<(String, Value)> {
        lock(&self.line).registry.values().unwrap_or_default()
    }

    fn print_options(&self, declared: &[Declared]) {
        // Until they are registered there are none, as a chunk finds that runs for no command.
        if lock(&self.declared).is_some() {
            self.console.print(&format!("{}\n", help::listed(declared)));
        }
    }

    fn argv(&self) -> &[String] {
        &self.argv
    }

    fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }

    fn script_path(&self) -> Option<&str> {
        self.path.as_deref()
    }
}

/// Runs a command of the script that the first word names.
pub(super) fn test(line: CommandLine, settings: Settings, console: Console, argv: Vec<String>) -> ExitCode {
    let Found { source, name, path } = match find(line.test.as_deref(), &console) {
        Ok(found) => found,
        Err(fault) => {
            eprintln!("{fault}");
            return FAILED.into();
        }
    };
    let from_stdin = path.is_none();
    let asked = line.test.clone().unwrap_or_default();
    let (order, fault) = match planned(&name, &line, &settings) {
        Ok(made) => made,
        Err(said) => {
            eprintln!("{said}");
            return FAILED.into();
        }
    };
    let own_threads = settings.own_threads;
    let mut program = program(&line.registry, &settings, source, &name);
    program.database.fault = fault;
    let desk = Arc::new(Desk {
        command: line.command.clone(),
        console,
        declared: Mutex::default(),
        argv,
        path,
        line: Mutex::new(line),
    });
    let setting = ScriptSetup { order, program, host: desk.clone(), own_threads };
    let script = match play::load(setting) {
        Ok(script) => script,
        Err(LuaFailure::Chunk(text)) if text.contains(&format!("module '{asked}' not found")) => {
            let text = format!("Cannot find benchmark '{asked}': no such built-in test, file or module");
            return desk.fatal(&text);
        }
        Err(failure) => return desk.fatal(&failure.to_string()),
    };
    match desk.command.clone() {
        Some(command) if !from_stdin => Command { desk, script, settings, name }.run(&command),
        _ => ExitCode::SUCCESS,
    }
}

/// The order of a script's run, and why there is no database: scripts need none, and those that want one are told when they
/// ask for its driver.
fn planned(name: &str, line: &CommandLine, settings: &Settings) -> Result<(Order, Option<String>), String> {
    let played = Played::Script(name);
    let (made, fault) = match database::plan(played, line, settings) {
        Err(database::Unusable::Driver(said)) => {
            let settings = Settings { driver: Driver::Mysql, ..settings.clone() };
            (database::plan(played, &without_driver(line), &settings), Some(said))
        }
        made => (made, None),
    };
    match made {
        Ok(order) => Ok((order, fault)),
        Err(
            database::Unusable::Driver(said)
            | database::Unusable::Other(said)
            | database::Unusable::Plan(said),
        ) => Err(said),
    }
}

/// The same command line with a database that answers from memory.
fn without_driver(line: &CommandLine) -> CommandLine {
    let mut line = line.clone();
    for (name, value) in [
        ("db-driver", "mysql"),
        ("db-ps-mode", "auto"),
        ("mysql-dry-run", "on"),
        ("mysql-ignore-errors", ""),
        ("db-ignore-errors", ""),
    ] {
        let _known = line.registry.set(name, Some(value));
    }
    line
}

/// A script with its name in messages, and its path where it has one.
struct Found {
    source: Source,
    name: String,
    path: Option<String>,
}

/// A file of that name, or a module; without a name, or for a hyphen, what standard input says.
fn find(test: Option<&str>, console: &Console) -> Result<Found, String> {
    let Some(test) = test.filter(|test| *test != "-") else {
        let mut stdin = std::io::stdin();
        if stdin.is_terminal() {
            console.log(Level::Notice, "Reading the script from the standard input:\n");
        }
        let mut text = Vec::new();
        stdin.read_to_end(&mut text).map_err(|error| error.to_string())?;
        let source = Source::Text { text, chunk: format!("={STDIN}") };
        return Ok(Found { source, name: STDIN.into(), path: None });
    };
    let name = Path::new(test).file_name().map_or(test.into(), |name| name.to_string_lossy().into_owned());
    let source = match std::fs::metadata(test) {
        Ok(there) if !there.is_dir() => Source::File(test.into()),
        _ => Source::Module(test.into()),
    };
    Ok(Found { source, name, path: Some(test.into()) })
}

/// What `--luajit-cmd` says of it, which is what follows `luajit -j`.
fn jit(command: &str) -> Option<bool> {
    match command {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// Where `require` searches.
pub(super) fn module_paths() -> ModulePaths {
    ModulePaths::new(|name| std::env::var(name).ok())
}

fn program(registry: &Registry, settings: &Settings, source: Source, name: &str) -> Program {
    let whole = |name: &str, usual: u32| registry.int(name).map_or(usual, |value| value.max(0) as u32);
    let special = match settings.compat {
        Compat::V10 => [whole("rand-spec-iter", 12), whole("rand-spec-pct", 1), whole("rand-spec-res", 75)],
        Compat::V11 => [12, 1, 75],
    };
    let ModulePaths { path, cpath } = module_paths();
    Program {
        source,
        name: name.into(),
        path,
        cpath,
        version: settings.compat.version().into(),
        version_string: format!("{NAME} {}", settings.compat.version()),
        compat: settings.compat,
        random: RandomSettings {
            seed: database::seed(settings),
            distribution: settings.keys.clone(),
            pareto_h: registry.double("rand-pareto-h"),
            zipfian_exponent: registry.double("rand-zipfian-exp"),
            iterations: special[0],
            special_percent: special[1],
            special_hot_percent: special[2],
        },
        percentile: settings.percentiles.first().copied().unwrap_or_default(),
        threads: settings.threads,
        jit: match registry.string("luajit-cmd").and_then(jit).or(settings.jit) {
            None => Jit::Auto,
            Some(true) => Jit::On,
            Some(false) => Jit::Off,
        },
        database: Database {
            driver: registry.string("db-driver").unwrap_or("mysql").into(),
            prepared: registry.string("db-ps-mode") != Some("disable"),
            dry_run: settings.driver == Driver::Mysql && registry.bool("mysql-dry-run"),
            fault: None,
            places: settings.places.iter().map(|(_, words)| words.clone()).collect(),
        },
    }
}

/// A script whose chunk has run, and what is asked of it.
struct Command {
    desk: Arc<Desk>,
    script: Rc<dyn Script>,
    settings: Settings,
    name: String,
}

impl Command {
    fn run(self, command: &str) -> ExitCode {
        if let Err(failure) = self.script.read_options() {
            return failed(&self.desk.console, &failure);
        }
        if let Some(kind) = self.script.command(command) {
            if kind == CommandKind::Parallel && self.settings.threads > 1 {
                self.desk.log(Level::Notice, "Initializing worker threads...\n");
            }
            return self.done(self.script.run_command(command));
        }
        match command {
            "run" => self.measure(),
            "help" | "prepare" | "cleanup" if self.script.has_function(command) => {
                self.done(self.script.call(command))
            }
            "help" if lock(&self.desk.declared).is_some() => {
                let declared = lock(&self.desk.declared).clone().unwrap_or_default();
                self.desk.console.print(&help::of_test(&self.name, &declared));
                ExitCode::SUCCESS
            }
            "help" | "prepare" | "cleanup" => {
                eprintln!("'{}' test does not implement the '{command}' command.", self.name);
                FAILED.into()
            }
            _ => {
                eprintln!("Unknown command: {command}");
                FAILED.into()
            }
        }
    }

    fn done(&self, result: Result<(), LuaFailure>) -> ExitCode {
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failed(&self.desk.console, &failure),
        }
    }

    fn measure(&self) -> ExitCode {
        let (control, inbox) = dbdyno_runner::channel();
        let reporting = Reporting::new(&self.desk.console, &self.settings, &Nothing, false);
        let mut reporting = reporting.stopped_by(move |reason| control.stop(reason));
        reporting.script = Some(Rc::clone(&self.script));
        let ended = self.script.run(inbox, &mut reporting);
        // The script's states end before the process does, with what they have to say then.
        drop(reporting);
        code(ended.reason)
    }
}
