//! What the tests of this crate run scripts with: a front that keeps what it hears, and a world without servers.

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use dbdyno_schema::plan::Distribution;
use dbdyno_schema::record::Warning;
use dbdyno_sysbench::declaration::{Declared, Value};

use crate::context::{Context, World};
use crate::error::ScriptError;
use crate::front::{Front, Level};
use crate::program::{Compat, Database, Jit, Program, RandomSettings, Source};
use crate::sql::{Answer, Request};
use crate::state::State;
use crate::task::Step;
use crate::vm::Vm;

/// Keeps what it hears.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) printed: Mutex<String>,
    pub(crate) logged: Mutex<Vec<(Level, String)>>,
    pub(crate) options: Vec<(String, Value)>,
    pub(crate) argv: Vec<String>,
    pub(crate) command: Option<String>,
    pub(crate) compat: Compat,
    /// Of which percentile reports tell; the 95th where this says nothing.
    pub(crate) percentile: Option<f64>,
    /// Whether traces are not compiled.
    pub(crate) interpreted: bool,
    /// Where the script is; `test.lua` where this says nothing.
    pub(crate) script_path: Option<String>,
    /// What a script declared when its options were read last.
    pub(crate) declared: Mutex<Option<Vec<Declared>>>,
}

impl Front for Heard {
    fn print(&self, text: &str) {
        self.printed.lock().unwrap().push_str(text);
    }

    fn log(&self, level: Level, text: &str) {
        self.logged.lock().unwrap().push((level, text.to_owned()));
    }

    fn warn(&self, warning: &Warning) {
        self.log(Level::Warning, &warning.code);
    }

    fn read_options(&self, declared: Option<&[Declared]>) -> Result<Vec<(String, Value)>, String> {
        *self.declared.lock().unwrap() = declared.map(<[_]>::to_vec);
        match self.argv.iter().any(|argument| argument == "--unknown") {
            true if declared.is_some() => Err("invalid option: --unknown".into()),
            _ => Ok(self.options.clone()),
        }
    }

    fn options(&self) -> Vec<(String, Value)> {
        self.options.clone()
    }

    fn print_options(&self, declared: &[Declared]) {
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

/// Has nothing, and answers so.
pub(crate) struct Nowhere;

impl World for Nowhere {
    fn at_once(&self, _context: &Context, _request: Request) -> Answer {
        Answer::Flag(false)
    }

    fn database_is_used(&self) {}

    fn restarted(&self) {}

    fn event_start(&self) {}

    fn event_stop(&self) {}
}

/// A program with the text `text` and sysbench's defaults.
pub(crate) fn program(text: &str) -> Program {
    Program {
        source: Source::Text { text: text.into(), chunk: "@test.lua".into() },
        name: "test.lua".into(),
        path: "./?.lua".into(),
        cpath: "./?.so".into(),
        version: "1.0.20".into(),
        version_string: "sysbench 1.0.20".into(),
        compat: Compat::V10,
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

/// A state with `text`, whose chunk has run.
pub(crate) fn state(text: &str, heard: &Arc<Heard>) -> State {
    let front: Arc<dyn Front> = heard.clone();
    let usual = program(text);
    let percentile = heard.percentile.unwrap_or(usual.percentile);
    let program = Program { compat: heard.compat, percentile, ..usual };
    let vm = Vm::own(!heard.interpreted).unwrap();
    user(0, program, &front, &vm)
}

/// As many users of one state with `text`, whose chunks have run one after the other.
pub(crate) fn users(text: &str, heard: &Arc<Heard>, count: i64) -> Vec<State> {
    let front: Arc<dyn Front> = heard.clone();
    let vm = Vm::shared(!heard.interpreted).unwrap();
    let program = || Program { compat: heard.compat, ..program(text) };
    (0..count).map(|number| user(number, program(), &front, &vm)).collect()
}

fn user(number: i64, program: Program, front: &Arc<dyn Front>, vm: &Rc<Vm>) -> State {
    let state = State::new(number, &Arc::new(program), front, Rc::new(Nowhere), vm).unwrap();
    match state.chunk().unwrap().begin(&[]) {
        Step::Done(_) => state,
        other => panic!("the chunk: {other:?}"),
    }
}

/// Runs `text` and returns what it printed.
pub(crate) fn printed(text: &str) -> String {
    let heard = Arc::new(Heard::default());
    state(text, &heard);
    heard.printed.lock().unwrap().clone()
}

/// The error with which `text` fails as a chunk.
pub(crate) fn failure(text: &str) -> ScriptError {
    let front: Arc<dyn Front> = Arc::new(Heard::default());
    let state =
        State::new(0, &Arc::new(program(text)), &front, Rc::new(Nowhere), &Vm::own(true).unwrap()).unwrap();
    let mut chunk = match state.chunk() {
        Ok(chunk) => chunk,
        Err(error) => return error,
    };
    match chunk.begin(&[]) {
        Step::Failed(error) => error,
        other => panic!("it did not fail: {other:?}"),
    }
}
