//! Warnings that the load generator itself limited the measurement.

use dbdyno_schema::record::{
    CLIENT_DELAY_LIMIT, CPU_LIMIT, End, LAG_US_LIMIT, PhaseName, PhaseTotals, Warning,
};

/// Derives the warnings from the totals of the measurement phase.
pub fn warnings(end: &End) -> Vec<Warning> {
    let Some(PhaseTotals { generator, percentiles_us, .. }) = end.phases.get(&PhaseName::Measure) else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    let mut warn = |code: &str, text: String, fix: &str| {
        warnings.push(Warning { code: code.into(), text, fix: fix.into() });
    };
    if generator.cpu > CPU_LIMIT {
        let text = format!("the load generator used {:.0} % of a core per worker", generator.cpu * 100.0);
        warn(
            "generator-saturated",
            text,
            "raise --workers or use another machine; the server may be faster than measured",
        );
    }
    if generator.lag_us_p99 > LAG_US_LIMIT {
        let late_ms = generator.lag_us_p99 as f64 / 1000.0;
        let text = format!("1 % of the load generator's wake-ups were more than {late_ms:.1} ms late");
        warn(
            "generator-late",
            text,
            "keep a core free for it or use another machine; latencies include its delay",
        );
    }
    if let (Some(delay_us), Some(latency)) = (generator.client_delay_us_p99, percentiles_us) {
        let median_us = latency.p50.value_us;
        if delay_us as f64 > CLIENT_DELAY_LIMIT * median_us {
            let text = format!(
                "the load generator read 1 % of the replies {delay_us} us or more after they had arrived; the median latency is \
                 {median_us:.0} us"
            );
            let fix = "keep a core free for it, or give it the scheduling \"normal\", more workers or another machine; \
                        latencies contain its delay";
            warn("client-delay", text, fix);
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dbdyno_schema::record::{EndReason, Generator, Percentile, Percentiles};

    use super::*;

    fn codes(generator: Generator) -> Vec<String> {
        let median = Percentile { value_us: 1000.0, censored: false };
        let [p50, p90, p95, p99, p99_9, max] = [median; 6];
        let percentiles_us = Some(Percentiles { p50, p90, p95, p99, p99_9, max });
        let totals = PhaseTotals { generator, percentiles_us, ..PhaseTotals::default() };
        let end = End {
            reason: EndReason::TimeLimit,
            failure: None,
            phases: BTreeMap::from([(PhaseName::Measure, totals)]),
            users: Vec::new(),
            memory_peak_bytes: 0,
            cpu_us: 0,
        };
        warnings(&end).into_iter().map(|warning| warning.code).collect()
    }

    #[test]
    fn values_above_a_limit_warn() {
        let at_limit =
            Generator { cpu: 0.8, lag_us_p99: 1000, client_delay_us_p99: Some(100), ..Generator::default() };
        assert!(codes(at_limit.clone()).is_empty());
        assert_eq!(codes(Generator { cpu: 0.81, ..at_limit.clone() }), ["generator-saturated"]);
        assert_eq!(codes(Generator { lag_us_p99: 1001, ..at_limit.clone() }), ["generator-late"]);
        assert_eq!(codes(Generator { client_delay_us_p99: Some(101), ..at_limit }), ["client-delay"]);
        assert!(codes(Generator::default()).is_empty());
    }
}
