//! Runs the commands of Lua scripts, and gives scripts access to the command line.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dbdyno_lua::modules::ModulePaths;
use dbdyno_lua::run::{self, CommandKind, LuaFailure, Script, ScriptSetup};
use dbdyno_lua::{Database, Jit, RandomSettings, ScriptConfig, ScriptHost, Source};
use dbdyno_runner::RunSpec;
use dbdyno_schema::plan::Distribution;
use dbdyno_schema::record::Warning;
use dbdyno_sysbench::commandline::CommandLine;
use dbdyno_sysbench::driver::Driver;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::option_definition::{OptionDefinition, Value};
use dbdyno_sysbench::plan::TestKind;
use dbdyno_sysbench::registry::Registry;
use dbdyno_sysbench::report::no_test;
use dbdyno_sysbench::settings::Settings;
use dbdyno_sysbench::{Compat, NAME, help};

use super::console::Console;
use super::database::{self, PlanError};
use super::reporting::{Reporting, limit_start_time, report_failure, run_exit_code};
use crate::system::{FAILED, fail};
use crate::watchdog;

/// The chunk name of a script from standard input.
const STDIN: &str = "stdin";

/// A script's access to the command line and the log, shared by all threads.
struct Host {
    command_line: Mutex<CommandLine>,
    console: Console,
    /// The options of the script; `None` until a command has read them.
    options: Mutex<Option<Vec<OptionDefinition>>>,
    argv: Vec<String>,
    command: Option<String>,
    path: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host {
    fn fail(&self, text: &str) -> ExitCode {
        self.log(Level::Fatal, text);
        FAILED.into()
    }
}

impl ScriptHost for Host {
    fn print(&self, text: &str) {
        self.console.print(text);
    }

    fn log(&self, level: Level, text: &str) {
        self.console.log(level, text);
    }

    fn warn(&self, warning: &Warning) {
        self.console.warn(warning);
    }

    fn read_options(&self, options: Option<&[OptionDefinition]>) -> Result<Vec<(String, Value)>, String> {
        let mut command_line = lock(&self.command_line);
        if options.is_none() && command_line.compat == Compat::V1_0 {
            command_line.declare_unknown();
        }
        command_line.declare(options.unwrap_or_default())?;
        *lock(&self.options) = options.map(<[_]>::to_vec);
        command_line.registry.values()
    }

    fn options(&self) -> Vec<(String, Value)> {
        lock(&self.command_line).registry.values().unwrap_or_default()
    }

