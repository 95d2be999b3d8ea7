//! The messages of a run: commands of the caller, reports of the workers, and the coordinator's commands to the workers.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use dbdyno_load::Nanos;
use dbdyno_load::slices::{Slice, WorkerPause};
use dbdyno_metrics::ClosedSpans;
use dbdyno_metrics::spans::DrainedEvents;
use dbdyno_schema::histogram::Buckets;
use dbdyno_schema::record::{EndReason, Failure, Session, UserTotals, Warning};
use tokio::sync::watch;

use crate::arrival_queue::ArrivalQueue;
use crate::finish::Finish;
use crate::usage::GeneratorUsage;

/// How often the coordinator checks for a stop command while no worker runs.
const STOP_POLL: Duration = Duration::from_millis(50);

/// A message to the coordinator.
pub(crate) enum Message {
    /// The caller's command to start the clock at this instant.
    Start(Instant),
    /// The caller's command to stop the run.
    Stop(EndReason),
    /// The caller's command to begin slice number `slice`, of `for_us` microseconds.
    Resume {
        slice: u64,
        for_us: u64,
    },
    /// The caller's command to end a load in slices.
    Finish,
    /// No event of a worker is in flight after a slice, whose spans the worker has closed. With the latencies of the
    /// events that ended after the slice.
    Paused(WorkerPause, Buckets),
    /// A worker has opened all its connections.
    Ready(WorkerReady),
    /// A worker has closed the spans that end at `boundary`. If an interval ends there, `usage` is the worker's CPU time
    /// and delays in the interval. The spans of the arrival queue, without usage, come from the worker that notices their end.
    SpansClosed {
        boundary: Nanos,
        spans: Box<ClosedSpans>,
        usage: Option<GeneratorUsage>,
    },
    /// The last event that the plan's event limit allows has begun.
    EventLimitReached,
    /// The last user of all workers has ended, so the end of the run is known.
    AllUsersEnded,
    /// The outcome of the worker's events that were in progress at the end of the run, and the totals of its users, each
    /// with the user's number.
    Drained(Box<DrainedEvents>, Vec<(u64, UserTotals)>),
    Warning(Warning),
    /// A worker failed.
    Failed(EndReason, Failure),
    /// A worker's answer to a change of [`Signal::Go::end_checks`]: no user blocks its thread.
    Alive,
    /// A worker has ended.
    Finished,
}

/// A worker's report when it has opened its connections.
pub struct WorkerReady {
    /// Number of connections, or of users that open their own connections.
    pub connections: u32,
    /// The settings of this engine's first connection; only the worker with that connection reports them.
    pub session: Option<Session>,
    /// Number of prepared statements on all of the worker's connections.
    pub prepared_statements: u64,
}

/// A command of the coordinator to the workers.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// Connect, and wait for the next command.
    Wait,
    /// Start the clock at `start`. Whenever `end_checks` changes, check the shared end of the run again; whenever `slice`
    /// changes, begin that slice.
    Go {
        /// First instant of the warm-up.
        start: Instant,
        /// Incremented to make the workers check the end of the run.
        end_checks: u32,
        /// The latest slice of a load in slices.
        slice: Option<Slice>,
    },
    /// End without starting the clock.
    Quit,
}

/// A worker's channel to and from the coordinator. Messages sent after the coordinator has ended are lost, which is harmless.
#[derive(Clone)]
pub struct CoordinatorLink {
    /// The coordinator's latest command.
    pub signal: watch::Receiver<Signal>,
    pub(crate) finish: Arc<Finish>,
    /// The queue of a load with a rate.
    pub(crate) queue: Option<Arc<ArrivalQueue>>,
    pub(crate) messages: Sender<Message>,
}

impl CoordinatorLink {
    pub(crate) fn send(&self, message: Message) {
        let _ = self.messages.send(message);
    }

    /// Reports that all users of this worker are ready.
    pub fn report_ready(&self, ready: WorkerReady) {
        self.send(Message::Ready(ready));
    }

    /// Writes a warning.
    pub fn warn(&self, warning: Warning) {
        self.send(Message::Warning(warning));
    }

    /// Ends the run.
    pub fn fail_run(&self, reason: EndReason, failure: Failure) {
        self.send(Message::Failed(reason, failure));
    }
}

/// Sends commands to a run, from any thread.
#[derive(Clone)]
pub struct Control(pub(crate) Sender<Message>);

impl Control {
    /// Starts the clock of a waiting run at a time in microseconds since 1970, or immediately if that time has passed.
    pub fn start(&self, at_unix_us: u64) {
        // The run may have ended already.
        let _ = self.0.send(Message::Start(crate::clock::instant_of(at_unix_us)));
    }

    /// Resumes a load in slices for `for_us` microseconds; `slice` numbers the slice.
    pub fn resume(&self, slice: u64, for_us: u64) {
        let _ = self.0.send(Message::Resume { slice, for_us });
    }

    /// Ends a load in slices.
    pub fn finish(&self) {
        let _ = self.0.send(Message::Finish);
    }

    /// Ends a run early; the run still writes its reports.
    pub fn stop(&self, reason: EndReason) {
        let _ = self.0.send(Message::Stop(reason));
    }
}

/// The receiving end of [`Control`], for one run.
pub struct Inbox {
    pub(crate) messages: Receiver<Message>,
    pub(crate) sender: Sender<Message>,
}

impl Inbox {
    /// The stop command, if one has arrived. A start command that arrives first stays in the channel for the run.
    pub fn requested_stop(&self) -> Option<EndReason> {
        let early: Vec<Message> = self.messages.try_iter().collect();
        for message in early {
            if let Message::Stop(reason) = message {
                return Some(reason);
            }
            // `self` has both ends of the channel, so sending cannot fail.
            let _ = self.sender.send(message);
        }
        None
    }

    /// Waits for a stop command while the caller waits for a server, which may take hours to answer.
    pub(crate) async fn wait_for_stop(&self) -> EndReason {
        loop {
            if let Some(reason) = self.requested_stop() {
                return reason;
            }
            tokio::time::sleep(STOP_POLL).await;
        }
    }
}

/// The two ends of a channel for commands to one run.
pub fn channel() -> (Control, Inbox) {
    let (sender, messages) = std::sync::mpsc::channel();
    (Control(sender.clone()), Inbox { messages, sender })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_start_command_stays_in_the_channel_and_a_stop_command_is_returned() {
        let (control, inbox) = channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        control.start(0);
        runtime.block_on(async {
            assert!(tokio::time::timeout(3 * STOP_POLL, inbox.wait_for_stop()).await.is_err());
            assert!(matches!(inbox.messages.try_recv(), Ok(Message::Start(_))));
            control.stop(EndReason::Interrupted);
            assert_eq!(inbox.wait_for_stop().await, EndReason::Interrupted);
        });
    }
}
