//! The coordinator of a run: it starts the workers, adds up their measurements, and writes the records.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dbdyno_load::Nanos;
use dbdyno_load::timeline::Timeline;
use dbdyno_schema::plan::{Plan, Start};
use dbdyno_schema::record::{EndReason, Failure, Hello, Phase, Ready, Session, StatementKind, Warning};
use dbdyno_schema::{Record, SCHEMA_VERSION};
use dbdyno_wire::scripted::ScriptedConnector;
use dbdyno_workload::replay::Recording;
use tokio::sync::watch;

use crate::arrival_queue::ArrivalQueue;
use crate::clock::{Clock, unix_us};
use crate::connector::{AnyConnector, connector};
use crate::control::{CoordinatorLink, Inbox, Message, Signal};
use crate::failure;
use crate::finish::Finish;
use crate::machine;
use crate::merge::{MergedSpan, SpanMerger};
use crate::missing_workers::substitute_spans;
use crate::prewarm::prewarm;
use crate::server_limits::OpenCounts;
use crate::share::share;
use crate::slices::{self, Slices};
use crate::worker::Worker;
use crate::worker_context::WorkerContext;
use crate::{RunEnd, RunSpec, Sink};

/// A stop takes effect this much later than the request, so that no worker has closed a span that ends after the
/// stop.
const STOP_DELAY: Duration = Duration::from_millis(50);
/// Connections per worker on which the delay inside the client is sampled.
const SAMPLED_CONNECTIONS_PER_WORKER: u64 = 32;
/// How long the coordinator waits after the end of a run for workers whose users have not ended.
const LATE_WORKER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a worker may compute after the time limit without answering the coordinator. Then its script loops without end.
const BLOCKED_MAX: Duration = Duration::from_secs(5);
/// An immediate start takes effect this much later, so that every worker receives the start command in time.
const START_DELAY: Duration = Duration::from_millis(5);

/// Runs a plan and writes its records; the last one is always an `End`. The caller must have checked the plan
/// (`Plan::problems`).
pub fn run(spec: &RunSpec, inbox: Inbox, sink: &mut dyn Sink) -> RunEnd {
    let workers = u64::from(spec.plan.segment.count) * u64::from(spec.plan.client.workers);
    let sampled = SAMPLED_CONNECTIONS_PER_WORKER * workers;
    match connector(spec) {
        AnyConnector::Mysql(mut connector) => {
            connector.options.sampled_connections = sampled;
            run_with_connector(spec, connector, inbox, sink)
        }
        AnyConnector::Postgres(mut connector) => {
            connector.options.sampled_connections = sampled;
            run_with_connector(spec, connector, inbox, sink)
        }
        AnyConnector::Null(connector) => run_with_connector(spec, connector, inbox, sink),
    }
}

pub(crate) fn hello_record(plan: &Plan, statements: Vec<StatementKind>) -> Record {
    Record::Hello(Box::new(Hello {
        schema: SCHEMA_VERSION,
        engine: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        unix_us: unix_us(),
        plan: plan.clone(),
        statements,
    }))
}

fn run_with_connector<C: ScriptedConnector>(
    spec: &RunSpec,
    connector: C,
    inbox: Inbox,
    sink: &mut dyn Sink,
) -> RunEnd {
    let program = spec.program();
    let open_counts = Arc::new(OpenCounts::default());
    let spawn = |number, coordinator: CoordinatorLink| {
        let worker = Worker {
            context: WorkerContext::new(spec, number, coordinator),
            program: program.clone(),
            connector: connector.clone(),
            open_counts: Arc::clone(&open_counts),
        };
        std::thread::spawn(move || worker.run())
    };
    let before_start = |write: &mut dyn FnMut(Record)| {
        spec.secrets
            .contents
            .recording
            .iter()
            .filter_map(|recording| omission_warning(recording))
            .for_each(&mut *write);
        prewarm(spec, &connector, &inbox, write)
    };
    run_workers(spec, program.describe(), before_start, spawn, &inbox, sink)
}

/// The warning about statements of a recording that are not replayed, if there are any.
fn omission_warning(recording: &Recording) -> Option<Record> {
    let (statements, skipped) = recording.counts();
    let what: Vec<String> = skipped.iter().map(|(what, count)| format!("{what} {count}")).collect();
    (!what.is_empty()).then(|| {
        Record::Warning(Warning {
            code: "replay-left-out".into(),
            text: format!("{statements} recorded statements are replayed; left out: {}", what.join(", ")),
            fix: "statements that define tables, change session settings or administer the server are not replayed, nor, with writes = \"skip\", \
                   those that write; put the necessary ones in setup or session"
                .into(),
        })
    })
}

