//! Reads every table before the load, so that the first minutes of a run do not measure reads from the disk.
//!
//! It reads the rows (by a sum over a column without an index) and each secondary index (by a sum over only its
//! column). No optimiser can compute these sums from anything smaller.

use std::time::Instant;

use dbdyno_schema::Record;
use dbdyno_schema::plan::Prewarm;
use dbdyno_schema::record::{Loading, LoadingStep};
use dbdyno_wire::{Connection, Connector};
use dbdyno_workload::tables::Tables;

use crate::control::Inbox;
use crate::failure::{self, RunFailure};
use crate::{RunEnd, RunSpec};

/// Reads the tables if the plan requires it, and passes one record per table to `write`. An error says why it ended
/// early.
pub(crate) fn prewarm<C: Connector>(
    spec: &RunSpec,
    connector: &C,
    inbox: &Inbox,
    write: impl FnMut(Record),
) -> Result<(), RunEnd> {
    // Of several engines the first one reads the tables, and the others wait for it.
    if spec.plan.prewarm == Prewarm::None || spec.plan.segment.index > 0 {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime needs three file descriptors");
    runtime.block_on(async {
        tokio::select! {
            done = scan(spec, connector, write) => done.map_err(|(reason, failure)| RunEnd { reason, failure: Some(failure) }),
            reason = inbox.wait_for_stop() => Err(RunEnd { reason, failure: None }),
        }
    })
}

async fn scan<C: Connector>(
    spec: &RunSpec,
    connector: &C,
    mut write: impl FnMut(Record),
) -> Result<(), RunFailure> {
    let began = Instant::now();
    let schema = spec.schema();
    let mut connection = connector
        .connect(0)
        .await
        .map_err(|error| failure::from_connect_error(&error, &spec.plan.target, 0))?;
    for table in 1..=schema.tables() {
        for sql in schema.scans(table) {
            let read = connection.query(sql.as_bytes()).await;
            read.map_err(|error| failure::from_query_error(&error, &sql))?;
        }
        write(Record::Loading(Loading {
            step: LoadingStep::Prewarmed,
            table: schema.name(table),
            rows: u64::from(table) * schema.rows(),
            rows_planned: u64::from(schema.tables()) * schema.rows(),
            at_us: began.elapsed().as_micros() as u64,
        }));
    }
    connection.close().await;
    Ok(())
}
