//! Substitutes for the spans of workers that do not respond. A script may block its thread for any time, and a forced
//! shutdown does not wait for it. Each user of such a worker counts as executing one event all the time.

use dbdyno_load::Nanos;
use dbdyno_load::timeline::Timeline;
use dbdyno_metrics::{ClosedSpans, Recorder};

use crate::RunSpec;

/// The spans from `since` to `end` with their boundaries, as if each of `users` executed one event during all of them.
pub(crate) fn substitute_spans(
    spec: &RunSpec,
    kinds: usize,
    users: u32,
    since: Nanos,
    end: Nanos,
) -> Vec<(Nanos, ClosedSpans)> {
    let mut timeline = Timeline::new(&spec.plan.phases, &spec.plan.report, spec.options.measurement_end);
    timeline.truncate(end);
    // User numbers above all known ones, so that these users are sorted last.
    let numbers: Vec<u64> = (0..u64::from(users)).map(|user| u64::MAX - user).collect();
    let mut recorder =
        Recorder::new(timeline, kinds, false).with_extra_counts(&spec.options.extra_counts, &numbers);
    for user in 0..users as usize {
        recorder.start_event(user, since);
    }
    recorder.close_spans_until(end);
    recorder.take_closed_spans().into_iter().filter(|&(bound, _)| bound > since).collect()
}

#[cfg(test)]
mod tests {
    use dbdyno_load::timeline::MeasurementEnd;
    use dbdyno_metrics::ExtraCounts;

    use super::*;
    use crate::Secrets;

    #[test]
    fn every_substitute_span_has_one_event_in_progress_per_user() {
        let plan = r#"{"schema":1,"target":{"protocol":"null","answer_us":0},"workload":{"name":"oltp_point_select"},
            "load":{"connections":4},"phases":{"warmup_us":0,"measure_us":10000,"drain_us":10000},
            "seed":1,"report":{"interval_us":5000,"tick_us":5000}}"#;
        let mut spec = RunSpec::new(serde_json::from_str(plan).unwrap(), Secrets::default());
        spec.options.measurement_end = MeasurementEnd::AfterLastEvent;
        spec.options.extra_counts = ExtraCounts { users: true, ..ExtraCounts::default() };
        let spans = substitute_spans(&spec, 1, 3, 5_000_000, 20_000_000);
        let bounds: Vec<_> = spans.iter().map(|(bound, _)| bound / 1_000_000).collect();
        assert_eq!(bounds, [10, 15, 20]);
        let last = &spans[2].1;
        let accounting = &last.phase.as_ref().unwrap().accounting;
        assert_eq!((accounting.done, accounting.unfinished, accounting.unfinished_us), (0, 3, 45_000));
        let interval = last.interval.as_ref().unwrap();
        assert_eq!((interval.in_flight, interval.users_active, interval.users.len()), (3, 3, 3));
    }
}
