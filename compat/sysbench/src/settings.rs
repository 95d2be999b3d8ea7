//! The validated general options.

use dbdyno_schema::plan::{Distribution, Endpoint, limits};

use super::Compat;
use super::driver::{self, Driver};
use super::error::OptionError;
use super::log::Level;
use super::registry::Registry;

/// The format of the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
    Csv,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub compat: Compat,
    pub threads: u32,
    /// Maximum number of events; 0 for no limit.
    pub events: u64,
    /// Time limit in seconds; 0 for no limit.
    pub time_s: u32,
    pub warmup_s: u32,
    pub init_timeout_s: u64,
    /// Time of the forced shutdown in seconds after the start; `None` for no forced shutdown.
    pub forced_shutdown_s: Option<u64>,
    /// Events per second; 0 for no limit (a closed loop).
    pub rate: u32,
    /// The rate as the option states it, possibly negative; it is printed before the run.
    pub raw_rate: i32,
    /// Seconds between interval lines; 0 for no interval lines.
    pub report_interval_s: u32,
    /// Times of the checkpoints in seconds after the start, ascending.
    pub checkpoints_s: Vec<u32>,
    pub debug: bool,
    pub validate: bool,
    pub verbosity: Level,
    /// The percentiles to report; empty if `--percentile=0` disables them.
    pub percentiles: Vec<f64>,
    pub histogram: bool,
    /// The seed; 0 for a seed from the time of day.
    pub seed: i32,
    pub keys: Distribution,
    pub driver: Driver,
    /// MySQL's servers, each with its name in the driver's messages.
    pub servers: Vec<(Endpoint, String)>,
    pub format: Format,
    pub report_errors: bool,
    /// Number of event loops; 0 for the default.
    pub workers: u32,
    /// Whether every user of a script has its own thread; `None`: the script's declarations decide.
    pub one_thread_per_user: Option<bool>,
    /// Whether LuaJIT compiles traces; `None`: the number of Lua states decides.
    pub jit: Option<bool>,
    /// The memory in bytes that a script may use; `None` for the default.
    pub lua_memory: Option<u64>,
    pub warnings: Vec<String>,
}

