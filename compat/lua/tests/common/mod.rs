//! Runs scripts against a server in memory, and keeps their output, log lines and records.

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use dbdyno_lua::run::{LuaFailure, Script, ScriptSetup, load};
use dbdyno_lua::{Database, Jit, RandomSettings, ScriptConfig, ScriptHost, Source};
use dbdyno_runner::{MeasurementEnd, RunEnd, RunSpec, Secrets, Sink};
use dbdyno_schema::Record;
use dbdyno_schema::plan::{Distribution, Plan};
use dbdyno_schema::record::{Counts, End, PhaseName, Warning};
use dbdyno_sysbench::Compat;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::option_definition::{OptionDefinition, Value};

/// Records its calls.
#[derive(Default)]
pub struct RecordingHost {
    pub printed: Mutex<String>,
    pub logged: Mutex<Vec<String>>,
    threads: u32,
}

impl ScriptHost for RecordingHost {
    fn print(&self, text: &str) {
        self.printed.lock().unwrap().push_str(text);
    }
    fn log(&self, level: Level, text: &str) {
        self.logged.lock().unwrap().push(format!("{level:?}: {text}"));
    }
    fn warn(&self, warning: &Warning) {
        self.log(Level::Warning, &warning.code);
    }
    fn read_options(&self, _declared: Option<&[OptionDefinition]>) -> Result<Vec<(String, Value)>, String> {
        Ok(self.options())
    }
    fn options(&self) -> Vec<(String, Value)> {
        vec![("threads".into(), Value::Int(self.threads as i32))]
    }
    fn print_options(&self, _declared: &[OptionDefinition]) {}
    fn argv(&self) -> &[String] {
        &[]
    }
    fn command(&self) -> Option<&str> {
        Some("run")
    }
    fn script_path(&self) -> Option<&str> {
        None
    }
}

/// Keeps every record.
#[derive(Default)]
pub struct Records(pub Vec<Record>);

impl Sink for Records {
    fn record(&mut self, record: &Record) -> bool {
        self.0.push(record.clone());
        true
    }
}

impl Records {
    pub fn end_record(&self) -> &End {
        match self.0.last() {
            Some(Record::End(end)) => end,
            other => panic!("the last record is {other:?}"),
        }
    }
    pub fn counts(&self) -> &Counts {
        &self.end_record().phases[&PhaseName::Measure].counts
    }
    pub fn warnings(&self) -> Vec<&str> {
        let code = |record: &'_ Record| matches!(record, Record::Warning(_));
        let warnings = self.0.iter().filter(|record| code(record));
        warnings
            .map(|record| if let Record::Warning(warning) = record { warning.code.as_str() } else { "" })
            .collect()
    }
}

/// The settings of a run.
pub struct Run {
    pub threads: u32,
    pub workers: u32,
    pub events: Option<u64>,
    pub time_ms: u64,
    pub one_thread_per_user: Option<bool>,
    /// Length of an interval; 0 for no intervals.
    pub interval_ms: u64,
    pub marks_ms: Vec<u64>,
}

impl Default for Run {
    /// Two users on one thread, ten events.
    fn default() -> Self {
        Self {
            threads: 2,
            workers: 1,
            events: Some(10),
            time_ms: 0,
            one_thread_per_user: None,
            interval_ms: 0,
            marks_ms: Vec::new(),
        }
    }
}

/// The outcome of a run.
pub struct RunResult {
    pub end: RunEnd,
    pub host: Arc<RecordingHost>,
    pub records: Records,
}

impl RunResult {
    pub fn printed(&self) -> String {
        self.host.printed.lock().unwrap().clone()
    }
    pub fn logged(&self) -> Vec<String> {
        self.host.logged.lock().unwrap().clone()
    }
}

impl Run {
    fn plan(&self) -> Plan {
        let plan = serde_json::json!({
            "schema": 1, "seed": 1, "target": {"protocol": "null", "answer_us": 0},
            "workload": {"name": "oltp_point_select"}, "load": {"connections": self.threads, "shape": "closed"},
            "phases": {"warmup_us": 0, "measure_us": self.time_ms * 1000, "events": self.events,
                       "drain_us": 60_000_000},
            "report": {"interval_us": self.interval_ms * 1000,
                       "marks_us": self.marks_ms.iter().map(|mark| mark * 1000).collect::<Vec<_>>()},
            "client": {"workers": self.workers},
        });
        serde_json::from_value(plan).expect("the plan is valid")
    }

    /// Loads `text` and reads its options.
    pub fn load(&self, text: &str) -> Result<(Rc<dyn Script>, Arc<RecordingHost>), LuaFailure> {
        let host = Arc::new(RecordingHost { threads: self.threads, ..RecordingHost::default() });
        let config = ScriptConfig {
            source: Source::Text { text: text.into(), chunk: "@test.lua".into() },
            name: "test.lua".into(),
            path: String::new(),
            cpath: String::new(),
            version: "1.0.20".into(),
            version_string: "sysbench 1.0.20".into(),
            compat: Compat::V1_0,
            random: RandomSettings {
                seed: 1,
                distribution: Distribution::Uniform,
                pareto_h: 0.2,
                zipfian_exponent: 0.8,
                iterations: 12,
                special_percent: 1,
                special_hot_percent: 75,
            },
            percentile: 95.0,
            threads: self.threads,
            jit: Jit::Auto,
            database: Database::default(),
        };
        let script_host: Arc<dyn ScriptHost> = host.clone();
        let mut spec = RunSpec::new(self.plan(), Secrets::default());
        spec.options.measurement_end = MeasurementEnd::AfterLastEvent;
        let main = load(ScriptSetup {
            spec,
            config,
            host: script_host,
            one_thread_per_user: self.one_thread_per_user,
        })?;
        main.read_options()?;
        Ok((main, host))
    }

    /// Runs `text`.
    pub fn run(&self, text: &str) -> RunResult {
        let (main, host) = self.load(text).expect("the script loads");
        let (_control, inbox) = dbdyno_runner::channel();
        let mut records = Records::default();
        let end = main.run(inbox, &mut records);
        RunResult { end, host, records }
    }
}
