//! `prepare`, `prewarm` and `cleanup` table by table without a server: every step is told, and nothing is done.

use std::time::Instant;

use dbdyno_schema::Record;
use dbdyno_schema::record::{Loading, LoadingStep};
use dbdyno_workload::schema::Schema;
use dbdyno_workload::tables::Tables;

use super::command::Command;
use crate::Sink;

/// Tells the steps of `command`, table by table.
pub(super) fn rehearse(schema: &Schema, command: Command, sink: &mut dyn Sink) {
    let began = Instant::now();
    for table in 1..=schema.tables() {
        for step in steps(schema, command, table) {
            sink.record(&Record::Loading(Loading {
                step,
                table: schema.name(table),
                rows: 0,
                rows_planned: u64::from(schema.tables()) * schema.rows(),
                at_us: began.elapsed().as_micros() as u64,
            }));
        }
    }
}

fn steps(schema: &Schema, command: Command, table: u32) -> Vec<LoadingStep> {
    match command {
        Command::Prepare => {
            let filling = (schema.rows() > 0).then_some(LoadingStep::Filling);
            let indexing = schema.create_index(table).map(|_| LoadingStep::Indexing);
            [Some(LoadingStep::Creating), filling, indexing].into_iter().flatten().collect()
        }
        Command::Prewarm => vec![LoadingStep::Prewarming],
        Command::Cleanup => vec![LoadingStep::Dropping],
    }
}
