//! The full report, printed at checkpoints and at the end.

use std::fmt::Write;

use dbdyno_schema::record::UserTotals;

use super::TestReport;
use super::totals::Totals;
use crate::settings::Settings;
use crate::{Compat, latency};

/// The report with its closing blank line. `unfinished` is the number of events that a forced shutdown interrupted, and
/// the sum of their latencies in microseconds.
pub fn report(
    settings: &Settings,
    database: bool,
    totals: &Totals,
    unfinished: (u64, u64),
    test: TestReport,
) -> String {
    let mut text = if database { sql_statistics(totals) } else { String::new() };
    if unfinished.0 > 0 {
        let _ = writeln!(text, "\nNumber of unfinished transactions on forced shutdown: {}", unfinished.0);
    }
    if settings.report_errors {
        text += "\nErrors by number:\n";
        totals.errors_by_code.iter().for_each(|(code, &count)| text += &rate_row(code, count, totals));
    }
    test.total.iter().for_each(|line| text += &format!("{line}\n"));
    if test.replaces_general_statistics {
        return text + &latency(settings, totals) + "\n";
    }
    text + &general_statistics(settings.compat, totals)
        + &latency(settings, totals)
        + &thread_fairness(settings, totals, unfinished)
}

fn rate_row(name: &str, count: u64, totals: &Totals) -> String {
    format!("    {:<37}{count:<6} ({:.2} per sec.)\n", format!("{name}:"), totals.rate(count))
}

fn sql_statistics(totals: &Totals) -> String {
    let mut text = String::from("SQL statistics:\n    queries performed:\n");
    let kinds = [
        ("read", totals.reads),
        ("write", totals.writes),
        ("other", totals.other),
        ("total", totals.queries()),
    ];
    for (kind, count) in kinds {
        let _ = writeln!(text, "        {:<33}{count}", format!("{kind}:"));
    }
    for (name, count) in [
        ("transactions", totals.events),
        ("queries", totals.queries()),
        ("ignored errors", totals.errors),
        ("reconnects", totals.reconnects),
    ] {
        text += &rate_row(name, count, totals);
    }
    text
}

fn general_statistics(compat: Compat, totals: &Totals) -> String {
    let events = totals.events;
    match compat {
        Compat::V1_0 => format!(
            "\nGeneral statistics:\n    total time:                          {:.4}s\n    total number of events:              \
             {events}\n",
            totals.at_s()
        ),
        Compat::V1_1 => format!(
            "\nThroughput:\n    events/s (eps):                      {:.4}\n    time elapsed:                        \
             {:.4}s\n    total number of events:              {events}\n",
            totals.rate(events),
            totals.at_s()
        ),
    }
}

fn latency(settings: &Settings, totals: &Totals) -> String {
    let [min, mean, max, sum] = totals.latency_ms();
    let row = |name: &str, ms: f64| format!("{name:>12}: {ms:>39.2}\n");
    let mut text =
        String::from("\nLatency (ms):\n") + &row("min", min) + &row("avg", mean) + &row("max", max);
    if settings.percentiles.is_empty() {
        text += "         percentile stats:               disabled\n";
    }
    for &percent in &settings.percentiles {
        let _ = writeln!(text, "{percent:>11}th percentile: {:>27.2}", totals.percentile_ms(percent));
    }
    text + &row("sum", sum)
}

/// The thread fairness. As in sysbench, it includes the events that a forced shutdown interrupted, and their latencies so
/// far.
fn thread_fairness(settings: &Settings, totals: &Totals, (unfinished, unfinished_us): (u64, u64)) -> String {
    let threads = f64::from(settings.threads.max(1));
    let mean = (totals.events + unfinished) as f64 / threads;
    let mean_busy_us = totals.latency_sum_us / threads;
    // The unfinished events can be assigned to users only if every user has exactly one.
    let each = if unfinished as usize == totals.users.len() { 1.0 } else { 0.0 };
    let each_us = each * unfinished_us as f64 / threads;
    let users = &totals.users;
    let events = standard_deviation(users.iter().map(|user| user.events as f64 + each), mean);
    let busy_us = standard_deviation(users.iter().map(|user| user.busy_us + each_us), mean_busy_us);
    format!(
        "\nThreads fairness:\n    events (avg/stddev):           {mean:.4}/{events:3.2}\n    execution time \
         (avg/stddev):   {:.4}/{:3.2}\n\n",
        mean_busy_us / 1e6,
        busy_us / 1e6
    )
}

/// Population standard deviation around `mean`; 0 without values.
fn standard_deviation(values: impl Iterator<Item = f64> + Clone, mean: f64) -> f64 {
    let count = values.clone().count().max(1) as f64;
    // Not `Iterator::sum`: it starts at -0, which would be printed as -0.00.
    (values.map(|value| (value - mean).powi(2)).fold(0.0, |sum, square| sum + square) / count).sqrt()
}

