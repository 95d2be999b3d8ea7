//! The options that a script reads. The plan gives the values of sysbench's options, and `workload.script.options` the
//! values of the script's options.

use dbdyno_schema::plan::{
    Constant, Distribution, Endpoint, Plan, Poisson, ScriptOption, ScriptWorkload, Shape, StatementMode,
    Target,
};
use dbdyno_sysbench::Compat;
use dbdyno_sysbench::option_definition::{Kind, OptionDefinition};
use dbdyno_sysbench::registry::Registry;

const KEY: &str = "workload.script.options";
const SECOND_US: u64 = 1_000_000;

/// The name that sysbench gives to the target's driver.
pub(super) fn driver_name(target: &Target) -> &'static str {
    if target.is_postgresql() { "pgsql" } else { "mysql" }
}

/// Creates a registry of sysbench's options with the plan's values. The plan does not contain the password.
pub(super) fn plan_registry(plan: &Plan) -> Registry {
    let mut registry = Registry::new(Compat::V1_0);
    let mut set = |name: &str, value: String| {
        let result = registry.set(name, Some(&value));
        debug_assert!(result.is_ok(), "{name}");
    };
    let to_int = |value: u64| value.min(i32::MAX as u64).to_string();
    set("threads", to_int(plan.load.connections.into()));
    set("events", to_int(plan.phases.events.unwrap_or_default()));
    set("time", to_int(plan.phases.measure_us.div_ceil(SECOND_US)));
    set("rate", to_int(rate_per_s(&plan.load.shape)));
    set("report-interval", to_int(plan.report.interval_us / SECOND_US));
    set("rand-seed", (plan.seed & i32::MAX as u64).to_string());
    set("db-driver", driver_name(&plan.target).into());
    let prepared = plan.workload.statements == StatementMode::Prepared;
    set("db-ps-mode", if prepared { "auto" } else { "disable" }.into());
    let distribution = match plan.workload.keys {
        Distribution::Uniform => "uniform",
        Distribution::Gaussian { iterations } => {
            set("rand-spec-iter", iterations.to_string());
            "gaussian"
        }
        Distribution::Special { iterations, percent, hot_percent } => {
            set("rand-spec-iter", iterations.to_string());
            set("rand-spec-pct", percent.to_string());
            set("rand-spec-res", hot_percent.to_string());
            "special"
        }
        Distribution::Pareto { h } => {
            set("rand-pareto-h", h.to_string());
            "pareto"
        }
        Distribution::Zipfian { .. } | Distribution::Nurand { .. } => "zipfian",
    };
    set("rand-type", distribution.into());
    match &plan.target {
        Target::Mysql { endpoints, user, database, .. } => {
            set("mysql-user", user.clone());
            set("mysql-db", database.clone());
            let (hosts, ports, sockets) = join_addresses(endpoints);
            set("mysql-host", hosts);
            set("mysql-port", ports);
            set("mysql-socket", sockets);
        }
        Target::Postgresql { endpoints, user, database, .. } => {
            set("pgsql-user", user.clone());
            set("pgsql-db", database.clone());
            let host = endpoints.first().map(|endpoint| match endpoint {
                Endpoint::Tcp { host, .. } => host.clone(),
                Endpoint::Unix { path } => path.rsplit_once('/').map_or("", |(folder, _)| folder).into(),
            });
            set("pgsql-host", host.unwrap_or_default());
            if let Some(Endpoint::Tcp { port, .. }) = endpoints.first() {
                set("pgsql-port", port.to_string());
            }
        }
        Target::Null { .. } => {}
    }
    registry
}

/// Events per second in an open loop; 0 in a closed loop.
fn rate_per_s(shape: &Shape) -> u64 {
    match shape {
        Shape::Constant(Constant { rate_per_s }) | Shape::Poisson(Poisson { rate_per_s }) => {
            *rate_per_s as u64
        }
        _ => 0,
    }
}

/// Returns the hosts, the ports and the sockets, each as a comma-separated list.
fn join_addresses(endpoints: &[Endpoint]) -> (String, String, String) {
    let (mut hosts, mut ports, mut sockets) = (Vec::new(), Vec::new(), Vec::new());
    for endpoint in endpoints {
        match endpoint {
            Endpoint::Tcp { host, port } => {
                hosts.push(host.clone());
                ports.push(port.to_string());
            }
            Endpoint::Unix { path } => sockets.push(path.clone()),
        }
    }
    (hosts.join(","), ports.join(","), sockets.join(","))
}

/// Declares the script's options and sets them from the plan. A script that defines no options, as was usual before
/// sysbench 1.0, accepts any option.
///
/// # Errors
/// One sentence for each invalid option.
pub(super) fn set_script_options(
    registry: &mut Registry,
    definitions: Option<&[OptionDefinition]>,
    script: &ScriptWorkload,
) -> Result<(), Vec<String>> {
    let is_same = |one: &str, other: &str| one.replace('-', "_") == other.replace('-', "_");
    let mut errors = Vec::new();
    let options = definitions.unwrap_or_default();
    let are_sysbench_options: Vec<_> =
        script.options.keys().map(|name| registry.kind(name).is_some()).collect();
    options.iter().for_each(|option| registry.declare(option.clone()));
    for ((name, value), is_sysbench_option) in script.options.iter().zip(are_sysbench_options) {
        let error = match options.iter().find(|option| is_same(&option.name, name)) {
            Some(option) => check_kind(option.kind, value),
            None if is_sysbench_option => {
                Some("is a sysbench option, not one of the script: set it in the rest of the plan".into())
            }
            None if definitions.is_none() => {
                let default = Some(value.to_string());
                registry.declare(OptionDefinition {
                    name: name.clone(),
                    kind: Kind::String,
                    default,
                    help: None,
                });
                None
            }
            None => {
                let known: Vec<_> = options.iter().map(|option| option.name.as_str()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Some(format!("is not an option of the script; it declares {known}"))
            }
        };
        match error {
            Some(error) => errors.push(format!("{KEY}.{name} {error}")),
            None => {
                let result = registry.set(name, Some(&value.to_string()));
                debug_assert!(result.is_ok(), "{name}");
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Returns an error if an option of this kind cannot have this value.
fn check_kind(kind: Kind, value: &ScriptOption) -> Option<String> {
    use ScriptOption::{Integer, Number, Switch, Text};
    let expected = match (kind, value) {
        (Kind::Bool, Switch(_))
        | (Kind::Double, Integer(_) | Number(_))
        | (Kind::String | Kind::List, Text(_)) => return None,
        (Kind::Int, Integer(number)) if i32::try_from(*number).is_ok() => return None,
        (Kind::Size, Integer(number)) if *number >= 0 => return None,
        (Kind::Bool, _) => "true or false",
        (Kind::Int, _) => "a 32-bit integer",
        (Kind::Size, _) => "a number of bytes",
        (Kind::Double, _) => "a number",
        (Kind::String, _) => "a string",
        (Kind::List, _) => "a comma-separated string",
        (Kind::File, _) => {
            return Some(
                "names an option file, which a plan does not support: list the options themselves".into(),
            );
        }
    };
    let actual = match value {
        Text(text) => format!("{text:?}"),
        Switch(on) => on.to_string(),
        other => other.to_string(),
    };
    Some(format!("is {actual}; the script declares {expected}"))
}
