//! Checks the Lua script workload of a plan.

use super::{Distribution, Plan, WorkloadName};

const KEY: &str = "workload.script";

impl Plan {
    /// Problems that can be found without reading the script.
    pub(super) fn script_problems(&self) -> Vec<String> {
        let script = match (self.workload.name, self.workload.script.as_deref()) {
            (WorkloadName::Lua, Some(script)) => script,
            (WorkloadName::Lua, None) => {
                return vec![format!(
                    "{KEY} is missing; workload.name is lua, so set the path of the script"
                )];
            }
            (_, Some(_)) => {
                return vec![format!("{KEY} is set, but workload.name is not lua; leave one of them out")];
            }
            (_, None) => return Vec::new(),
        };
        let mut problems = Vec::new();
        for name in script.options.keys().filter(|name| !is_name(name)) {
            problems.push(format!(
                "{KEY}.options has the name {name:?}; use letters, digits, - and _, and begin with a letter"
            ));
        }
        if matches!(self.workload.keys, Distribution::Zipfian { scattered: true, .. }) {
            problems.push("workload.keys is scattered, which scripts do not know; leave it out".into());
        }
        if matches!(self.workload.keys, Distribution::Nurand { .. }) {
            problems.push("workload.keys is nurand, which scripts do not have; use another".into());
        }
        if self.load.reconnect_every > 0 {
            problems.push(format!(
                "load.reconnect_every is {}, but a script opens its connections itself, so it has no effect; leave it out",
                self.load.reconnect_every
            ));
        }
        problems
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(workload: serde_json::Value) -> Plan {
        serde_json::from_value(json!({
            "schema": 1,
            "target": {"protocol": "null"},
            "workload": workload,
            "load": {"connections": 1},
            "phases": {"warmup_us": 0, "measure_us": 1_000_000},
            "seed": 1,
        }))
        .unwrap()
    }

    #[test]
    fn a_script_with_options_has_no_problems() {
        let options = json!({"tables": 4, "range-selects": false, "level": "RR", "share": 0.5});
        let plan = plan(json!({"name": "lua", "script": {"path": "shop.lua", "options": options}}));
        assert_eq!(plan.problems(), [""; 0]);
        let script = plan.workload.lua_script().unwrap();
        let given: Vec<String> =
            script.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(given, ["level=RR", "range-selects=off", "share=0.5", "tables=4"]);
    }

    #[test]
    fn all_problems_are_reported_together() {
        let options = json!({"": 1, "a b": 2, "1st": 3});
        let mut plan = plan(json!({"name": "lua", "script": {"path": "x.lua", "options": options}}));
        plan.load.reconnect_every = 5;
        plan.workload.keys = Distribution::Zipfian { exponent: 0.8, scattered: true };
        let starts = [
            "workload.script.options has the name \"\";",
            "workload.script.options has the name \"1st\";",
            "workload.script.options has the name \"a b\";",
            "workload.keys is scattered,",
            "load.reconnect_every is 5,",
        ];
        let problems = plan.problems();
        assert_eq!(problems.len(), starts.len(), "{problems:?}");
        assert!(
            problems.iter().zip(starts).all(|(problem, start)| problem.starts_with(start)),
            "{problems:?}"
        );
    }

    #[test]
    fn a_workload_has_a_script_exactly_if_its_name_is_lua() {
        let problems = |workload| plan(workload).problems();
        assert!(problems(json!({"name": "lua"}))[0].starts_with("workload.script is missing;"));
        let both = json!({"name": "oltp_read_only", "script": {"path": "x.lua"}});
        assert!(problems(both)[0].starts_with("workload.script is set,"));
    }
}
