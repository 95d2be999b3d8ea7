//! Formats JSON reports: one object per line, with unrounded values. Times are in seconds, latencies in milliseconds,
//! rates per second.

use std::collections::BTreeMap;

use dbdyno_schema::record::{EndReason, Warning};
use serde::Serialize;

use super::TestReporter;
use super::reader::Progress;
use super::totals::Totals;
use crate::settings::Settings;

#[derive(Serialize)]
struct ReportLine<'a> {
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
    test: BTreeMap<&'static str, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<EndReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a str>,
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

/// The report line for `progress`; empty if there is nothing to report. The last line includes the warnings of the run.
pub fn line(
    settings: &Settings,
    test: TestReporter<'_>,
    warnings: &[Warning],
    progress: &Progress,
) -> String {
    let line = match progress {
        Progress::Started => return String::new(),
        Progress::Interval(totals) => report_line(settings, test, "interval", totals),
        Progress::Checkpoint(totals) => report_line(settings, test, "checkpoint", totals),
        Progress::Ended(outcome) => ReportLine {
            ended: Some(outcome.reason),
            unfinished: Some(outcome.unfinished),
            failure: outcome.failure.as_ref().map(|failure| failure.text.as_str()),
            warnings: Some(warnings),
            ..report_line(settings, test, "final", &outcome.last)
        },
    };
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

fn report_line<'a>(
    settings: &Settings,
    test: TestReporter<'_>,
    report: &'static str,
    totals: &'a Totals,
) -> ReportLine<'a> {
    let percentiles =
        settings.percentiles.iter().map(|&percent| (format!("p{percent}"), totals.percentile_ms(percent)));
    let others = ["min", "avg", "max", "sum"].map(str::to_owned).into_iter().zip(totals.latency_ms());
    ReportLine {
        report,
        time: totals.at_s(),
        interval: totals.seconds(),
        threads: totals.active,
        events: totals.events,
        events_per_s: totals.rate(totals.events),
        queries: Queries {
            read: totals.reads,
            write: totals.writes,
            other: totals.other,
            total: totals.queries(),
        },
        queries_per_s: totals.rate(totals.queries()),
        latency_ms: percentiles.chain(others).collect(),
        ignored_errors: totals.errors,
        errors_by_code: &totals.errors_by_code,
        reconnects: totals.reconnects,
        queue_length: totals.backlog,
        concurrency: totals.in_flight,
        test: test(totals).figures.into_iter().collect(),
        ended: None,
        unfinished: None,
        failure: None,
        warnings: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compat;
    use crate::report::no_test;
    use crate::testing::settings;

    #[test]
    fn an_interval_is_one_line_with_every_percentile() {
        let settings = settings(&[("percentile", "50,99.9")], Compat::V1_0);
        let buckets = vec![(crate::latency::scale().bucket(2.0) as u16, 4)];
        let totals = Totals {
            start_us: 4_000_000,
            end_us: 6_000_000,
            events: 4,
            reads: 8,
            latency_sum_us: 8000.0,
            errors_by_code: BTreeMap::from([("1213".into(), 3)]),
            buckets,
            ..Totals::default()
        };
        let text = line(&settings, &no_test, &[], &Progress::Interval(Box::new(totals)));
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
