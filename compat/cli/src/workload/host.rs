//! Gives a script access to the plan. The script prints to standard error, because standard output is reserved for
//! records.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dbdyno_lua::modules::ModulePaths;
use dbdyno_lua::{Database, Jit, ScriptConfig, ScriptHost, Source};
use dbdyno_schema::plan::{Endpoint, Plan, ScriptWorkload, StatementMode, Target};
use dbdyno_schema::record::Warning;
use dbdyno_sysbench::Compat;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::option_definition::{OptionDefinition, Value};
use dbdyno_sysbench::registry::Registry;

use super::options;
use crate::sysbench::script::{module_paths, random_settings};
use crate::system::PROGRAM;

/// The percentile that `sysbench.report_*` functions of the script name in their output: sysbench's default.
const PERCENTILE: f64 = 95.0;

/// A script's access to the plan, shared by all threads.
pub(super) struct PlanHost {
    script: ScriptWorkload,
    registry: Mutex<Registry>,
    argv: Vec<String>,
    command: &'static str,
}

impl PlanHost {
    pub(super) fn new(plan: &Plan, script: &ScriptWorkload, command: &'static str) -> Self {
        let options = script.options.iter().map(|(name, value)| format!("--{name}={value}"));
        let program = [PROGRAM.to_owned(), script.path.clone()];
        let argv = program.into_iter().chain(options).chain([command.to_owned()]).collect();
        let registry = Mutex::new(options::plan_registry(plan));
        Self { script: script.clone(), registry, argv, command }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScriptHost for PlanHost {
    fn print(&self, text: &str) {
        eprint!("{text}");
    }

    fn log(&self, level: Level, text: &str) {
        let prefix = match level {
            Level::Fatal => "FATAL: ",
            Level::Alert => "ALERT: ",
            Level::Warning => "WARNING: ",
            Level::Notice => "",
            Level::Info | Level::Debug => return,
        };
        eprintln!("{prefix}{text}");
    }

    fn warn(&self, warning: &Warning) {
        eprintln!("{}\n  {}", warning.text, warning.fix);
    }

    fn read_options(&self, definitions: Option<&[OptionDefinition]>) -> Result<Vec<(String, Value)>, String> {
        let mut registry = self.registry();
        options::set_script_options(&mut registry, definitions, &self.script)
            .map_err(|errors| errors.join("\n  "))?;
        registry.values()
    }

    fn options(&self) -> Vec<(String, Value)> {
        self.registry().values().unwrap_or_default()
    }

    fn print_options(&self, options: &[OptionDefinition]) {
        options.iter().for_each(|option| eprintln!("  --{}", option.name));
    }

    fn argv(&self) -> &[String] {
        &self.argv
    }

    fn command(&self) -> Option<&str> {
        Some(self.command)
    }

    fn script_path(&self) -> Option<&str> {
        Some(&self.script.path)
    }
}

/// The configuration of the script, with the interface of sysbench 1.0.
pub(super) fn script_config(plan: &Plan, script: &ScriptWorkload) -> ScriptConfig {
    let ModulePaths { path, cpath } = module_paths();
    let name = Path::new(&script.path).file_name().map_or("".into(), |name| name.to_string_lossy());
    let version = Compat::V1_0.version();
    ScriptConfig {
        source: Source::File(script.path.clone()),
        name: name.into(),
        path,
        cpath,
        version: version.into(),
        version_string: format!("sysbench {version}"),
        compat: Compat::V1_0,
        random: random_settings(&options::plan_registry(plan), &plan.workload.keys, plan.seed),
        percentile: PERCENTILE,
        threads: plan.load.connections,
        jit: Jit::Auto,
        database: Database {
            driver: options::driver_name(&plan.target).into(),
            prepared: plan.workload.statements == StatementMode::Prepared,
            dry_run: false,
            driver_error: None,
            server_names: server_names(&plan.target),
        },
    }
}

/// The names of the servers in messages.
fn server_names(target: &Target) -> Vec<String> {
    let name = |endpoint: &Endpoint| match endpoint {
        Endpoint::Tcp { host, port } => format!("host '{host}', port {port}"),
        Endpoint::Unix { path } => format!("socket '{path}'"),
    };
    target.endpoints().iter().map(name).collect()
}
