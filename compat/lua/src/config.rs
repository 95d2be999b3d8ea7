//! A script and its settings: plain data, shared by all states of a run.

use dbdyno_schema::plan::Distribution;
use dbdyno_sysbench::Compat;

/// A script and the settings of its states.
#[derive(Clone, Debug)]
pub struct ScriptConfig {
    /// Where the script comes from.
    pub source: Source,
    /// The file's name without folders, for messages.
    pub name: String,
    /// The full value of `package.path`.
    pub path: String,
    /// The full value of `package.cpath`.
    pub cpath: String,
    /// `sysbench.version`, such as `1.0.20`.
    pub version: String,
    /// `sysbench.version_string`, such as `sysbench 1.0.20`.
    pub version_string: String,
    /// The version of sysbench's interface; 1.0 includes that of 0.5.
    pub compat: Compat,
    /// Settings of `sysbench.rand`.
    pub random: RandomSettings,
    /// The first percentile of `--percentile`; 0 if there is none.
    pub percentile: f64,
    /// Number of users of a run, `--threads`.
    pub threads: u32,
    /// Whether LuaJIT compiles traces.
    pub jit: Jit,
    /// Database settings.
    pub database: Database,
}

/// Where a script comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Text that dbdyno has read from standard input.
    Text {
        /// A first line that begins with `#` is skipped.
        text: Vec<u8>,
        /// The chunk name in Lua's form: `@` and a path, or `=stdin`.
        chunk: String,
    },
    /// A file, which Lua loads.
    File(String),
    /// A module that `require` finds.
    Module(String),
}

/// Settings of `sysbench.rand`.
#[derive(Clone, Debug)]
pub struct RandomSettings {
    /// Seed of the users' streams.
    pub seed: u64,
    /// `sysbench.rand.default`.
    pub distribution: Distribution,
    /// `--rand-pareto-h`.
    pub pareto_h: f64,
    /// `--rand-zipfian-exp`.
    pub zipfian_exponent: f64,
    /// `--rand-spec-iter`, which the `gaussian` distribution uses too.
    pub iterations: u32,
    /// `--rand-spec-pct`.
    pub special_percent: u32,
    /// `--rand-spec-res`.
    pub special_hot_percent: u32,
}

/// Whether LuaJIT compiles traces. Thousands of states on one core evict each other's machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jit {
    /// Compile traces if a worker has few states.
    #[default]
    Auto,
    /// Always compile traces.
    On,
    /// Never compile traces.
    Off,
}

/// The database options that `sysbench.sql` reads.
#[derive(Clone, Debug)]
pub struct Database {
    /// `--db-driver`: `mysql` or `pgsql`.
    pub driver: String,
    /// `--db-ps-mode`: whether the server prepares statements.
    pub prepared: bool,
    /// `--mysql-dry-run`: statements are not sent.
    pub dry_run: bool,
    /// Why there is no driver: the message if a script requests one. `None` if there is a driver.
    pub driver_error: Option<String>,
    /// Names of the target's endpoints in messages of MySQL's driver.
    pub server_names: Vec<String>,
}

/// sysbench's defaults.
impl Default for Database {
    fn default() -> Self {
        Self {
            driver: "mysql".into(),
            prepared: true,
            dry_run: false,
            driver_error: None,
            server_names: Vec::new(),
        }
    }
}

impl Database {
    /// Whether the driver is PostgreSQL's.
    pub fn is_pgsql(&self) -> bool {
        self.driver == "pgsql"
    }
}