impl Settings {
    /// Reads the options in the order in which sysbench checks them.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn read(registry: &Registry, compat: Compat) -> Result<Self, OptionError> {
        let mut warnings = Vec::new();
        let debug = registry.bool("debug");
        let verbosity = verbosity(registry, debug)?;
        let threads = read_with_old_name(registry, &mut warnings, "threads", "num-threads", 1)?;
        if threads <= 0 {
            return Err(OptionError::Fatal(format!("Invalid value for --threads: {threads}.\n")));
        }
        let events = read_with_old_name(registry, &mut warnings, "events", "max-requests", 0)?.max(0) as u64;
        let time = read_with_old_name(registry, &mut warnings, "time", "max-time", 0)?;
        let raw_rate = read_with_old_name(registry, &mut warnings, "rate", "tx-rate", 0)?;
        let time_s = time.max(0) as u32;
        if events == 0 && time_s == 0 {
            warnings.push("Both event and time limits are disabled, running an endless test".into());
        }
        let warmup = registry.int("warmup-time")?;
        if warmup < 0 {
            return Err(OptionError::Fatal(format!("Invalid value for --warmup-time: {warmup}.\n")));
        }
        let histogram = registry.bool("histogram");
        let percentiles = percentiles(registry)?;
        if registry.size("thread-stack-size") == 0 {
            return Err(OptionError::Fatal("Invalid value for thread-stack-size: 0.\n".into()));
        }
        if histogram && percentiles.is_empty() {
            return Err(OptionError::Fatal("--histogram cannot be used with --percentile=0".into()));
        }
        Ok(Self {
            compat,
            threads: threads as u32,
            events,
            time_s,
            warmup_s: warmup as u32,
            init_timeout_s: driver::init_timeout_s(registry)?,
            forced_shutdown_s: forced_shutdown(registry, time_s)?,
            rate: raw_rate.max(0) as u32,
            raw_rate,
            report_interval_s: registry.int("report-interval")?.max(0) as u32,
            checkpoints_s: checkpoints(registry)?,
            debug,
            validate: registry.bool("validate"),
            verbosity,
            percentiles,
            histogram,
            seed: registry.int("rand-seed")?,
            keys: key_distribution(registry, compat)?,
            // `plan` reports an invalid driver, for tests that need a driver.
            driver: driver::driver(registry).unwrap_or(Driver::Mysql),
            servers: driver::servers(registry).unwrap_or_default(),
            format: format(registry)?,
            report_errors: registry.bool("report-errors"),
            workers: registry.int("workers")?.clamp(0, limits::WORKERS as i32) as u32,
            one_thread_per_user: auto_on_off(registry, "lua-threads")?,
            jit: auto_on_off(registry, "lua-jit")?,
            lua_memory: lua_memory(registry)?,
            warnings,
        })
    }

    /// The lines that sysbench prints before a run.
    pub fn announcement(&self) -> Vec<String> {
        let mut lines = vec![
            "Running the test with following options:".into(),
            format!("Number of threads: {}", self.threads),
        ];
        if self.warmup_s > 0 {
            lines.push(format!("Warmup time: {}s", self.warmup_s));
        }
        if self.raw_rate != 0 {
            lines.push(format!("Target transaction rate: {}/sec", self.raw_rate));
        }
        if self.report_interval_s > 0 {
            lines.push(format!("Report intermediate results every {} second(s)", self.report_interval_s));
        }
        if !self.checkpoints_s.is_empty() {
            let at: Vec<_> = self.checkpoints_s.iter().map(u32::to_string).collect();
            lines.push(format!("Report checkpoint(s) at {} seconds", at.join(", ")));
        }
        if self.debug {
            lines.push("Debug mode enabled.\n".into());
        }
        if self.validate {
            lines.push("Validation checks: on.\n".into());
        }
        lines.push(match self.seed {
            0 => "Initializing random number generator from current time\n".into(),
            seed => format!("Initializing random number generator from seed ({seed}).\n"),
        });
        if let Some(seconds) = self.forced_shutdown_s {
            lines.push(format!("Forcing shutdown in {seconds} seconds"));
        }
        lines.push(String::new());
        lines
    }
}

fn verbosity(registry: &Registry, debug: bool) -> Result<Level, OptionError> {
    let number = registry.int("verbosity")?;
    if debug || registry.bool("mysql-debug") {
        return Ok(Level::Debug);
    }
    let levels = [Level::Fatal, Level::Alert, Level::Warning, Level::Notice, Level::Info, Level::Debug];
    let level = usize::try_from(number).ok().and_then(|at| levels.get(at));
    level.copied().ok_or_else(|| OptionError::Plain(format!("Invalid value for verbosity: {number}")))
}

/// The value of the option `name`, or of its old name if that is set, that is above `default`.
fn read_with_old_name(
    registry: &Registry,
    warnings: &mut Vec<String>,
    name: &str,
    old: &str,
    default: i32,
) -> Result<i32, String> {
    let value = registry.int(old)?;
    if value <= default {
        return registry.int(name);
    }
    warnings.push(format!("--{old} is deprecated, use --{name} instead"));
    Ok(value)
}

fn forced_shutdown(registry: &Registry, time_s: u32) -> Result<Option<u64>, OptionError> {
    let text = registry.string("forced-shutdown").unwrap_or_default();
    let limit = u64::from(time_s);
    if text == "off" {
        return Ok(None);
    }
    if text.is_empty() {
        return Ok(Some(limit + limit * 5 / 100));
    }
    let (digits, percent) = text.strip_suffix('%').map_or((text, false), |digits| (digits, true));
    // 32 bits, like all times, so that sums and products cannot overflow.
    let grace: u32 = digits
        .parse()
        .map_err(|_| OptionError::Fatal(format!("Invalid value for --forced-shutdown: '{text}'")))?;
    let grace = u64::from(grace);
    Ok(Some(limit + if percent { limit * grace / 100 } else { grace }))
}

