//! What is to run; plain data, shared by all states of a run.

use dbdyno_schema::plan::Distribution;

/// A script and how its states are made.
#[derive(Clone, Debug)]
pub struct Program {
    /// The script.
    pub source: Source,
    /// Its name in messages: the file's name without folders.
    pub name: String,
    /// `package.path`, complete.
    pub path: String,
    /// `package.cpath`, complete.
    pub cpath: String,
    /// `sysbench.version`, such as `1.0.20`.
    pub version: String,
    /// `sysbench.version_string`, such as `sysbench 1.0.20`.
    pub version_string: String,
    /// Whether the interface is that of 1.0, with the one of 0.5 beside it, or that of 1.1.
    pub compat: Compat,
    /// Random numbers.
    pub random: RandomSettings,
    /// Of which percentile reports tell, the first of `--percentile`; 0 where there is none.
    pub percentile: f64,
    /// Number of users of a run, `--threads`.
    pub threads: u32,
    /// Whether traces are compiled.
    pub jit: Jit,
    /// Database settings.
    pub database: Database,
}

/// Which sysbench the interface is that of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// 1.0.20.
    #[default]
    V10,
    /// 1.1.
    V11,
}

/// Where a script comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Its text, and its name as Lua wants it: `@` and a path, or `=stdin`.
    Text {
        /// The script. A first line that begins with `#` is skipped.
        text: Vec<u8>,
        /// Chunk name.
        chunk: String,
    },
    /// A file, which Lua loads.
    File(String),
    /// A module found by `require`.
    Module(String),
}

/// How `sysbench.rand` draws.
#[derive(Clone, Debug)]
pub struct RandomSettings {
    /// Seed of the users' streams.
    pub seed: u64,
    /// What `sysbench.rand.default` draws by.
    pub distribution: Distribution,
    /// `--rand-pareto-h`.
    pub pareto_h: f64,
    /// `--rand-zipfian-exp`.
    pub zipfian_exponent: f64,
    /// `--rand-spec-iter`, for `gaussian` too.
    pub iterations: u32,
    /// `--rand-spec-pct`.
    pub special_percent: u32,
    /// `--rand-spec-res`.
    pub special_hot_percent: u32,
}

/// Whether LuaJIT compiles traces. Thousands of states on one core evict each other's machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jit {
    /// While there are few states on a worker.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// What `sysbench.sql` needs to know of the database options.
#[derive(Clone, Debug)]
pub struct Database {
    /// `--db-driver`: `mysql` or `pgsql`.
    pub driver: String,
    /// `--db-ps-mode`: whether statements are prepared on the server.
    pub prepared: bool,
    /// Whether nothing is sent at all, `--mysql-dry-run`.
    pub dry_run: bool,
    /// Why there is no driver: told when the script asks for one.
    pub fault: Option<String>,
    /// What MySQL's driver calls the places where it looks for servers, in the order of the target's endpoints.
    pub places: Vec<String>,
}

/// sysbench's defaults.
impl Default for Database {
    fn default() -> Self {
        Self { driver: "mysql".into(), prepared: true, dry_run: false, fault: None, places: Vec::new() }
    }
}

impl Database {
    /// Whether statements go to PostgreSQL.
    pub fn is_pgsql(&self) -> bool {
        self.driver == "pgsql"
    }
}
