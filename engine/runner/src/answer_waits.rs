//! Finds connections that wait too long for the server's answer (`load.answer_timeout_us`).
//!
//! A timer for each statement would cost more than many a statement. So a user only notes when it has sent one, and the
//! worker looks at all notes about once a second.

use std::cell::Cell;
use std::sync::Arc;

use dbdyno_load::Nanos;
use dbdyno_schema::plan::Plan;

use crate::failure::{self, RunFailure};

/// Longest time between two checks.
const CHECK_EVERY: Nanos = 1_000_000_000;

/// What one user waits for.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// When the user sent its statement; `Nanos::MAX` while it waits for no answer.
    sent: Nanos,
    /// Number of that statement, by `Program::statements`.
    statement: usize,
}

const NONE: Wait = Wait { sent: Nanos::MAX, statement: usize::MAX };

/// What each user of one worker waits for.
pub struct AnswerWaits {
    timeout: Nanos,
    next_check: Cell<Nanos>,
    waits: Box<[Cell<Wait>]>,
    /// The number of each user over all workers.
    numbers: Vec<u64>,
    /// The texts of the statements, by their number. A script's statements have none.
    statements: Vec<String>,
    plan: Arc<Plan>,
}

impl AnswerWaits {
    /// The waits of the users with these numbers. Without a limit in the plan nothing is noted.
    pub(crate) fn new(plan: &Arc<Plan>, numbers: Vec<u64>, statements: Vec<String>) -> Self {
        let timeout = plan.load.answer_timeout_us.map(|us| us.saturating_mul(1000));
        Self {
            timeout: timeout.unwrap_or(Nanos::MAX),
            next_check: Cell::new(if timeout.is_some() { 0 } else { Nanos::MAX }),
            waits: vec![Cell::new(NONE); if timeout.is_some() { numbers.len() } else { 0 }].into(),
            numbers,
            statements,
            plan: Arc::clone(plan),
        }
    }

    /// Notes that the user with this number on the worker sent a statement at `sent`. `statement` is its number in
    /// `Program::statements`; a script's statement has any other.
    #[inline]
    pub fn begin(&self, user: usize, sent: Nanos, statement: usize) {
        if let Some(wait) = self.waits.get(user) {
            wait.set(Wait { sent, statement });
        }
    }

    /// Notes that the user waits for no answer.
    #[inline]
    pub fn end(&self, user: usize) {
        if let Some(wait) = self.waits.get(user) {
            wait.set(NONE);
        }
    }

    /// When to call [`AnswerWaits::check`] again.
    pub(crate) fn next_check(&self) -> Nanos {
        self.next_check.get()
    }

    /// The failure of the run if a user waits longer than the limit; a check that is not due has none.
    pub(crate) fn check(&self, now: Nanos) -> Option<RunFailure> {
        if now < self.next_check.get() {
            return None;
        }
        self.next_check.set(now + CHECK_EVERY.min(self.timeout / 4 + 1));
        let overdue = |wait: &Wait| now.saturating_sub(wait.sent) >= self.timeout;
        let waits = || self.waits.iter().map(Cell::get).enumerate().filter(|(_, wait)| overdue(wait));
        let (local, longest) = waits().min_by_key(|(_, wait)| wait.sent)?;
        let statement = self.statements.get(longest.statement).map(String::as_str);
        let others = waits().count() - 1;
        Some(failure::no_answer(
            &self.plan.target,
            self.numbers[local],
            now - longest.sent,
            statement,
            others,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    fn waits(timeout_us: u64) -> AnswerWaits {
        let plan = serde_json::json!({"schema": 1, "seed": 1,
            "target": {"protocol": "mysql", "user": "u", "database": "d",
                "endpoints": [{"tcp": {"host": "h", "port": 1}}]},
            "workload": {"name": "oltp_point_select"},
            "load": {"connections": 2, "answer_timeout_us": timeout_us},
            "phases": {"measure_us": 1_000_000}});
        let plan = Arc::new(serde_json::from_value(plan).unwrap());
        AnswerWaits::new(&plan, vec![4, 9], vec!["SELECT 1".into()])
    }

    #[test]
    fn the_failure_names_the_connection_that_waits_longest() {
        let waits = waits(5_000_000);
        waits.begin(0, 3 * S, 0);
        waits.begin(1, 2 * S, 0);
        assert!(waits.check(6 * S).is_none());
        assert!(waits.check(6 * S + S / 2).is_none(), "checks are a second apart");
        let text = waits.check(8 * S).unwrap().1.text;
        assert!(
            text.starts_with("connection 10 to h:1 has waited 6.0 s for the answer to: SELECT 1"),
            "{text}"
        );
        assert!(text.contains("1 other connection"), "{text}");
        waits.end(1);
        let text = waits.check(9 * S).unwrap().1.text;
        assert!(text.starts_with("connection 5 to h:1 has waited 6.0 s"), "{text}");
        waits.end(0);
        assert!(waits.check(100 * S).is_none(), "nobody waits");
    }

    #[test]
    fn a_short_limit_is_checked_more_often() {
        let waits = waits(200_000);
        waits.begin(0, 0, 7);
        assert!(waits.check(0).is_none());
        assert!(waits.next_check() < S / 10);
        let text = waits.check(S).unwrap().1.text;
        assert!(text.contains("the answer to: a statement of the script"), "{text}");
    }
}
