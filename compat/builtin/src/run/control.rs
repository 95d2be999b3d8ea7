//! How the outside talks to a run, and the threads to the conductor.

use std::sync::mpsc::{Receiver, Sender};

use dbdyno_load::Nanos;
use dbdyno_schema::record::EndReason;

use crate::test::Line;

/// What arrives in the inbox.
pub(super) enum Message {
    /// From outside: stop.
    Stop(EndReason),
    /// A thread can begin.
    Ready,
    /// A thread has ended.
    Left(Nanos),
    /// More events are due than may wait.
    QueueFull,
    /// A thread cannot begin, or cannot go on.
    Failed(Vec<Line>),
}

/// Gives orders to a run, from any thread.
#[derive(Clone)]
pub struct Control(pub(super) Sender<Message>);

impl Control {
    /// Ends a run early; it still reports.
    pub fn stop(&self, reason: EndReason) {
        // A run that has ended hears nothing, and needs not.
        let _ = self.0.send(Message::Stop(reason));
    }
}

/// The receiving end, for exactly one run.
pub struct Inbox {
    pub(super) messages: Receiver<Message>,
    pub(super) sender: Sender<Message>,
}

/// A connected pair.
pub fn channel() -> (Control, Inbox) {
    let (sender, messages) = std::sync::mpsc::channel();
    (Control(sender.clone()), Inbox { messages, sender })
}
