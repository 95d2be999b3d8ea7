//! Events that are due and have not ended. They wait in the queue or run on a connection.

use std::collections::VecDeque;

use dbdyno_load::Nanos;

/// The due times of one worker's outstanding events.
#[derive(Clone, Debug, Default)]
pub struct Outstanding {
    waiting: VecDeque<Nanos>,
    /// For each user of the worker, the due time of the event on its connection.
    running: Vec<Option<Nanos>>,
    in_flight: u64,
}

impl Outstanding {
    /// Adds an event to the queue.
    pub fn arrive(&mut self, due: Nanos) {
        self.waiting.push_back(due);
    }

    /// Moves the event at the head of the queue to the connection of `user`; returns its due time.
    #[inline]
    pub fn take(&mut self, user: usize) -> Option<Nanos> {
        let due = self.waiting.pop_front()?;
        self.begin(user, due);
        Some(due)
    }

    /// Records that an event with the due time `due` begins on the connection of `user`.
    #[inline]
    pub fn begin(&mut self, user: usize, due: Nanos) {
        if user >= self.running.len() {
            self.running.resize(user + 1, None);
        }
        debug_assert!(self.running[user].is_none(), "two events on one connection");
        self.running[user] = Some(due);
        self.in_flight += 1;
    }

    /// Removes the event of `user`, which has ended; returns its due time, or `None` if there was none.
    #[inline]
    pub fn end(&mut self, user: usize) -> Option<Nanos> {
        let due = self.running.get_mut(user)?.take()?;
        self.in_flight -= 1;
        Some(due)
    }

    /// Number of events in the queue.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Number of events on a connection.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Due times of the events in the queue.
    pub fn waiting_since(&self) -> impl Iterator<Item = Nanos> {
        self.waiting.iter().copied()
    }

    /// Due times of the events on connections.
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
