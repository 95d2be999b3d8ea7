//! Helpers of the unit tests: a host that records its calls, and a request handler without a server.

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use dbdyno_schema::plan::Distribution;
use dbdyno_schema::record::Warning;
use dbdyno_sysbench::option_definition::{OptionDefinition, Value};

use dbdyno_sysbench::Compat;
use dbdyno_sysbench::log::Level;

use crate::config::{Database, Jit, RandomSettings, ScriptConfig, Source};
use crate::context::{Context, RequestHandler};
use crate::error::ScriptError;
use crate::host::ScriptHost;
use crate::sql::{Answer, Request};
use crate::state::State;
use crate::task::Progress;
use crate::vm::Vm;

#[derive(Default)]
pub(crate) struct RecordingHost {
    pub(crate) printed: Mutex<String>,
    pub(crate) logged: Mutex<Vec<(Level, String)>>,
    pub(crate) options: Vec<(String, Value)>,
    pub(crate) argv: Vec<String>,
    pub(crate) command: Option<String>,
    pub(crate) compat: Compat,
    /// `--percentile`; 95 by default.
    pub(crate) percentile: Option<f64>,
    /// Whether LuaJIT only interprets the script.
    pub(crate) interpreted: bool,
    /// `test.lua` by default.
    pub(crate) script_path: Option<String>,
    /// The argument of the last `read_options`.
    pub(crate) declared: Mutex<Option<Vec<OptionDefinition>>>,
}

impl ScriptHost for RecordingHost {
    fn print(&self, text: &str) {
        self.printed.lock().unwrap().push_str(text);
    }

    fn log(&self, level: Level, text: &str) {
        self.logged.lock().unwrap().push((level, text.to_owned()));
    }

    fn warn(&self, warning: &Warning) {
        self.log(Level::Warning, &warning.code);
    }

    fn read_options(&self, declared: Option<&[OptionDefinition]>) -> Result<Vec<(String, Value)>, String> {
        *self.declared.lock().unwrap() = declared.map(<[_]>::to_vec);
        match self.argv.iter().any(|argument| argument == "--unknown") {
            true if declared.is_some() => Err("invalid option: --unknown".into()),
            _ => Ok(self.options.clone()),
        }
    }

    fn options(&self) -> Vec<(String, Value)> {
        self.options.clone()
    }

    fn print_options(&self, declared: &[OptionDefinition]) {
        self.print(&format!("{declared:?}\n"));
    }

    fn argv(&self) -> &[String] {
        &self.argv
    }

    fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }

    fn script_path(&self) -> Option<&str> {
        Some(self.script_path.as_deref().unwrap_or("test.lua"))
    }
}

/// A request handler that fails every request.
pub(crate) struct NoDatabase;

impl RequestHandler for NoDatabase {
    fn handle(&self, _context: &Context, _request: Request) -> Answer {
        Answer::Flag(false)
    }

    fn use_database(&self) {}

    fn restart_event(&self) {}

    fn start_event(&self) {}

    fn stop_event(&self) {}
}

/// The configuration of the script `text`, with sysbench's defaults.
pub(crate) fn config(text: &str) -> ScriptConfig {
    ScriptConfig {
        source: Source::Text { text: text.into(), chunk: "@test.lua".into() },
        name: "test.lua".into(),
        path: "./?.lua".into(),
        cpath: "./?.so".into(),
        version: "1.0.20".into(),
        version_string: "sysbench 1.0.20".into(),
        compat: Compat::V1_0,
        random: RandomSettings {
            seed: 7,
            distribution: Distribution::Special { iterations: 12, percent: 1, hot_percent: 75 },
            pareto_h: 0.2,
            zipfian_exponent: 0.8,
            iterations: 12,
            special_percent: 1,
            special_hot_percent: 75,
        },
        percentile: 95.0,
        threads: 1,
        jit: Jit::Auto,
        database: Database::default(),
    }
}

/// Creates a user and runs the chunk `text`.
pub(crate) fn state(text: &str, host: &Arc<RecordingHost>) -> State {
    let dyn_host: Arc<dyn ScriptHost> = host.clone();
    let default = config(text);
    let percentile = host.percentile.unwrap_or(default.percentile);
    let config = ScriptConfig { compat: host.compat, percentile, ..default };
    let vm = Vm::single(!host.interpreted).unwrap();
    user(0, config, &dyn_host, &vm)
}

/// Creates `count` users of one shared Lua state, and runs the chunk `text` for each in turn.
pub(crate) fn users(text: &str, host: &Arc<RecordingHost>, count: i64) -> Vec<State> {
    let dyn_host: Arc<dyn ScriptHost> = host.clone();
    let vm = Vm::shared(!host.interpreted).unwrap();
    let config = || ScriptConfig { compat: host.compat, ..config(text) };
    (0..count).map(|number| user(number, config(), &dyn_host, &vm)).collect()
}

fn user(number: i64, config: ScriptConfig, host: &Arc<dyn ScriptHost>, vm: &Rc<Vm>) -> State {
    let state = State::new(number, &Arc::new(config), host, Rc::new(NoDatabase), vm).unwrap();
    match state.chunk().unwrap().start(&[]) {
        Progress::Returned(_) => state,
        other => panic!("the chunk failed: {other:?}"),
    }
}

/// Runs `text` and returns what it printed.
pub(crate) fn printed(text: &str) -> String {
    let host = Arc::new(RecordingHost::default());
    state(text, &host);
    host.printed.lock().unwrap().clone()
}

/// Runs the chunk `text`, which must fail, and returns its error.
pub(crate) fn failure(text: &str) -> ScriptError {
    let host: Arc<dyn ScriptHost> = Arc::new(RecordingHost::default());
    let state =
        State::new(0, &Arc::new(config(text)), &host, Rc::new(NoDatabase), &Vm::single(true).unwrap())
            .unwrap();
    let mut chunk = match state.chunk() {
        Ok(chunk) => chunk,
        Err(error) => return error,
    };
    match chunk.start(&[]) {
        Progress::Failed(error) => error,
        other => panic!("the chunk did not fail: {other:?}"),
    }
}
