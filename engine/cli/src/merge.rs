//! `dbdyno-engine merge`: the records of several engines as those of one run.

use std::io::BufRead;
use std::process::ExitCode;

use dbdyno_cli::{exit, output};
use dbdyno_metrics::fleet::FleetMerger;
use dbdyno_runner::Sink;
use dbdyno_schema::Record;
use dbdyno_schema::record::EndReason;

/// Merges the lines of standard input until the last record of the run, and returns the exit code of the run.
pub(crate) fn merge(names: Vec<String>) -> ExitCode {
    let mut sink = output::JsonLines::default();
    match merge_lines(std::io::stdin().lock(), &mut FleetMerger::new(names), &mut sink) {
        Ok(reason) => exit::code(reason).into(),
        Err(problem) => {
            eprintln!("dbdyno-engine: {problem}");
            exit::code(EndReason::Abandoned).into()
        }
    }
}

fn merge_lines(
    input: impl BufRead,
    merger: &mut FleetMerger,
    sink: &mut dyn Sink,
) -> Result<EndReason, String> {
    for line in input.lines() {
        let line = line.map_err(|error| format!("cannot read the records: {error}"))?;
        let (engine, record) = parse(&line)?;
        for record in merger.add(engine, record)? {
            if !sink.record(&record) {
                return Ok(EndReason::Abandoned);
            }
            if let Record::End(end) = record {
                return Ok(end.reason);
            }
        }
    }
    Err(format!("the records ended before the last one of: {}", merger.missing().join(", ")))
}

/// The number of the engine, and its record.
fn parse(line: &str) -> Result<(usize, Record), String> {
    let parts = line.split_once(' ').and_then(|(engine, record)| Some((engine.parse().ok()?, record)));
    let (engine, record) = parts.ok_or("a line does not begin with the number of an engine")?;
    let record =
        serde_json::from_str(record).map_err(|error| format!("engine {engine}: not a record: {error}"))?;
    Ok((engine, record))
}
