//! What happens to a script's statements and connections, counted: where the run counts, and where the script reads it.

use crate::{Context, Counter};
use dbdyno_load::Nanos;
use dbdyno_metrics::Statement;
use dbdyno_schema::record::ErrorClass;
use dbdyno_wire::Outcome;
use dbdyno_wire::scripted::ScriptedConnector;

use super::broker::{Broker, Place};

impl<C: ScriptedConnector> Broker<C> {
    /// From here on what happens is counted at `place`; what has happened before, too.
    pub(super) fn take_place(&self, place: Place) {
        let now = place.desk.now();
        for (kind, early) in self.early.iter().enumerate() {
            for _ in 0..early.take() {
                place.desk.statement(statement_of(kind, now, now, 0));
            }
        }
        *self.place.borrow_mut() = Some(place);
    }

    /// A statement of the script has succeeded.
    #[inline]
    pub(super) fn count(&self, context: &Context, outcome: Outcome, start: Nanos) {
        let (kind, counter) = match (outcome.returns_rows, outcome.rows) {
            (true, _) => (0, Counter::Read),
            (false, 0) => (2, Counter::Other),
            (false, _) => (1, Counter::Write),
        };
        context.note(counter, 1);
        match &*self.place.borrow() {
            Some(Place { desk, .. }) => {
                let end = desk.now();
                desk.statement(Statement {
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
            None => self.early[kind].set(self.early[kind].get() + 1),
        }
    }

    pub(super) fn count_reconnect(&self, context: &Context) {
        context.note(Counter::Reconnect, 1);
        if let Some(Place { desk, .. }) = &*self.place.borrow() {
            desk.reconnect(desk.now());
        }
    }

    pub(super) fn count_error(&self, context: &Context, code: &str, class: ErrorClass) {
        context.note(Counter::Error, 1);
        if let Some(Place { desk, .. }) = &*self.place.borrow() {
            desk.error(desk.now(), code, class);
        }
    }

    /// Hands on what the script has counted itself: `sb_counter_inc`.
    #[inline]
    pub(super) fn count_scripts_own(&self, context: &Context) {
        let Some(counted) = context.take_counted() else { return };
        let Some(Place { desk, .. }) = self.place() else { return };
        let now = desk.now();
        for (counter, kind) in [(Counter::Read, 0), (Counter::Write, 1), (Counter::Other, 2)] {
            for _ in 0..counted[counter as usize] {
                desk.statement(statement_of(kind, now, now, 0));
            }
        }
        for _ in 0..counted[Counter::Error as usize] {
            desk.error(now, "script", ErrorClass::Other);
        }
        for _ in 0..counted[Counter::Reconnect as usize] {
            desk.reconnect(now);
        }
    }
}

/// A statement of which only its kind is known.
fn statement_of(kind: usize, start: Nanos, end: Nanos, bytes: u64) -> Statement {
    Statement {
        class: None,
        kind,
        start,
        end,
        returns_rows: kind == 0,
        rows: u64::from(kind == 1),
        rows_expected: None,
        bytes,
    }
}