fn checkpoints(registry: &Registry) -> Result<Vec<u32>, OptionError> {
    let read = |text: &String| {
        let number = text.parse::<i32>().ok().and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| OptionError::Fatal(format!("Invalid value for --report-checkpoints: '{text}'")))
    };
    let mut seconds = registry.list("report-checkpoints").iter().map(read).collect::<Result<Vec<_>, _>>()?;
    seconds.sort_unstable();
    Ok(seconds)
}

/// The percentiles of `--percentile`, which is a list here and a single number in sysbench.
fn percentiles(registry: &Registry) -> Result<Vec<f64>, OptionError> {
    let list = registry.list("percentile");
    if list == ["0"] || list.is_empty() {
        return Ok(Vec::new());
    }
    let read = |text: &String| match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) && percent > 0.0 => Ok(percent),
        Ok(_) => Err(OptionError::Fatal(format!("Invalid value for --percentile: {text}"))),
        Err(_) => Err(OptionError::Usage(format!("Invalid value for the 'percentile' option: '{text}'"))),
    };
    list.iter().map(read).collect()
}

fn key_distribution(registry: &Registry, compat: Compat) -> Result<Distribution, OptionError> {
    let non_negative = |name: &str| registry.int(name).map(|number| number.max(0) as u32);
    let name = registry.string("rand-type").unwrap_or_default();
    Ok(match (name, compat) {
        ("uniform", _) => Distribution::Uniform,
        ("gaussian", Compat::V1_0) => Distribution::Gaussian { iterations: non_negative("rand-spec-iter")? },
        ("gaussian", Compat::V1_1) => Distribution::Gaussian { iterations: 12 },
        ("special", Compat::V1_0) => Distribution::Special {
            iterations: non_negative("rand-spec-iter")?,
            percent: non_negative("rand-spec-pct")?,
            hot_percent: non_negative("rand-spec-res")?,
        },
        ("pareto", _) => Distribution::Pareto { h: registry.double("rand-pareto-h") },
        ("zipfian", Compat::V1_1) => match registry.double("rand-zipfian-exp") {
            exponent if exponent >= 0.0 => Distribution::Zipfian { exponent, scattered: false },
            exponent => {
                return Err(OptionError::Fatal(format!("Invalid value for --rand-zipfian-exp: {exponent}.")));
            }
        },
        _ => return Err(OptionError::Fatal(format!("Invalid random numbers distribution: {name}."))),
    })
}

fn format(registry: &Registry) -> Result<Format, OptionError> {
    match registry.string("report-format").unwrap_or_default() {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        "csv" => Ok(Format::Csv),
        other => Err(OptionError::Usage(format!(
            "Invalid value for the 'report-format' option: '{other}'; it may be text, json or csv"
        ))),
    }
}

/// Reads an option that is auto (`None`), on or off. Without a value it is on.
fn auto_on_off(registry: &Registry, name: &str) -> Result<Option<bool>, OptionError> {
    match registry.string(name).unwrap_or("on") {
        "auto" => Ok(None),
        "on" | "true" | "1" => Ok(Some(true)),
        "off" | "false" | "0" => Ok(Some(false)),
        other => Err(OptionError::Usage(format!(
            "Invalid value for the '{name}' option: '{other}'; it may be auto, on or off"
        ))),
    }
}

