//! How the outside talks to a run: one inbox for orders and for what the workers send.

use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use dbdyno_load::Nanos;
use dbdyno_metrics::ClosedSpans;
use dbdyno_metrics::spans::DrainedEvents;
use dbdyno_schema::record::{EndReason, Failure, Session, UserTotals, Warning};

use crate::watch::Fared;

/// What arrives in the inbox.
pub(crate) enum Message {
    /// From outside: start the clock at that instant.
    Start(Instant),
    /// From outside: stop.
    Stop(EndReason),
    /// A worker has opened all its connections.
    Ready(WorkerReady),
    /// A worker has closed a span.
    Closed { bound: Nanos, closed: Box<ClosedSpans>, fared: Option<Fared> },
    /// All events of the plan have begun: no other does.
    Full,
    /// The last user of all workers has left: when the run ends is known.
    AllLeft,
    /// A worker waits no longer for the events that were under way at the end; and what its users did, by number.
    Drained(Box<DrainedEvents>, Vec<(u64, UserTotals)>),
    /// Something makes the measurement worth less.
    Warning(Warning),
    /// A worker cannot go on.
    Failed(EndReason, Failure),
    /// A worker has ended.
    Finished,
}

/// What a worker found when it connected.
pub struct WorkerReady {
    /// Connections, or users that open their own.
    pub connections: u32,
    /// What this engine's first connection settled; from the worker that has it.
    pub session: Option<Session>,
    /// On all of them.
    pub prepared_statements: u64,
}

/// Gives orders to a run, from any thread.
#[derive(Clone)]
pub struct Control(pub(crate) Sender<Message>);

impl Control {
    /// Starts the clock of a run that waits for it at a wall time, microseconds since 1970; past means now.
    pub fn start(&self, at_unix_us: u64) {
        // A run that has ended hears nothing, and needs not.
        let _ = self.0.send(Message::Start(crate::clock::instant_of(at_unix_us)));
    }

    /// Ends a run early; it still reports.
    pub fn stop(&self, reason: EndReason) {
        let _ = self.0.send(Message::Stop(reason));
    }
}

/// The receiving end, for exactly one run.
pub struct Inbox {
    pub(crate) messages: Receiver<Message>,
    pub(crate) sender: Sender<Message>,
}

impl Inbox {
    /// The order to stop, where there is one by now. An order to start that came early is left for the run.
    pub fn stop_order(&self) -> Option<EndReason> {
        let early: Vec<Message> = self.messages.try_iter().collect();
        for message in early {
            if let Message::Stop(reason) = message {
                return Some(reason);
            }
            // Both ends are the inbox's own.
            let _ = self.sender.send(message);
        }
        None
    }
}

/// A connected pair.
pub fn channel() -> (Control, Inbox) {
    let (sender, messages) = std::sync::mpsc::channel();
    (Control(sender.clone()), Inbox { messages, sender })
}
