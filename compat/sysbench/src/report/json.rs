//! Reports for programs: one JSON object a line, of all precision there is. Times are in seconds, latencies in
//! milliseconds, rates per second of the time that was counted.

use std::collections::BTreeMap;

use dbdyno_schema::record::Warning;
use serde::Serialize;

use super::super::settings::Settings;
use super::Extra;
use super::reader::{News, Stretch};

#[derive(Serialize)]
struct Line<'a> {
    /// `interval`, `checkpoint` or `final`.
    report: &'static str,
    time: f64,
    interval: f64,
    threads: u32,
    events: u64,
    events_per_s: f64,
    queries: Queries,
    queries_per_s: f64,
    latency_ms: BTreeMap<String, f64>,
    ignored_errors: u64,
    errors_by_code: &'a BTreeMap<String, u64>,
    reconnects: u64,
    queue_length: u64,
    concurrency: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    test: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<u64>,
    /// What makes the figures worth less.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<&'a [Warning]>,
}

#[derive(Serialize)]
struct Queries {
    read: u64,
    write: u64,
    other: u64,
    total: u64,
}

/// The line for some news; empty where there is none. The last one has the run's warnings.
pub fn line(settings: &Settings, extra: &dyn Extra, warnings: &[Warning], news: &News) -> String {
    let line = match news {
        News::Started => return String::new(),
        News::Interval(stretch) => of(settings, extra, "interval", stretch),
        News::Checkpoint(stretch) => of(settings, extra, "checkpoint", stretch),
        News::Ended(outcome) => Line {
            ended: serde_json::to_value(outcome.reason).ok().and_then(|word| word.as_str().map(Into::into)),
            unfinished: Some(outcome.unfinished),
            warnings: Some(warnings),
            ..of(settings, extra, "final", &outcome.last)
        },
    };
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

fn of<'a>(settings: &Settings, extra: &dyn Extra, report: &'static str, stretch: &'a Stretch) -> Line<'a> {
    let tally = &stretch.tally;
    let mut latency_ms = BTreeMap::new();
    for &percent in &settings.percentiles {
        latency_ms.insert(format!("p{percent}"), tally.percentile_ms(percent));
    }
    let sum_ms = tally.latency_sum_us / 1e3;
    for (name, value) in [
        ("min", tally.latency_min_us.unwrap_or(0.0) / 1e3),
        ("avg", if tally.events == 0 { 0.0 } else { sum_ms / tally.events as f64 }),
        ("max", tally.latency_max_us.unwrap_or(0.0) / 1e3),
        ("sum", sum_ms),
    ] {
        latency_ms.insert(name.into(), value);
    }
    Line {
        report,
        time: stretch.at_s(),
        interval: tally.seconds(),
        threads: tally.active,
        events: tally.events,
        events_per_s: tally.rate(tally.events),
        queries: Queries {
            read: tally.reads,
            write: tally.writes,
            other: tally.other,
            total: tally.queries(),
        },
        queries_per_s: tally.rate(tally.queries()),
        latency_ms,
        ignored_errors: tally.errors,
        errors_by_code: &tally.errors_by_code,
        reconnects: tally.reconnects,
        queue_length: tally.backlog,
        concurrency: tally.in_flight,
        test: extra.figures(stretch).into_iter().collect(),
        ended: None,
        unfinished: None,
        warnings: None,
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::Compat;
    use crate::registry::Registry;
    use crate::report::{Nothing, tally::Tally};

    #[test]
    fn an_interval_is_one_line_with_every_percentile() {
        let mut registry = Registry::new(Compat::V10);
        registry.set("percentile", Some("50,99.9")).unwrap();
        let settings = Settings::read(&registry, Compat::V10).unwrap();
        let buckets = vec![(crate::latency::scale().bucket(2.0) as u16, 4)];
        let tally = Tally {
            end_us: 2_000_000,
            events: 4,
            reads: 8,
            latency_sum_us: 8000.0,
            errors_by_code: BTreeMap::from([("1213".into(), 3)]),
            buckets,
            ..Tally::default()
        };
        let stretch = Stretch { at_us: 6_000_000, tally };
        let text = line(&settings, &Nothing, &[], &News::Interval(Box::new(stretch)));
        assert_eq!((text.matches('\n').count(), text.ends_with("}\n")), (1, true));
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((read["time"].as_f64(), read["queries_per_s"].as_f64()), (Some(6.0), Some(4.0)));
        assert_eq!(
            (read["latency_ms"]["avg"].as_f64(), read["errors_by_code"]["1213"].as_u64()),
            (Some(2.0), Some(3))
        );
        assert!(read["latency_ms"]["p50"] == read["latency_ms"]["p99.9"] && read.get("ended").is_none());
    }
}
