//! The records of a command without measurements.

use std::collections::BTreeMap;

use dbdyno_schema::plan::Plan;
use dbdyno_schema::record::{EndReason, StatementKind};

use crate::coordinator::hello_record;
use crate::failure::RunFailure;
use crate::{RunEnd, Sink, machine};

/// Writes the first record of a command, calls `work`, and writes the last record.
pub fn run_command(
    plan: &Plan,
    statements: Vec<StatementKind>,
    sink: &mut dyn Sink,
    work: impl FnOnce(&mut dyn Sink) -> Result<(), RunFailure>,
) -> RunEnd {
    sink.record(&hello_record(plan, statements));
    let cpu_before = machine::process_cpu();
    let (reason, failure) = match work(sink) {
        Ok(()) => (EndReason::Done, None),
        Err((reason, failure)) => (reason, (reason != EndReason::Interrupted).then_some(failure)),
    };
    let ended = RunEnd { reason, failure };
    sink.record(&ended.record(cpu_before, BTreeMap::new(), Vec::new()));
    ended
}