/// Runs the coordinator on the calling thread. `spawn` starts the worker with a number, counted from 0 within this engine.
/// `before_start` is called between the first record and the start of the first worker.
pub fn run_workers(
    spec: &RunSpec,
    statements: Vec<StatementKind>,
    before_start: impl FnOnce(&mut dyn FnMut(Record)) -> Result<(), RunEnd>,
    spawn: impl Fn(u32, CoordinatorLink) -> JoinHandle<()>,
    inbox: &Inbox,
    sink: &mut dyn Sink,
) -> RunEnd {
    let (plan, measurement_end) = (&*spec.plan, spec.options.measurement_end);
    let (signal, listener) = watch::channel(Signal::Wait);
    let users = share(plan.load.connections, plan.segment.index, plan.segment.count);
    let finish = Arc::new(Finish::new(&plan.phases, measurement_end, users));
    let kinds: Vec<_> = statements.iter().map(|statement| statement.kind.clone()).collect();
    let queue = ArrivalQueue::new(spec, kinds.len(), finish.time_limit());
    let mut coordinator = Coordinator {
        spec,
        timeline: Timeline::new(&plan.phases, &plan.report, measurement_end),
        merger: SpanMerger::new(plan, kinds),
        inbox,
        sink,
        signal,
        finish,
        clock: None,
        early_end: None,
        running_workers: plan.client.workers,
        alive_check: None,
        has_given_up: false,
        is_sink_open: true,
        slices: plan.load.slices().map(|settings| Slices::new(settings, plan.client.workers)),
    };
    coordinator.write(hello_record(plan, statements));
    if let Err(ended) = before_start(&mut |record| coordinator.write(record)) {
        coordinator.early_end = Some(ended);
        return coordinator.write_end(machine::process_cpu());
    }
    let began = Instant::now(); // The time to connect does not include `before_start`.
    let (finish, messages) = (Arc::clone(&coordinator.finish), inbox.sender.clone());
    let link = CoordinatorLink { signal: listener, finish, queue, messages };
    let threads: Vec<JoinHandle<()>> =
        (0..plan.client.workers).map(|number| spawn(number, link.clone())).collect();
    let cpu_before = match coordinator.wait_until_ready(began) {
        Some(start) => coordinator.run_phases(start),
        None => coordinator.end_workers(),
    };
    // Late workers are not joined; they end when the process ends.
    if !coordinator.has_given_up {
        threads.into_iter().for_each(|thread| thread.join().expect("a worker does not panic"));
    }
    coordinator.write_end(cpu_before)
}

/// A question to all workers after the time limit. A worker whose user blocks the thread does not answer.
struct AliveCheck {
    asked: Instant,
    /// CPU time of the process at that instant: a script that sleeps blocks its thread too, but it may do so.
    cpu: Duration,
    answers: u32,
}

/// The state of the coordinator.
struct Coordinator<'a> {
    spec: &'a RunSpec,
    timeline: Timeline,
    merger: SpanMerger,
    inbox: &'a Inbox,
    sink: &'a mut dyn Sink,
    signal: watch::Sender<Signal>,
    finish: Arc<Finish>,
    /// The clock; `None` until the start is known.
    clock: Option<Clock>,
    /// The slices of a load that pauses and resumes on command.
    slices: Option<Slices>,
    /// Why the run ends early; the first reason is kept.
    early_end: Option<RunEnd>,
    /// Number of workers that have not finished.
    running_workers: u32,
    /// The last question to the workers; `None` before the time limit.
    alive_check: Option<AliveCheck>,
    /// Whether the coordinator no longer waits for running workers.
    has_given_up: bool,
    /// Whether the sink still accepts records.
    is_sink_open: bool,
}

