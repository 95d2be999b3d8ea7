//! Messages to the coordinator, from the caller and from the threads.

use std::sync::mpsc::{Receiver, Sender};

use dbdyno_load::Nanos;
use dbdyno_schema::record::EndReason;

use crate::test::LogMessage;

/// A message to the coordinator.
pub(super) enum Message {
    /// The caller stops the run.
    Stop(EndReason),
    ThreadReady,
    /// A thread has ended at this time of the run.
    ThreadEnded(Nanos),
    /// More events wait for a thread than `RunSpec::queue_limit` allows.
    QueueOverflowed,
    ThreadFailed(Vec<LogMessage>),
}

/// The caller's handle for stopping a run.
#[derive(Clone)]
pub struct Control(pub(super) Sender<Message>);

impl Control {
    /// Stops the run early. The run still writes its last records.
    pub fn stop(&self, reason: EndReason) {
        // Sending fails if the run has ended already.
        let _ = self.0.send(Message::Stop(reason));
    }
}

/// The receiver of the messages of one run.
pub struct Inbox {
    pub(super) messages: Receiver<Message>,
    pub(super) sender: Sender<Message>,
}

pub fn channel() -> (Control, Inbox) {
    let (sender, messages) = std::sync::mpsc::channel();
    (Control(sender.clone()), Inbox { messages, sender })
}
