//! Events that are due and have not ended: some wait in a queue, the others run on a connection.

use std::collections::VecDeque;

use dbdyno_load::Nanos;

/// The due times of one worker's outstanding events.
#[derive(Clone, Debug, Default)]
pub struct Outstanding {
    waiting: VecDeque<Nanos>,
    /// By user of the worker: when the event that runs on its connection was due.
    running: Vec<Option<Nanos>>,
    in_flight: u64,
}

impl Outstanding {
    /// An event joins the queue.
    pub fn arrive(&mut self, due: Nanos) {
        self.waiting.push_back(due);
    }

    /// The connection of `user` takes the event at the head of the queue.
    #[inline]
    pub fn take(&mut self, user: usize) -> Option<Nanos> {
        let due = self.waiting.pop_front()?;
        self.begin(user, due);
        Some(due)
    }

    /// An event that was due at `due` begins on the connection of `user`.
    #[inline]
    pub fn begin(&mut self, user: usize, due: Nanos) {
        if user >= self.running.len() {
            self.running.resize(user + 1, None);
        }
        debug_assert!(self.running[user].is_none(), "two events on one connection");
        self.running[user] = Some(due);
        self.in_flight += 1;
    }

    /// The event of `user` has ended; returns when it was due, or `None` where none ran.
    #[inline]
    pub fn end(&mut self, user: usize) -> Option<Nanos> {
        let due = self.running.get_mut(user)?.take()?;
        self.in_flight -= 1;
        Some(due)
    }

    /// Events in the queue.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Events on a connection.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// When each event in the queue was due.
    pub fn waiting_since(&self) -> impl Iterator<Item = Nanos> {
        self.waiting.iter().copied()
    }

    /// When each event on a connection was due.
    pub fn running_since(&self) -> impl Iterator<Item = Nanos> {
        self.running.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_go_from_the_line_to_a_seat_and_out() {
        let mut outstanding = Outstanding::default();
        outstanding.arrive(10);
        outstanding.arrive(20);
        assert_eq!(outstanding.take(3), Some(10));
        outstanding.begin(0, 15);
        assert_eq!((outstanding.waiting(), outstanding.in_flight()), (1, 2));
        assert_eq!(outstanding.running_since().collect::<Vec<_>>(), [15, 10]);
        assert_eq!(outstanding.end(3), Some(10));
        assert_eq!(outstanding.end(3), None, "it has ended already");
        assert_eq!(outstanding.end(99), None);
        assert_eq!((outstanding.waiting(), outstanding.in_flight()), (1, 1));
        assert_eq!(outstanding.waiting_since().collect::<Vec<_>>(), [20]);
    }
}