impl Coordinator<'_> {
    /// Collects the workers' reports and waits for the start command. Returns `None` if the run ends before the start.
    fn wait_until_ready(&mut self, began: Instant) -> Option<Instant> {
        let mut missing_reports = self.spec.plan.client.workers;
        let mut ready =
            Ready { connections: 0, connect_us: 0, prepared_statements: 0, session: Session::default() };
        let mut start_instant = matches!(self.spec.plan.start, Start::AtOnce).then(Instant::now);
        let mut deadline = None;
        while missing_reports > 0 || start_instant.is_none() {
            match self.next_message(deadline)? {
                Message::Ready(worker) => {
                    missing_reports -= 1;
                    ready.connections += worker.connections;
                    ready.prepared_statements += worker.prepared_statements;
                    if let Some(session) = worker.session {
                        ready.session = session;
                    }
                    if missing_reports == 0 {
                        ready.connect_us = began.elapsed().as_micros() as u64;
                        self.write(Record::Ready(ready.clone()));
                        deadline = self.start_deadline();
                    }
                }
                Message::Start(at) => start_instant = Some(at),
                message => self.handle_message(message),
            }
            if self.early_end.is_some() {
                return None;
            }
        }
        start_instant.map(|at| at.max(Instant::now() + START_DELAY))
    }

    fn start_deadline(&self) -> Option<Instant> {
        match self.spec.plan.start {
            Start::AtOnce => None,
            Start::OnCommand { start_timeout_us } => {
                Some(Instant::now() + Duration::from_micros(start_timeout_us))
            }
        }
    }

    /// The next message; `None` if the start command did not come before `deadline`.
    fn next_message(&mut self, deadline: Option<Instant>) -> Option<Message> {
        let wait = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        match self.inbox.messages.recv_timeout(wait) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Disconnected) => unreachable!("the inbox holds a sender"),
            Err(RecvTimeoutError::Timeout) => {
                self.early_end = Some(RunEnd {
                    reason: EndReason::Abandoned,
                    failure: Some(Failure {
                        text: "no start command arrived in time".into(),
                        fix: Some("send {\"type\":\"start\",…} or plan \"start\": \"at-once\"".into()),
                        ..Failure::default()
                    }),
                });
                None
            }
        }
    }

    /// Starts the clock and waits for the end of the run. Returns the CPU time that the process had used at the start.
    fn run_phases(&mut self, start: Instant) -> Duration {
        let clock = Clock::starting_at(start);
        self.clock = Some(clock);
        self.signal.send_replace(Signal::Go { start, end_checks: 0, slice: None });
        let start_unix_us = unix_us() + start.saturating_duration_since(Instant::now()).as_micros() as u64;
        let cpu_before = machine::process_cpu();
        self.write_phase(0, start_unix_us);
        while self.running_workers > 0 && !self.has_given_up {
            let (give_up_at, check_at) = (self.give_up_instant(clock), self.alive_check_instant(clock));
            let next = give_up_at.into_iter().chain(check_at).min();
            let timeout = next.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            match self.inbox.messages.recv_timeout(timeout) {
                Ok(Message::SpansClosed { boundary, spans, usage }) => {
                    let span = self.merger.add(boundary, *spans, usage);
                    span.into_iter().for_each(|span| self.write_span(span, start_unix_us));
                }
                Ok(message) => self.handle_message(message),
                Err(_) if next == give_up_at => self.give_up(start_unix_us),
                Err(_) => self.check_alive(start_unix_us),
            }
        }
        cpu_before
    }

    /// When the coordinator gives up workers whose users have not ended.
    fn give_up_instant(&self, clock: Clock) -> Option<Instant> {
        let waits = self.finish.counts_last_events() && self.finish.active_users() > 0;
        waits.then(|| clock.instant(self.end()) + LATE_WORKER_TIMEOUT)
    }

    /// When to ask the workers again whether they are alive; first when all of them should have ended.
    fn alive_check_instant(&self, clock: Clock) -> Option<Instant> {
        if let Some(check) = &self.alive_check {
            return Some(check.asked + BLOCKED_MAX);
        }
        let limit = match self.finish.counts_last_events() {
            true => self.finish.time_limit(),
            false => self.end().saturating_add(self.spec.plan.phases.drain_us.saturating_mul(1000)),
        };
        (limit < Nanos::MAX).then(|| clock.instant(limit))
    }

    /// Asks the workers whether they are alive. Ends the run if one of them computed all the time since the last question
    /// and has not answered it.
    fn check_alive(&mut self, start_unix_us: u64) {
        let cpu = machine::process_cpu();
        let check = self.alive_check.replace(AliveCheck { asked: Instant::now(), cpu, answers: 0 });
        let is_blocked = |check: &AliveCheck| {
            check.answers < self.running_workers && cpu.saturating_sub(check.cpu) >= BLOCKED_MAX / 2
        };
        if !check.as_ref().is_some_and(is_blocked) {
            return self.signal_end_check();
        }
        if self.finish.counts_last_events() {
            self.end_early(failure::endless_script(EndReason::ForcedShutdown));
        } else {
            self.early_end = Some(failure::endless_script(EndReason::ScriptError));
            self.give_up(start_unix_us);
        }
    }

    /// The end of the run, as far as it is known.
    fn end(&self) -> Nanos {
        self.finish.stop_at().min(self.timeline.end())
    }

    /// Stops waiting for late workers, and writes substitutes for their spans.
    fn give_up(&mut self, start_unix_us: u64) {
        self.has_given_up = true;
        let users = self.finish.active_users().saturating_sub(self.merger.in_flight() as u32);
        let (since, end) = (self.merger.last_boundary(), self.end());
        let spans = substitute_spans(self.spec, self.merger.kinds(), users, since, end);
        for span in self.merger.complete_all(spans) {
            self.write_span(span, start_unix_us);
        }
    }

    fn write_span(&mut self, span: MergedSpan, start_unix_us: u64) {
        for record in span.records {
            match (record, &mut self.slices) {
                (Record::Interval(interval), Some(slices)) => slices.add_interval(interval),
                (record, _) => self.write(record),
            }
        }
        if let Some(at) = span.phase_end {
            self.write_phase(at, start_unix_us);
        }
        if let Some(abort) = span.abort {
            // The statements in flight would keep the server busy.
            self.finish.skip_drain();
            self.end_early(abort);
        }
    }

    /// Ends the workers before the run has started. Returns the CPU time of the process.
    fn end_workers(&mut self) -> Duration {
        self.signal.send_replace(Signal::Quit);
        let deadline = Instant::now() + BLOCKED_MAX;
        while self.running_workers > 0 && !self.has_given_up {
            let wait = deadline.saturating_duration_since(Instant::now());
            match self.inbox.messages.recv_timeout(wait) {
                Ok(message) => self.handle_message(message),
                Err(_) => self.has_given_up = true,
            }
        }
        machine::process_cpu()
    }

    /// Handles the messages that mean the same before and after the start.
    fn handle_message(&mut self, message: Message) {
        match message {
            Message::Stop(reason) => self.end_early(RunEnd { reason, failure: None }),
            Message::Resume { slice, for_us } => self.resume(slice, for_us),
            Message::Finish if self.slices.is_some() && self.clock.is_some() => {
                self.end_early(RunEnd { reason: EndReason::Done, failure: None });
            }
            Message::Finish => self.reject_command(slices::unexpected_command()),
            Message::Paused(pause, in_flight) => {
                let record = self.slices.as_mut().and_then(|slices| slices.add_pause(pause, &in_flight));
                record.into_iter().for_each(|record| self.write(record));
            }
            Message::Failed(reason, failure) => self.end_early(RunEnd { reason, failure: Some(failure) }),
            Message::Warning(warning) => self.write(Record::Warning(warning)),
            Message::EventLimitReached | Message::AllUsersEnded => self.signal_end_check(),
            Message::Drained(drained, users) => self.merger.add_drained(&drained, users),
            Message::Finished => self.running_workers -= 1,
            Message::Alive => self.alive_check.iter_mut().for_each(|check| check.answers += 1),
            Message::Ready(_) | Message::Start(_) | Message::SpansClosed { .. } => {}
        }
    }

    /// Begins a slice.
    fn resume(&mut self, number: u64, for_us: u64) {
        let now = self.clock.map_or(0, |clock| clock.now());
        let slices = self.slices.as_mut().filter(|_| self.clock.is_some());
        match slices.map(|slices| slices.resume(number, for_us, now)) {
            Some(Ok(slice)) => self.signal.send_modify(|signal| {
                if let Signal::Go { slice: latest, .. } = signal {
                    *latest = Some(slice);
                }
            }),
            Some(Err(failure)) => self.reject_command(failure),
            None => self.reject_command(slices::unexpected_command()),
        }
    }

    fn reject_command(&mut self, failure: Failure) {
        self.end_early(RunEnd { reason: EndReason::Abandoned, failure: Some(failure) });
    }

    /// Ends the run early, unless it ends already.
    fn end_early(&mut self, ended: RunEnd) {
        if self.early_end.is_some() {
            return;
        }
        self.early_end = Some(ended);
        if let Some(clock) = self.clock {
            let at = (clock.now() + STOP_DELAY.as_nanos() as Nanos).min(self.timeline.end());
            self.timeline.truncate(at);
            self.finish.stop(at);
            self.signal_end_check();
        }
    }

    /// Makes every worker check the end of the run now instead of at its next span boundary.
    fn signal_end_check(&self) {
        self.signal.send_modify(|signal| {
            if let Signal::Go { end_checks, .. } = signal {
                *end_checks += 1;
            }
        });
    }

    fn write_phase(&mut self, at: Nanos, start_unix_us: u64) {
        if let Some(phase) = self.timeline.phase_at(at).filter(|phase| phase.start == at) {
            let at_us = at / 1000;
            self.write(Record::Phase(Phase { name: phase.name, at_us, at_unix_us: start_unix_us + at_us }));
        }
    }

    fn write(&mut self, record: Record) {
        if self.is_sink_open && !self.sink.record(&record) {
            self.is_sink_open = false;
            self.end_early(RunEnd { reason: EndReason::Abandoned, failure: None });
        }
    }

    fn write_end(&mut self, cpu_before: Duration) -> RunEnd {
        let planned = || RunEnd { reason: self.finish.end_reason(), failure: None };
        let ended = self.early_end.clone().unwrap_or_else(planned);
        let users = self.merger.users();
        self.write(ended.record(cpu_before, self.merger.totals(), users));
        ended
    }
}
