//! Events that are due and have not ended: some wait in line, the others run on a connection.

use std::collections::VecDeque;

use dbdyno_load::Nanos;

/// The due times of one worker's outstanding events.
#[derive(Clone, Debug, Default)]
pub struct Outstanding {
    waiting: VecDeque<Nanos>,
    /// By seat: when the event that runs on that connection was due.
    running: Vec<Option<Nanos>>,
    in_flight: u64,
}

impl Outstanding {
    /// An event joins the line.
    pub fn arrive(&mut self, due: Nanos) {
        self.waiting.push_back(due);
    }

    /// The connection `seat` takes the event at the head of the line.
    #[inline]
    pub fn take(&mut self, seat: usize) -> Option<Nanos> {
        let due = self.waiting.pop_front()?;
        self.begin(seat, due);
        Some(due)
    }

    /// An event that was due at `due` begins on `seat`.
    #[inline]
    pub fn begin(&mut self, seat: usize, due: Nanos) {
        if seat >= self.running.len() {
            self.running.resize(seat + 1, None);
        }
        debug_assert!(self.running[seat].is_none(), "two events on one connection");
        self.running[seat] = Some(due);
        self.in_flight += 1;
    }

    /// The event on `seat` has ended; returns when it was due, or `None` where none ran.
    #[inline]
    pub fn end(&mut self, seat: usize) -> Option<Nanos> {
        let due = self.running.get_mut(seat)?.take()?;
        self.in_flight -= 1;
        Some(due)
    }

    /// Events in line.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Events on a connection.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// When each event in line was due.
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
