//! The destination of records, and the end of a command.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_schema::Record;
use dbdyno_schema::record::{End, EndReason, Failure, PhaseName, PhaseTotals, UserTotals};

use crate::machine;

/// A destination of records.
pub trait Sink {
    /// Writes one record. Returns false if the reader of the records is gone; the run then stops.
    fn record(&mut self, record: &Record) -> bool;
}

/// How a command ended, as in its last record.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// Why it ended.
    pub reason: EndReason,
    /// The error, if there was one.
    pub failure: Option<Failure>,
}

impl RunEnd {
    /// The last record of a command. `cpu_before` is the CPU time of the process when the clock started.
    pub(crate) fn record(
        &self,
        cpu_before: Duration,
        phases: BTreeMap<PhaseName, PhaseTotals>,
        users: Vec<UserTotals>,
    ) -> Record {
        Record::End(Box::new(End {
            reason: self.reason,
            failure: self.failure.clone(),
            phases,
            users,
            memory_peak_bytes: machine::memory_peak_bytes(),
            cpu_us: (machine::process_cpu() - cpu_before).as_micros() as u64,
        }))
    }
}