fn lua_memory(registry: &Registry) -> Result<Option<u64>, OptionError> {
    match (registry.string("lua-memory"), registry.size("lua-memory")) {
        (None, _) => Ok(None),
        (Some(text), 0) => Err(OptionError::Usage(format!(
            "Invalid value for the 'lua-memory' option: '{text}'; it must be a size such as 4G"
        ))),
        (_, bytes) => Ok(Some(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[(&str, &str)]) -> Result<Settings, OptionError> {
        Settings::read(&crate::testing::registry(options, Compat::V1_0), Compat::V1_0)
    }

    #[test]
    fn the_defaults() {
        let settings = read(&[]).unwrap();
        assert_eq!((settings.threads, settings.time_s, settings.events), (1, 10, 0));
        assert_eq!(settings.percentiles, [95.0]);
        assert_eq!(
            settings.keys,
            Distribution::Special { iterations: 12, percent: 1, hot_percent: 75 },
            "1.0's default"
        );
        assert!(settings.warnings.is_empty());
    }

    #[test]
    fn invalid_values() {
        for (name, value, message) in [
            ("threads", "0", "Invalid value for --threads: 0.\n"),
            ("percentile", "101", "Invalid value for --percentile: 101"),
            ("rand-type", "x", "Invalid random numbers distribution: x."),
            ("thread-stack-size", "x", "Invalid value for thread-stack-size: 0.\n"),
            ("forced-shutdown", "x", "Invalid value for --forced-shutdown: 'x'"),
            ("forced-shutdown", "4294967296", "Invalid value for --forced-shutdown: '4294967296'"),
            ("report-checkpoints", "1,a", "Invalid value for --report-checkpoints: 'a'"),
        ] {
            assert_eq!(read(&[(name, value)]), Err(OptionError::Fatal(message.into())));
        }
        let verbosity = read(&[("verbosity", "9")]);
        assert_eq!(verbosity, Err(OptionError::Plain("Invalid value for verbosity: 9".into())));
        let threads = read(&[("lua-threads", "3")]).unwrap_err();
        let message = "Invalid value for the 'lua-threads' option: '3'; it may be auto, on or off";
        assert_eq!(threads, OptionError::Usage(message.into()));
        assert_eq!(read(&[("lua-threads", "")]).unwrap().one_thread_per_user, Some(true));
        assert!(matches!(read(&[("lua-memory", "much")]), Err(OptionError::Usage(_))));
        assert_eq!(read(&[("lua-memory", "1G")]).unwrap().lua_memory, Some(1 << 30));
        let both = read(&[("percentile", "0"), ("histogram", "on")]);
        assert_eq!(both, Err(OptionError::Fatal("--histogram cannot be used with --percentile=0".into())));
    }

    #[test]
    fn old_option_names_work_with_a_warning() {
        let settings =
            read(&[("num-threads", "4"), ("max-requests", "9"), ("max-time", "2"), ("tx-rate", "5")]);
        let settings = settings.unwrap();
        let taken = (settings.threads, settings.events, settings.time_s, settings.rate);
        assert_eq!((taken, settings.warnings.len()), ((4, 9, 2, 5), 4));
        assert_eq!(settings.warnings[0], "--num-threads is deprecated, use --threads instead");
    }

    #[test]
    fn forced_shutdown_in_seconds_and_percent() {
        for (given, at) in [("off", None), ("3", Some(13)), ("50%", Some(15)), ("", Some(10))] {
            assert_eq!(read(&[("forced-shutdown", given)]).unwrap().forced_shutdown_s, at, "{given}");
        }
    }

    #[test]
    fn announcement_lists_the_settings() {
        let settings =
            read(&[("rate", "50"), ("report-checkpoints", "3,1"), ("rand-seed", "7"), ("debug", "on")]);
        assert_eq!(
            settings.unwrap().announcement().join("\n"),
            "Running the test with following options:\nNumber of threads: 1\nTarget transaction rate: 50/sec\nReport \
             checkpoint(s) at 1, 3 seconds\nDebug mode enabled.\n\nInitializing random number generator from seed \
             (7).\n\n"
        );
    }
}
