//! What follows the rows: the index, the mark of a complete table, and the optimiser's statistics.

use std::rc::Rc;
use std::time::Instant;

use dbdyno_wire::Connection;
use dbdyno_workload::schema::Schema;
use tokio::sync::mpsc::UnboundedSender;

use super::pieces::Queue;
use super::queries::{Outcome, queries, query};

/// A table's index is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indexed {
    pub(super) table: u32,
    pub(super) began: Instant,
    pub(super) ended: Instant,
}

/// Makes the index of one table after the other.
pub(super) async fn index(
    mut connection: impl Connection,
    schema: Rc<Schema>,
    tables: Queue<u32>,
    progress: UnboundedSender<Indexed>,
) -> Outcome {
    loop {
        let Some(table) = tables.borrow_mut().pop_front() else { break };
        let began = Instant::now();
        if let Some(sql) = schema.create_index(table) {
            query(&mut connection, &sql).await?;
        }
        // The receiver is gone only when loading stops.
        let _ = progress.send(Indexed { table, began, ended: Instant::now() });
    }
    connection.close().await;
    Ok(())
}

/// Declares tables complete and refreshes their statistics.
pub(super) async fn complete(
    mut connection: impl Connection,
    schema: Rc<Schema>,
    tables: Queue<u32>,
    progress: UnboundedSender<u32>,
) -> Outcome {
    loop {
        let Some(table) = tables.borrow_mut().pop_front() else { break };
        queries(&mut connection, [schema.set_mark(table), schema.analyze(table)]).await?;
        let _ = progress.send(table);
    }
    connection.close().await;
    Ok(())
}
