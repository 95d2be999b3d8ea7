//! Reports for spreadsheets: a line of names, and a line of values for every report. Times are in seconds, latencies in
//! milliseconds, rates per second of the time that was counted. Errors by their number are one value, `1213:4 1205:1`: which
//! there will be nobody knows when the names are written.

use super::super::settings::Settings;
use super::Extra;
use super::reader::{News, Stretch};
use super::tally::Tally;

/// The lines for some news; empty where there are none. The names come when the clock starts.
pub fn lines(settings: &Settings, extra: &dyn Extra, news: &News) -> String {
    match news {
        News::Started => header(settings, extra),
        News::Interval(stretch) => row(settings, extra, "interval", stretch),
        News::Checkpoint(stretch) => row(settings, extra, "checkpoint", stretch),
        News::Ended(outcome) if outcome.started => row(settings, extra, "final", &outcome.last),
        News::Ended(_) => String::new(),
    }
}

fn header(settings: &Settings, extra: &dyn Extra) -> String {
    const BEFORE: &str = "report,time,interval,threads,events,eps,qps,read,write,other,ignored_errors,\
                          errors_by_code,reconnects,queue_length,concurrency,latency_min,latency_avg,latency_max,latency_sum";
    let percentiles = settings.percentiles.iter().map(|percent| format!("latency_p{percent}"));
    let own = extra.figures(&Stretch::default()).into_iter().map(|(name, _)| name);
    joined(std::iter::once(BEFORE.to_owned()).chain(percentiles).chain(own))
}

fn row(settings: &Settings, extra: &dyn Extra, report: &str, stretch: &Stretch) -> String {
    let tally = &stretch.tally;
    let mean_ms = if tally.events == 0 { 0.0 } else { tally.latency_sum_us / 1e3 / tally.events as f64 };
    let values = [
        report.to_owned(),
        stretch.at_s().to_string(),
        tally.seconds().to_string(),
        tally.active.to_string(),
        tally.events.to_string(),
        tally.rate(tally.events).to_string(),
        tally.rate(tally.queries()).to_string(),
        tally.reads.to_string(),
        tally.writes.to_string(),
        tally.other.to_string(),
        tally.errors.to_string(),
        by_code(tally),
        tally.reconnects.to_string(),
        tally.backlog.to_string(),
        tally.in_flight.to_string(),
        (tally.latency_min_us.unwrap_or(0.0) / 1e3).to_string(),
        mean_ms.to_string(),
        (tally.latency_max_us.unwrap_or(0.0) / 1e3).to_string(),
        (tally.latency_sum_us / 1e3).to_string(),
    ];
    let percentiles = settings.percentiles.iter().map(|&percent| tally.percentile_ms(percent).to_string());
    let own = extra.figures(stretch).into_iter().map(|(_, value)| value.to_string());
    joined(values.into_iter().chain(percentiles).chain(own))
}

fn by_code(tally: &Tally) -> String {
    let each = tally.errors_by_code.iter().map(|(code, count)| format!("{code}:{count}"));
    each.collect::<Vec<_>>().join(" ")
}

fn joined(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compat;
    use crate::registry::Registry;
    use crate::report::Nothing;

    #[test]
    fn every_row_has_a_value_for_every_name() {
        let mut registry = Registry::new(Compat::V10);
        registry.set("percentile", Some("50,95,99.9")).unwrap();
        let settings = Settings::read(&registry, Compat::V10).unwrap();
        let header = lines(&settings, &Nothing, &News::Started);
        let errors_by_code = [("1205", 1), ("1213", 4)].map(|(code, count)| (code.to_owned(), count)).into();
        let tally = Tally { errors: 5, errors_by_code, ..Tally::default() };
        let stretch = Stretch { at_us: 0, tally };
        let row = lines(&settings, &Nothing, &News::Interval(Box::new(stretch)));
        assert!(header.ends_with(",latency_p50,latency_p95,latency_p99.9\n"), "{header}");
        assert_eq!(header.split(',').count(), row.split(',').count());
        assert!(row.starts_with("interval,0,0,0,"), "{row}");
        assert!(row.contains(",5,1205:1 1213:4,0,"), "{row}");
    }
}
