//! Formats CSV reports: a header, then one line per report. Times are in seconds, latencies in milliseconds, rates per
//! second. One column contains the errors by number, such as `1213:4 1205:1`, because the numbers are unknown when the
//! header is written.

use super::reader::Progress;
use super::totals::Totals;
use super::{TestReport, TestReporter};
use crate::settings::Settings;

/// The line for `progress`, if any; the header is written when the clock starts.
pub fn lines(settings: &Settings, test: TestReporter<'_>, progress: &Progress) -> String {
    match progress {
        Progress::Started => header(settings, &test(&Totals::default())),
        Progress::Interval(totals) => row(settings, test, "interval", totals),
        Progress::Checkpoint(totals) => row(settings, test, "checkpoint", totals),
        Progress::Ended(outcome) if outcome.started => row(settings, test, "final", &outcome.last),
        Progress::Ended(_) => String::new(),
    }
}

fn header(settings: &Settings, test: &TestReport) -> String {
    const COLUMNS: &str = "report,time,interval,threads,events,eps,qps,read,write,other,ignored_errors,\
                          errors_by_code,reconnects,queue_length,concurrency,latency_min,latency_avg,latency_max,latency_sum";
    let percentiles = settings.percentiles.iter().map(|percent| format!("latency_p{percent}"));
    let own = test.figures.iter().map(|(name, _)| (*name).to_owned());
    join_columns(std::iter::once(COLUMNS.to_owned()).chain(percentiles).chain(own))
}

fn row(settings: &Settings, test: TestReporter<'_>, report: &str, totals: &Totals) -> String {
    let errors = totals.errors_by_code.iter().map(|(code, count)| format!("{code}:{count}"));
    let counts = [
        report.to_owned(),
        totals.at_s().to_string(),
        totals.seconds().to_string(),
        totals.active.to_string(),
        totals.events.to_string(),
        totals.rate(totals.events).to_string(),
        totals.rate(totals.queries()).to_string(),
        totals.reads.to_string(),
        totals.writes.to_string(),
        totals.other.to_string(),
        totals.errors.to_string(),
        errors.collect::<Vec<_>>().join(" "),
        totals.reconnects.to_string(),
        totals.backlog.to_string(),
        totals.in_flight.to_string(),
    ];
    let percentiles = settings.percentiles.iter().map(|&percent| totals.percentile_ms(percent));
    let own = test(totals).figures.into_iter().map(|(_, value)| value);
    let figures = totals.latency_ms().into_iter().chain(percentiles).chain(own);
    join_columns(counts.into_iter().chain(figures.map(|value| value.to_string())))
}

fn join_columns(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compat;
    use crate::report::no_test;
    use crate::testing::settings;

    #[test]
    fn every_row_has_a_value_for_every_name() {
        let settings = settings(&[("percentile", "50,95,99.9")], Compat::V1_0);
        let header = lines(&settings, &no_test, &Progress::Started);
        let errors_by_code = [("1205", 1), ("1213", 4)].map(|(code, count)| (code.to_owned(), count)).into();
        let totals = Totals { errors: 5, errors_by_code, ..Totals::default() };
        let row = lines(&settings, &no_test, &Progress::Interval(Box::new(totals)));
        assert!(header.ends_with(",latency_p50,latency_p95,latency_p99.9\n"), "{header}");
        assert_eq!(header.split(',').count(), row.split(',').count());
        assert!(row.starts_with("interval,0,0,0,"), "{row}");
        assert!(row.contains(",5,1205:1 1213:4,0,"), "{row}");
    }
}
