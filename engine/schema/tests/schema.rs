//! Holds the committed schemas and golden streams to the types. The lab tests the same files from its side.
//!
//! After a change of the types: `dbdyno-engine schema plan > schema/plan.schema.json`, and the same for events.

#![allow(clippy::disallowed_methods)] // A test reads files.

use std::path::PathBuf;

use dbdyno_schema::record::PhaseName;
use dbdyno_schema::{Record, describe_schema, events_schema, plan_schema};

fn schema_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema")
}

#[test]
fn committed_schemas_are_those_of_the_types() {
    let schemas = [("plan", plan_schema()), ("events", events_schema()), ("describe", describe_schema())];
    for (name, schema) in schemas {
        let path = schema_folder().join(format!("{name}.schema.json"));
        let committed: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(
            committed,
            serde_json::to_value(schema).unwrap(),
            "{} differs from the types: run make docs",
            path.display()
        );
    }
}

fn golden_streams() -> Vec<(PathBuf, Vec<String>)> {
    let mut streams: Vec<_> = std::fs::read_dir(schema_folder().join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| {
            (path.clone(), std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect())
        })
        .collect();
    streams.sort();
    assert!(!streams.is_empty());
    streams
}

#[test]
fn golden_streams_are_read_and_written_without_loss() {
    for (path, lines) in golden_streams() {
        for line in lines {
            let record: Record =
                serde_json::from_str(&line).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let before: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(serde_json::to_value(&record).unwrap(), before, "{}", path.display());
        }
    }
}

#[test]
fn golden_intervals_and_slices_add_up_to_their_totals() {
    for (path, lines) in golden_streams() {
        let records: Vec<Record> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let Some(Record::End(end)) = records.last() else { panic!("{}: no end", path.display()) };
        for phase in [PhaseName::Warmup, PhaseName::Measure] {
            let spans = records.iter().filter_map(|record| match record {
                Record::Interval(interval) if interval.phase == phase => {
                    Some((interval.counts.events, interval.latency_us.count()))
                }
                Record::Slice(slice) if phase == PhaseName::Measure => {
                    let uncounted = slice.guard_events + slice.in_flight;
                    Some((uncounted + slice.counts.events, uncounted + slice.latency_us.count()))
                }
                _ => None,
            });
            let (events, latencies) =
                spans.fold((0, 0), |(events, latencies), span| (events + span.0, latencies + span.1));
            let totals = end.phases.get(&phase).cloned().unwrap_or_default();
            assert_eq!(
                (events, latencies),
                (totals.counts.events, totals.counts.events),
                "{}",
                path.display()
            );
        }
    }
}
