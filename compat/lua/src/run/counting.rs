//! Counts statements, errors and reconnects, for the records of the run and for the script's `sb_counter_val`.

use dbdyno_load::Nanos;
use dbdyno_metrics::Statement;
use dbdyno_schema::record::ErrorClass;
use dbdyno_wire::Outcome;
use dbdyno_wire::scripted::ScriptedConnector;

use super::session::{MeasuredUser, UserSession};
use crate::context::{Context, Counter};

impl<C: ScriptedConnector> UserSession<C> {
    /// Counts statements in the records of `user` from now on, and adds those that `thread_init` executed.
    pub(super) fn start_measurement(&self, user: MeasuredUser) {
        let now = user.worker.now();
        for (kind, count) in self.counts_before_start.iter().enumerate() {
            for _ in 0..count.take() {
                user.worker.count_statement(statement_record(kind, now));
            }
        }
        *self.measured_user.borrow_mut() = Some(user);
    }

    /// Counts a successful statement as a read, a write or other, by its first result.
    #[inline]
    pub(super) fn count_statement(&self, context: &Context, outcome: Outcome, start: Nanos) {
        let (kind, counter) = match (outcome.returns_rows, outcome.rows) {
            (true, _) => (0, Counter::Read),
            (false, 0) => (2, Counter::Other),
            (false, _) => (1, Counter::Write),
        };
        context.add(counter, 1);
        match &*self.measured_user.borrow() {
            Some(MeasuredUser { worker, .. }) => {
                let end = worker.now();
                worker.count_statement(Statement {
                    class: None,
                    kind,
                    start,
                    end,
                    returns_rows: outcome.returns_rows,
                    rows: outcome.rows,
                    rows_expected: None,
                    bytes: outcome.bytes,
                });
            }
            None => self.counts_before_start[kind].set(self.counts_before_start[kind].get() + 1),
        }
    }

    pub(super) fn count_reconnect(&self, context: &Context) {
        context.add(Counter::Reconnect, 1);
        if let Some(MeasuredUser { worker, .. }) = &*self.measured_user.borrow() {
            worker.count_reconnect(worker.now());
        }
    }

    pub(super) fn count_error(&self, context: &Context, code: &str, class: ErrorClass) {
        context.add(Counter::Error, 1);
        if let Some(MeasuredUser { worker, .. }) = &*self.measured_user.borrow() {
            worker.count_error(worker.now(), code, class);
        }
    }

    /// Adds the counts that the script made by `sb_counter_inc` to the counts of the run.
    #[inline]
    pub(super) fn add_script_counts(&self, context: &Context) {
        let Some(counts) = context.take_script_counts() else { return };
        let Some(MeasuredUser { worker, .. }) = self.measured_user() else { return };
        let now = worker.now();
        for (counter, kind) in [(Counter::Read, 0), (Counter::Write, 1), (Counter::Other, 2)] {
            for _ in 0..counts[counter as usize] {
                worker.count_statement(statement_record(kind, now));
            }
        }
        for _ in 0..counts[Counter::Error as usize] {
            worker.count_error(now, "script", ErrorClass::Other);
        }
        for _ in 0..counts[Counter::Reconnect as usize] {
            worker.count_reconnect(now);
        }
    }
}

/// A statement without duration, of which only the kind is known.
fn statement_record(kind: usize, now: Nanos) -> Statement {
    Statement {
        class: None,
        kind,
        start: now,
        end: now,
        returns_rows: kind == 0,
        rows: u64::from(kind == 1),
        rows_expected: None,
        bytes: 0,
    }
}
