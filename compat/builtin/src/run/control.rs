//! Messages to the conductor, from the caller and from the threads.

use std::sync::mpsc::{Receiver, Sender};

use dbdyno_load::Nanos;
use dbdyno_schema::record::EndReason;

use crate::test::Line;

/// A message to the conductor.
pub(super) enum Message {
    /// The caller stops the run.
    Stop(EndReason),
    Ready,
    Left(Nanos),
    QueueFull,
    Failed(Vec<Line>),
}

/// Sends the caller's stop command to a run.
#[derive(Clone)]
pub struct Control(pub(super) Sender<Message>);

impl Control {
    /// Ends a run early; the run still writes its reports.
    pub fn stop(&self, reason: EndReason) {
        // The run may have ended already.
        let _ = self.0.send(Message::Stop(reason));
    }
}

/// Receives the messages of exactly one run.
pub struct Inbox {
    pub(super) messages: Receiver<Message>,
    pub(super) sender: Sender<Message>,
}

pub fn channel() -> (Control, Inbox) {
    let (sender, messages) = std::sync::mpsc::channel();
    (Control(sender.clone()), Inbox { messages, sender })
}