    fn print_options(&self, options: &[OptionDefinition]) {
        // As in sysbench, the options are known only after a command has read them.
        if lock(&self.options).is_some() {
            self.console.print(&format!("{}\n", help::format_options(options)));
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

/// Runs a command of the script that the command line names.
pub(super) fn test(
    command_line: CommandLine,
    settings: Settings,
    console: Console,
    argv: Vec<String>,
) -> ExitCode {
    let ScriptFile { source, name, path } = match find_script(command_line.test.as_deref(), &console) {
        Ok(file) => file,
        Err(error) => return fail(&error),
    };
    let is_stdin = path.is_none();
    let test = command_line.test.clone().unwrap_or_default();
    let (spec, driver_error) = match run_spec(&name, &command_line, &settings) {
        Ok(spec) => spec,
        Err(error) => return fail(&error),
    };
    let one_thread_per_user = settings.one_thread_per_user;
    let mut config = script_config(&command_line, &settings, source, &name);
    config.database.driver_error = driver_error;
    let host = Arc::new(Host {
        command: command_line.command.clone(),
        console,
        options: Mutex::default(),
        argv,
        path,
        command_line: Mutex::new(command_line),
    });
    limit_memory(&host, &settings);
    let setup = ScriptSetup { spec, config, host: host.clone(), one_thread_per_user };
    // Each user of a run executes the chunk too, and all of them have this time.
    let is_run = host.command.as_deref() == Some("run");
    let guard = is_run.then(|| limit_start_time(&host.console, &settings));
    let loaded = run::load(setup);
    drop(guard);
    let script = match loaded {
        Ok(script) => script,
        Err(LuaFailure::Chunk(text)) if text.contains(&format!("module '{test}' not found")) => {
            let text = format!("Cannot find benchmark '{test}': no such built-in test, file or module");
            return host.fail(&text);
        }
        Err(failure) => return host.fail(&failure.to_string()),
    };
    match host.command.clone() {
        Some(command) if !is_stdin => LoadedScript { host, script, settings, name }.run(&command),
        _ => ExitCode::SUCCESS,
    }
}

/// Ends the process if it uses more memory than the script may.
fn limit_memory(host: &Arc<Host>, settings: &Settings) {
    let host = Arc::clone(host);
    let limit = settings.lua_memory.unwrap_or_else(|| watchdog::default_memory_limit(settings.threads));
    watchdog::limit_memory(limit, move |text| {
        host.log(Level::Fatal, &format!("{text} (--lua-memory sets the limit)"));
        std::process::exit(FAILED.into());
    });
}

/// Returns the specification of the run, and the driver's error, if any. The error matters only if the script opens a
/// connection.
fn run_spec(
    name: &str,
    command_line: &CommandLine,
    settings: &Settings,
) -> Result<(RunSpec, Option<String>), String> {
    let kind = TestKind::Script(name);
    let (spec, driver_error) = match database::run_spec(kind, command_line, settings) {
        Err(PlanError::Driver(message)) => {
            let settings = Settings { driver: Driver::Mysql, ..settings.clone() };
            (database::run_spec(kind, &to_dry_run(command_line), &settings), Some(message))
        }
        spec => (spec, None),
    };
    match spec {
        Ok(spec) => Ok((spec, driver_error)),
        Err(PlanError::Driver(text) | PlanError::Other(text) | PlanError::Plan(text)) => Err(text),
    }
}

/// Returns the command line of a dry run, which needs no driver.
fn to_dry_run(command_line: &CommandLine) -> CommandLine {
    let mut command_line = command_line.clone();
    for (name, value) in [
        ("db-driver", "mysql"),
        ("db-ps-mode", "auto"),
        ("mysql-dry-run", "on"),
        ("mysql-ignore-errors", ""),
        ("db-ignore-errors", ""),
    ] {
        // sysbench 1.0 does not have all of these options.
        let _ = command_line.registry.set(name, Some(value));
    }
    command_line
}

/// The source of a script.
struct ScriptFile {
    source: Source,
    /// The script's name in messages.
    name: String,
    /// The file's path; `None` for standard input.
    path: Option<String>,
}

/// Finds the file or the module of a script. Without a name, or if it is `-`, reads the script from standard input.
fn find_script(test: Option<&str>, console: &Console) -> Result<ScriptFile, String> {
    let Some(test) = test.filter(|test| *test != "-") else {
        let mut stdin = std::io::stdin();
        if stdin.is_terminal() {
            console.log(Level::Notice, "Reading the script from the standard input:\n");
        }
        let mut text = Vec::new();
        stdin.read_to_end(&mut text).map_err(|error| error.to_string())?;
        let source = Source::Text { text, chunk: format!("={STDIN}") };
        return Ok(ScriptFile { source, name: STDIN.into(), path: None });
    };
    let name = Path::new(test).file_name().map_or(test.into(), |name| name.to_string_lossy().into_owned());
    let source = match std::fs::metadata(test) {
        Ok(metadata) if !metadata.is_dir() => Source::File(test.into()),
        _ => Source::Module(test.into()),
    };
    Ok(ScriptFile { source, name, path: Some(test.into()) })
}

/// Whether the command of `--luajit-cmd` switches the compiler on or off; `None` for other commands.
fn parse_jit_switch(command: &str) -> Option<bool> {
    match command {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// The paths that Lua's `require` searches.
pub(crate) fn module_paths() -> ModulePaths {
    ModulePaths::new(|name| std::env::var(name).ok())
}

fn script_config(
    command_line: &CommandLine,
    settings: &Settings,
    source: Source,
    name: &str,
) -> ScriptConfig {
    let CommandLine { registry, command, .. } = command_line;
    let seed = database::seed(command.as_deref(), settings);
    let ModulePaths { path, cpath } = module_paths();
    ScriptConfig {
        source,
        name: name.into(),
        path,
        cpath,
        version: settings.compat.version().into(),
        version_string: format!("{NAME} {}", settings.compat.version()),
        compat: settings.compat,
        random: random_settings(registry, &settings.keys, seed),
        percentile: settings.percentiles.first().copied().unwrap_or_default(),
        threads: settings.threads,
        jit: match registry.string("luajit-cmd").and_then(parse_jit_switch).or(settings.jit) {
            None => Jit::Auto,
            Some(true) => Jit::On,
            Some(false) => Jit::Off,
        },
        database: Database {
            driver: registry.string("db-driver").unwrap_or("mysql").into(),
            prepared: registry.string("db-ps-mode") != Some("disable"),
            dry_run: settings.driver == Driver::Mysql && registry.bool("mysql-dry-run"),
            driver_error: None,
            server_names: settings.servers.iter().map(|(_, name)| name.clone()).collect(),
        },
    }
}

/// The settings of `sysbench.rand`, with sysbench's defaults for options that the emulated version does not have.
pub(crate) fn random_settings(registry: &Registry, keys: &Distribution, seed: u64) -> RandomSettings {
    let non_negative = |name: &str, default: u32| match registry.kind(name) {
        Some(_) => registry.int(name).map_or(default, |value| value.max(0) as u32),
        None => default,
    };
    RandomSettings {
        seed,
        distribution: keys.clone(),
        pareto_h: registry.double("rand-pareto-h"),
        zipfian_exponent: match keys {
            Distribution::Zipfian { exponent, .. } => *exponent,
            _ if registry.kind("rand-zipfian-exp").is_some() => registry.double("rand-zipfian-exp"),
            _ => 0.8,
        },
        iterations: non_negative("rand-spec-iter", 12),
        special_percent: non_negative("rand-spec-pct", 1),
        special_hot_percent: non_negative("rand-spec-res", 75),
    }
}

/// A loaded script, and the settings of its commands.
struct LoadedScript {
    host: Arc<Host>,
    script: Rc<dyn Script>,
    settings: Settings,
    name: String,
}

impl LoadedScript {
    fn run(self, command: &str) -> ExitCode {
        if let Err(failure) = self.script.read_options() {
            return report_failure(&self.host.console, &failure);
        }
        if let Some(kind) = self.script.command(command) {
            if kind == CommandKind::Parallel && self.settings.threads > 1 {
                self.host.log(Level::Notice, "Initializing worker threads...\n");
            }
            return self.finish(self.script.run_command(command));
        }
        match command {
            "run" => self.measure(),
            "help" | "prepare" | "cleanup" if self.script.has_function(command) => {
                self.finish(self.script.call(command))
            }
            "help" if lock(&self.host.options).is_some() => {
                let options = lock(&self.host.options).clone().unwrap_or_default();
                self.host.console.print(&help::test_options(&self.name, &options));
                ExitCode::SUCCESS
            }
            "help" | "prepare" | "cleanup" => {
                fail(&format!("'{}' test does not implement the '{command}' command.", self.name))
            }
            _ => fail(&format!("Unknown command: {command}")),
        }
    }

    fn finish(&self, result: Result<(), LuaFailure>) -> ExitCode {
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => report_failure(&self.host.console, &failure),
        }
    }

    fn measure(&self) -> ExitCode {
        let (control, inbox) = dbdyno_runner::channel();
        let reporting = Reporting::new(&self.host.console, &self.settings, &no_test, false);
        let mut reporting = reporting.on_interrupt(move |reason| control.stop(reason));
        reporting.script = Some(Rc::clone(&self.script));
        let end = self.script.run(inbox, &mut reporting);
        // Lua states may print while they are closed, so close them before the process exits.
        drop(reporting);
        run_exit_code(&end)
    }
}
