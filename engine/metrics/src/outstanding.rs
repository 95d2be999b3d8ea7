//! Events that are due and have not ended. They wait in the queue or run on a connection.

use std::collections::VecDeque;

use dbdyno_load::Nanos;

/// The due times of the outstanding events of one worker, or of the queue.
#[derive(Clone, Debug, Default)]
pub struct OutstandingEvents {
    queue: VecDeque<Nanos>,
    /// For each user of the worker, the due time of the event on its connection.
    running: Vec<Option<Nanos>>,
    in_flight: u64,
}

impl OutstandingEvents {
    /// Adds an event to the queue.
    pub fn enqueue(&mut self, due: Nanos) {
        self.queue.push_back(due);
    }

    /// Removes the event at the head of the queue; returns its due time.
    #[inline]
    pub fn dequeue(&mut self) -> Option<Nanos> {
        self.queue.pop_front()
    }

    /// Records that an event with the due time `due` begins on the connection of `user`.
    #[inline]
    pub fn start(&mut self, user: usize, due: Nanos) {
        if user >= self.running.len() {
            self.running.resize(user + 1, None);
        }
        debug_assert!(self.running[user].is_none(), "two events on one connection");
        self.running[user] = Some(due);
        self.in_flight += 1;
    }

    /// Removes the event of `user`, which has ended; returns its due time, or `None` if there was none.
    #[inline]
    pub fn finish(&mut self, user: usize) -> Option<Nanos> {
        let due = self.running.get_mut(user)?.take()?;
        self.in_flight -= 1;
        Some(due)
    }

    /// Number of events in the queue.
    pub fn queue_length(&self) -> u64 {
        self.queue.len() as u64
    }

    /// Number of events on a connection.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Due times of the events in the queue.
    pub fn queued_due_times(&self) -> impl Iterator<Item = Nanos> {
        self.queue.iter().copied()
    }

    /// Due times of the events on connections.
    pub fn running_due_times(&self) -> impl Iterator<Item = Nanos> {
        self.running.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_leave_the_queue_in_order_and_end() {
        let mut outstanding = OutstandingEvents::default();
        outstanding.enqueue(10);
        outstanding.enqueue(20);
        assert_eq!(outstanding.dequeue(), Some(10));
        outstanding.start(3, 10);
        outstanding.start(0, 15);
        assert_eq!((outstanding.queue_length(), outstanding.in_flight()), (1, 2));
        assert_eq!(outstanding.running_due_times().collect::<Vec<_>>(), [15, 10]);
        assert_eq!(outstanding.finish(3), Some(10));
        assert_eq!(outstanding.finish(3), None, "it has ended already");
        assert_eq!(outstanding.finish(99), None);
        assert_eq!((outstanding.queue_length(), outstanding.in_flight()), (1, 1));
        assert_eq!(outstanding.queued_due_times().collect::<Vec<_>>(), [20]);
    }
}