/// Statistics per user, for `--debug`.
pub fn thread_statistics(users: &[UserTotals]) -> Vec<String> {
    let mut lines = vec!["Verbose per-thread statistics:\n".to_owned()];
    for (number, user) in users.iter().enumerate() {
        let mean = if user.events == 0 { 0.0 } else { user.busy_us / user.events as f64 };
        let [min, mean, max, busy] =
            [user.min_us.unwrap_or(0.0), mean, user.max_us.unwrap_or(0.0), user.busy_us].map(|us| us / 1e6);
        let events = user.events;
        lines.push(format!(
            "    thread #{number:3}: min: {min:.4}s  avg: {mean:.4}s  max: {max:.4}s  events: {events}"
        ));
        lines.push(format!("                 total time taken by event execution: {busy:.4}s"));
    }
    lines
}

pub fn histogram(totals: &Totals) -> String {
    let scale = latency::scale();
    let largest = totals.buckets.iter().map(|&(_, count)| count).max().unwrap_or(1);
    let mut text = String::from("       value  ------------- distribution ------------- count\n");
    for &(bucket, count) in &totals.buckets {
        let stars = "*".repeat((40.0 * count as f64 / largest as f64 + 0.5) as usize);
        let _ = writeln!(text, "{:>12.3} |{stars:<40} {count}", scale.value(bucket.into()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::settings;

    fn totals() -> Totals {
        let user =
            |events, busy_us| UserTotals { events, busy_us, min_us: Some(21_360.0), max_us: Some(95_100.0) };
        Totals {
            end_us: 4_023_400,
            events: 100,
            reads: 1400,
            writes: 400,
            other: 200,
            latency_sum_us: 4_013_320.0,
            latency_min_us: Some(21_360.0),
            latency_max_us: Some(95_100.0),
            buckets: vec![(latency::scale().bucket(61.08) as u16, 100)],
            users: vec![user(60, 2_500_000.0), user(40, 1_513_320.0)],
            ..Totals::default()
        }
    }

    fn text(settings: &Settings) -> String {
        report(settings, true, &totals(), (0, 0), TestReport::default())
    }

    /// Every column where sysbench 1.0.20 prints it.
    #[test]
    fn the_report_of_1_0() {
        let settings = settings(&[("threads", "2")], Compat::V1_0);
        let expected = "\
SQL statistics:
    queries performed:
        read:                            1400
        write:                           400
        other:                           200
        total:                           2000
    transactions:                        100    (24.85 per sec.)
    queries:                             2000   (497.09 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          4.0234s
    total number of events:              100

Latency (ms):
         min:                                   21.36
         avg:                                   40.13
         max:                                   95.10
         95th percentile:                       61.08
         sum:                                 4013.32

Threads fairness:
    events (avg/stddev):           50.0000/10.00
    execution time (avg/stddev):   2.0067/0.49

";
        assert_eq!(text(&settings), expected);
    }

    #[test]
    fn the_report_of_1_1() {
        let settings = settings(&[], Compat::V1_1);
        let output = text(&settings);
        assert!(output.contains(
            "\nThroughput:\n    events/s (eps):                      24.8546\n    time elapsed:                        \
             4.0234s\n    total number of events:              100\n\nLatency"
        ));
    }

    #[test]
    fn custom_test_report_is_followed_by_latencies_only() {
        let total = vec!["\nThroughput:".into(), "         read:  IOPS=1.00".into()];
        let test = TestReport { total, replaces_general_statistics: true, ..TestReport::default() };
        let output = report(&settings(&[], Compat::V1_1), false, &totals(), (0, 0), test);
        let head = "\nThroughput:\n         read:  IOPS=1.00\n\nLatency (ms):\n         min:                                   21.36\n";
        assert!(output.starts_with(head), "{output}");
        assert!(output.ends_with("         sum:                                 4013.32\n\n"), "{output}");
    }

    #[test]
    fn report_prints_every_requested_percentile() {
        let settings_of =
            |percentile| settings(&[("threads", "2"), ("percentile", percentile)], Compat::V1_0);
        let output = text(&settings_of("50,99.9"));
        let rows = "         50th percentile:                       61.08\n       99.9th percentile:                       61.08\n";
        assert!(output.contains(rows), "{output}");
        let output = text(&settings_of("0"));
        assert!(output.contains("         percentile stats:               disabled\n         sum:"));
    }

    #[test]
    fn histogram_bars_are_relative_to_the_largest_bucket() {
        let scale = latency::scale();
        let buckets = vec![(scale.bucket(99.327) as u16, 3), (scale.bucket(101.132) as u16, 1)];
        let expected = "       value  ------------- distribution ------------- count
      99.327 |**************************************** 3
     101.132 |*************                            1
";
        assert_eq!(histogram(&Totals { buckets, ..Totals::default() }), expected);
    }
}
