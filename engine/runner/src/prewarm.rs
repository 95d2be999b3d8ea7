//! Reading every table before the load, so that the first minutes do not measure the disk.
//!
//! Both trees of each table are read from end to end: the rows (a sum over a column that no index holds) and each
//! secondary index (a sum over its own column alone). No optimiser can answer such a sum from anything smaller.

use std::time::{Duration, Instant};

use dbdyno_schema::Record;
use dbdyno_schema::plan::Prewarm;
use dbdyno_schema::record::{Loading, LoadingStep};
use dbdyno_wire::{Connection, Connector};
use dbdyno_workload::tables::Tables;

use crate::control::Inbox;
use crate::{Ended, Order, failure};

/// How often an order to stop is looked for while the server reads.
const STOP_POLL: Duration = Duration::from_millis(50);

/// Reads the tables as the plan asks, and hands a record per table to `write`. What ends it early is returned.
pub(crate) fn prewarm<C: Connector>(
    order: &Order,
    connector: &C,
    inbox: &Inbox,
    write: impl FnMut(Record),
) -> Result<(), Ended> {
    if order.plan.prewarm == Prewarm::None {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime needs three file descriptors");
    runtime.block_on(async {
        tokio::select! {
            ended = scan(order, connector, write) => ended,
            ended = stopped(inbox) => Err(ended),
        }
    })
}

async fn scan<C: Connector>(
    order: &Order,
    connector: &C,
    mut write: impl FnMut(Record),
) -> Result<(), Ended> {
    let ended = |(reason, failure)| Ended { reason, failure: Some(failure) };
    let began = Instant::now();
    let schema = order.schema();
    let mut connection = connector
        .connect(0)
        .await
        .map_err(|error| ended(failure::connecting(&error, &order.plan.target, 0)))?;
    for table in 1..=schema.tables() {
        for sql in schema.scans(table) {
            let read = connection.query(sql.as_bytes()).await;
            read.map_err(|error| ended(failure::working(&error, &sql)))?;
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

/// Waits for an order to stop.
async fn stopped(inbox: &Inbox) -> Ended {
    loop {
        if let Some(reason) = inbox.stop_order() {
            return Ended { reason, failure: None };
        }
        tokio::time::sleep(STOP_POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_schema::record::EndReason;

    use super::*;
    use crate::control::{Message, channel};

    #[test]
    fn an_early_order_to_start_is_left_for_the_run_and_a_stop_is_obeyed() {
        let (control, inbox) = channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        control.start(0);
        runtime.block_on(async {
            assert!(tokio::time::timeout(3 * STOP_POLL, stopped(&inbox)).await.is_err());
            assert!(matches!(inbox.messages.try_recv(), Ok(Message::Start(_))));
            control.stop(EndReason::Interrupted);
            assert_eq!(stopped(&inbox).await.reason, EndReason::Interrupted);
        });
    }
}
