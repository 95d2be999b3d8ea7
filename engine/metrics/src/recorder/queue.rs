//! The events of an open loop that wait for a connection. The queue of a run has a recorder of its own: from the moment at which
//! an event leaves the queue, the recorder of its worker counts it.

use dbdyno_load::Nanos;

use super::Recorder;

impl Recorder {
    /// Records that an event became due and waits for a connection. Call it in the order of the due times.
    pub fn enqueue_event(&mut self, due: Nanos) {
        self.close_spans_until(due);
        if self.span_end.is_some() {
            self.accounting.due += 1;
            self.outstanding.enqueue(due);
        }
    }

    /// Records that an event became due and was dropped, because the queue is full.
    pub fn drop_event(&mut self, due: Nanos) {
        self.close_spans_until(due);
        if self.span_end.is_some() {
            self.accounting.due += 1;
            self.accounting.dropped += 1;
            self.counts.dropped += 1;
            if self.service.is_some() {
                self.dropped.push(due);
            }
        }
    }

    /// Removes the event that has waited longest; returns its due time. The caller begins it by [`Recorder::start_due_event`],
    /// which counts it.
    pub fn dequeue_event(&mut self) -> Option<Nanos> {
        let due = self.outstanding.dequeue()?;
        self.accounting.due -= 1;
        Some(due)
    }

    /// Number of events that wait for a connection.
    pub fn queue_length(&self) -> u64 {
        self.outstanding.queue_length()
    }
}
