//! Validation of a plan whose load pauses and resumes on command.

use dbdyno_load::plan::Phases;

use super::{Plan, Report, Start, WorkloadName};

impl Plan {
    /// Errors in a plan of the load shape `closed_slices`, each one sentence with key, value and fix.
    pub(super) fn slices_problems(&self) -> Vec<String> {
        if self.load.slices().is_none() {
            return Vec::new();
        }
        let Phases { warmup_us, events, .. } = self.phases;
        let Report { interval_us, tick_us, ref marks_us, .. } = self.report;
        let mut problems = Vec::new();
        let mut refuse = |is_refused: bool, key: &str, value: String, fix: &str| {
            if is_refused {
                problems.push(format!("{key} is {value}, which a load in slices does not allow; {fix}"));
            }
        };
        refuse(self.start == Start::AtOnce, "start", "at-once".into(), "set on-command");
        refuse(warmup_us > 0, "phases.warmup_us", warmup_us.to_string(), "set 0, and discard slices instead");
        let limit = events.map(|events| events.to_string());
        refuse(limit.is_some(), "phases.events", limit.unwrap_or_default(), "leave it out");
        refuse(interval_us > 0, "report.interval_us", interval_us.to_string(), "set 0");
        refuse(tick_us > 0, "report.tick_us", tick_us.to_string(), "set 0");
        refuse(!marks_us.is_empty(), "report.marks_us", format!("{marks_us:?}"), "leave it out");
        let engines = self.segment.count;
        refuse(engines > 1, "segment.count", engines.to_string(), "use one engine");
        let is_script = self.workload.name == WorkloadName::Lua;
        refuse(is_script, "workload.name", "lua".into(), "use another workload");
        problems
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(changes: &serde_json::Value) -> Plan {
        let mut plan = json!({
            "schema": 1,
            "target": {"protocol": "null"},
            "workload": {"name": "oltp_point_select"},
            "load": {"connections": 4, "shape": {"closed_slices": {"guard_us": 1000}}},
            "phases": {"measure_us": 0},
            "report": {"interval_us": 0, "tick_us": 0},
            "start": {"on-command": {"start_timeout_us": 1000}},
            "seed": 1,
        });
        plan.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(plan).unwrap()
    }

    #[test]
    fn slices_need_a_plain_closed_loop_without_intervals() {
        assert_eq!(plan(&json!({})).problems(), [""; 0]);
        for (key, value, problem) in [
            ("start", json!("at-once"), "start is at-once,"),
            ("phases", json!({"warmup_us": 5, "measure_us": 0}), "phases.warmup_us is 5,"),
            ("phases", json!({"measure_us": 0, "events": 7}), "phases.events is 7,"),
            ("report", json!({"tick_us": 0}), "report.interval_us is 1000000,"),
            ("report", json!({"interval_us": 0}), "report.tick_us is 100000,"),
            ("report", json!({"interval_us": 0, "tick_us": 0, "marks_us": [1]}), "report.marks_us is [1],"),
            ("segment", json!({"index": 0, "count": 2}), "segment.count is 2,"),
            (
                "load",
                json!({"connections": 4, "shape": {"closed_slices": {"guard_us": 0}}, "think_time": {"constant": {"us": 1}}}),
                "load.think_time is set, but a load in slices",
            ),
        ] {
            let problems = plan(&json!({key: value})).problems();
            assert!(problems.len() == 1 && problems[0].starts_with(problem), "{problems:?}");
        }
    }
}
