//! The argument of report hooks, and the functions `sysbench.report_*`, which scripts use as hooks.

use std::sync::Arc;

use mlua::{Function, Lua, Table, UserData};

use super::base::print;
use crate::compile;
use crate::context::Context;
use crate::host::{ScriptHost, Stat};
use crate::raw;

const CODE: &str = include_str!("lua/reports.lua");

/// The JSON array that `report_json` began. Prints its end when the Lua state of the report closes.
struct OpenArray(Arc<dyn ScriptHost>);

impl UserData for OpenArray {}

impl Drop for OpenArray {
    fn drop(&mut self) {
        self.0.print("\n]\n");
    }
}

pub(super) fn install(lua: &Lua, context: &Context) -> mlua::Result<()> {
    let host = Arc::clone(&context.host);
    let emit = raw::function(lua, print)?;
    let open_array = lua.create_function(move |_, ()| Ok(OpenArray(Arc::clone(&host))))?;
    let code: Function = compile::load(lua, "sysbench.lua", CODE.as_bytes())?;
    code.call((lua.globals().get::<Table>("sysbench")?, emit, open_array, context.config.percentile))
}

/// The argument of a report hook.
pub fn hook_argument(lua: &Lua, stat: &Stat) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("threads_running", stat.threads_running)?;
    for (name, value) in [
        ("time_interval", stat.time_interval),
        ("time_total", stat.time_total),
        ("latency_pct", stat.latency_pct),
        ("events", stat.events as f64),
        ("reads", stat.reads as f64),
        ("writes", stat.writes as f64),
        ("other", stat.other as f64),
        ("errors", stat.errors as f64),
        ("reconnects", stat.reconnects as f64),
    ] {
        table.set(name, value)?;
    }
    if let Some((waiting, running)) = stat.queue {
        table.set("queue_length", waiting as f64)?;
        table.set("concurrency", running as f64)?;
    }
    if let Some(latency) = stat.latency {
        for (name, value) in ["latency_min", "latency_max", "latency_avg", "latency_sum"].iter().zip(latency)
        {
            table.set(*name, value)?;
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use dbdyno_sysbench::option_definition::Value;

    use super::*;
    use crate::api::opt;
    use crate::testing::{RecordingHost, state};
    use dbdyno_sysbench::Compat;

    fn example() -> Stat {
        Stat {
            threads_running: 4,
            time_interval: 2.5,
            time_total: 10.7,
            latency_pct: 0.012_345_67,
            events: 100,
            reads: 1400,
            writes: 400,
            other: 200,
            errors: 3,
            reconnects: 1,
            queue: Some((5, 2)),
            latency: None,
        }
    }

    fn reported(text: &str) -> String {
        output_of(None, 95, text)
    }

    /// The output of a hook. `percentile` is the exact option, and `rounded` the one that scripts see.
    fn output_of(percentile: Option<f64>, rounded: i32, text: &str) -> String {
        let host = Arc::new(RecordingHost { percentile, ..RecordingHost::default() });
        let state = state(&format!("function hook(stat) {text} end"), &host);
        opt::fill(state.lua(), Compat::V1_0, &[("percentile".into(), Value::Int(rounded))]).unwrap();
        let hook: Function = state.lua().globals().get("hook").unwrap();
        let argument = hook_argument(state.lua(), &example()).unwrap();
        hook.call::<()>(argument).unwrap();
        drop((hook, state));
        host.printed.lock().unwrap().clone()
    }

    #[test]
    fn reporters_match_sysbench() {
        // What sysbench 1.0.20 prints for the same table.
        assert_eq!(
            reported("sysbench.report_default(stat)"),
            "[ 11s ] thds: 4 tps: 40.00 qps: 800.00 (r/w/o: 560.00/160.00/80.00) lat (ms,95%): 12.35 err/s 1.20 reconn/s: 0.40\n"
        );
        assert_eq!(
            reported("sysbench.report_csv(stat) stat.time_interval = 0 sysbench.report_csv(stat)"),
            "11,4,40.00,800.00,560.00,160.00,80.00,12.35,1.20,0.40\n11,4, inf, inf, inf, inf, inf,12.35, inf, inf\n"
        );
    }

    #[test]
    fn report_prints_percentile_with_decimals() {
        let label = |percentile, rounded, text: &str| {
            let line = output_of(Some(percentile), rounded, &format!("{text} sysbench.report_default(stat)"));
            line.split_once(" lat (").unwrap().1.split_once("): ").unwrap().0.to_owned()
        };
        assert_eq!(label(99.9, 99, ""), "ms,99.9%");
        assert_eq!(label(0.5, 1, ""), "ms,0.5%");
        assert_eq!(label(99.0, 99, ""), "ms,99%");
        assert_eq!(label(0.0, 0, ""), "ms,0%");
        assert_eq!(label(99.9, 99, "sysbench.opt.percentile = 75"), "ms,75%", "set by the script");
    }

    #[test]
    fn json_objects_form_one_array_per_state() {
        let object = "  {
    \"time\":   11,
    \"threads\": 4,
    \"tps\": 40.00,
    \"qps\": {
      \"total\": 800.00,
      \"reads\": 560.00,
      \"writes\": 160.00,
      \"other\": 80.00
    },
    \"latency\": 12.35,
    \"errors\": 1.20,
    \"reconnects\": 0.40
  }";
        assert_eq!(reported("sysbench.report_json(stat)"), format!("[\n{object}\n]\n"));
        let twice = reported("sysbench.report_json(stat) sysbench.report_json(stat)");
        assert_eq!(twice, format!("[\n{object},\n{object}\n]\n"));
        assert_eq!(reported(""), "");
    }

    #[test]
    fn hooks_receive_the_measured_values() {
        let text =
            "print(stat.threads_running, stat.time_interval, stat.events, stat.errors, stat.queue_length,
            stat.concurrency, stat.latency_min, stat.latency_sum)";
        assert_eq!(reported(text), "4\t2.5\t100\t3\t5\t2\tnil\tnil\n");
        let state = state("", &Arc::default());
        let cumulative = Stat { queue: None, latency: Some([0.001, 1.5, 0.01, 12.5]), ..example() };
        let argument = hook_argument(state.lua(), &cumulative).unwrap();
        let latency = ["latency_min", "latency_max", "latency_avg", "latency_sum"];
        assert_eq!(latency.map(|name| argument.get::<f64>(name).unwrap()), [0.001, 1.5, 0.01, 12.5]);
        assert_eq!(argument.get::<Option<f64>>("queue_length").unwrap(), None);
    }
}
