//! The code that all kinds of workers share: the thread's event loop, the limit on open files, the schedule, the clock,
//! and the end of the run.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use dbdyno_load::Nanos;
use dbdyno_load::pauses::Pauses;
use dbdyno_load::rate_limit::RateLimit;
use dbdyno_load::slices::SliceGate;
use dbdyno_load::timeline::Timeline;
use dbdyno_metrics::Recorder;
use dbdyno_schema::plan::{Plan, Scheduling, SqlWorkload, Target};
use dbdyno_schema::record::{EndReason, Failure, Warning};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinSet;

use crate::answer_waits::AnswerWaits;
use crate::clock::Clock;
use crate::control::{CoordinatorLink, Message, Signal};
use crate::failure;
use crate::machine;
use crate::schedule::Schedule;
use crate::share::share;
use crate::timer::Timer;
use crate::worker_state::{UserId, WorkerState};
use crate::{Options, RunSpec};

/// Number of tasks that the event loop runs between two calls of epoll. Many small batches cost more than a few large
/// ones; a timer that expires meanwhile waits for at most this many tasks.
const POLLS_BETWEEN_WAITS: u32 = 256;

/// Reports the end of a worker even if the worker panics, so that the coordinator does not wait for it.
struct ExitGuard(CoordinatorLink);

impl Drop for ExitGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (reason, failure) = failure::internal_error();
            self.0.fail_run(reason, failure);
        }
        self.0.send(Message::Finished);
    }
}

/// Ends the run if a user panics, because that user cannot report its end.
struct PanicGuard(Rc<WorkerState>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail_run(failure::internal_error());
        }
    }
}

/// Starts a user of this worker.
pub fn spawn_user(
    users: &mut JoinSet<()>,
    worker: &Rc<WorkerState>,
    user: impl Future<Output = ()> + 'static,
) {
    let guard = PanicGuard(Rc::clone(worker));
    users.spawn_local(async move {
        let _guard = guard;
        user.await;
    });
}

/// The plan of a run, the number of a worker, and its channel to the coordinator.
pub struct WorkerContext {
    /// The plan of the run.
    pub plan: Arc<Plan>,
    pub(crate) options: Options,
    /// Number of this worker among all `workers` of all engines.
    worker: u32,
    workers: u32,
    /// The channel to and from the coordinator.
    pub coordinator: CoordinatorLink,
}

/// Runs a worker on the calling thread until it ends.
pub fn run_worker(coordinator: CoordinatorLink, work: impl Future<Output = io::Result<()>>) {
    let _guard = ExitGuard(coordinator.clone());
    // `build_local`, because a LocalSet inside a runtime wakes its own thread through the kernel after every 61 tasks.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(POLLS_BETWEEN_WAITS)
        .build_local(LocalOptions::default());
    let result = runtime.and_then(|runtime| runtime.block_on(work));
    if let Err(error) = result {
        let text = format!("a worker could not start: {error}");
        let fix = "raise the limit on open files (ulimit -n)".to_owned();
        let failure = Failure { text, fix: Some(fix), ..Failure::default() };
        coordinator.fail_run(EndReason::ConnectFailed, failure);
    }
}

impl WorkerContext {
    /// The context of worker `number` of this engine.
    pub fn new(spec: &RunSpec, number: u32, coordinator: CoordinatorLink) -> Self {
        let (plan, options) = (Arc::clone(&spec.plan), spec.options.clone());
        let (segment, workers_per_engine) = (plan.segment, plan.client.workers);
        let (worker, workers) =
            (segment.index * workers_per_engine + number, segment.count * workers_per_engine);
        Self { plan, options, worker, workers, coordinator }
    }

    /// Whether this is the first worker of this engine.
    pub fn is_first(&self) -> bool {
        self.worker == self.plan.segment.index * self.plan.client.workers
    }

    /// Configures the thread before it opens connections. If the system does not allow enough open files, fails the run
    /// and returns false.
    pub fn configure_thread(&self) -> bool {
        machine::disable_timer_slack();
        self.set_scheduling();
        if let Err(failure) = self.raise_open_files() {
            self.coordinator.fail_run(EndReason::ConnectFailed, failure);
            return false;
        }
        true
    }

    fn set_scheduling(&self) {
        if self.plan.client.scheduling != Scheduling::Batch {
            return;
        }
        if let Err(error) = machine::schedule_batch() {
            self.coordinator.warn(Warning {
                code: "batch-refused".into(),
                text: format!("the system refuses SCHED_BATCH: {error}"),
                fix: "the run continues with normal scheduling, which costs more CPU time per statement"
                    .into(),
            });
        }
    }

    fn raise_open_files(&self) -> Result<(), Failure> {
        if matches!(self.plan.target, Target::Null { .. }) {
            return Ok(());
        }
        let segment = self.plan.segment;
        let connections = share(self.plan.load.connections, segment.index, segment.count);
        // Each worker and the process itself need a few more files. A connection that is being renewed counts twice.
        let renewing = if self.plan.load.reconnect_every == 0 { 0 } else { connections.min(64) };
        let needed = u64::from(connections + self.plan.client.workers * 8 + renewing + 16);
        let limit = machine::raise_open_files();
        if needed <= limit {
            return Ok(());
        }
        Err(Failure {
            text: format!(
                "{connections} connections need {needed} open files, and this process may open at most {limit}"
            ),
            fix: Some(format!("raise the hard limit (ulimit -Hn {needed}), or use fewer connections")),
            ..Failure::default()
        })
    }

    /// The user that has connection `local` of this worker.
    pub fn user_id(&self, local: usize) -> UserId {
        UserId { global: local as u64 * u64::from(self.workers) + u64::from(self.worker), local }
    }

    /// Starts the clock at `start`, starts the users by `spawn`, and returns when the run is over. `statements` are the texts
    /// for `AnswerWaits::begin`. At the end, calls `at_end` with the number of users that have not ended.
    pub async fn run_users(
        self,
        start: Instant,
        statement_kinds: usize,
        statements: Vec<String>,
        spawn: impl FnOnce(&Rc<WorkerState>, &mut JoinSet<()>),
        at_end: impl FnOnce(&WorkerState, usize),
    ) -> io::Result<()> {
        let plan = &self.plan;
        let mut timer = Timer::new()?;
        timer.sleep_until(start).await?;
        let clock = Clock::starting_at(start);
        let schedule = self.schedule();
        let is_open_loop = matches!(schedule, Schedule::Open { .. });
        let timeline = Timeline::new(&plan.phases, &plan.report, self.options.measurement_end);
        let users = self.share(plan.load.connections) as usize;
        let numbers: Vec<u64> = (0..users).map(|local| self.user_id(local).global).collect();
        let recorder = Recorder::new(timeline, statement_kinds, is_open_loop)
            .with_extra_counts(&self.options.extra_counts, &numbers)
            .with_outstanding(plan.load.abort_if.is_some());
        let (mut signal, finish) = (self.coordinator.signal.clone(), Arc::clone(&self.coordinator.finish));
        let measured_from: Nanos = plan.phases.warmup_us * 1000;
        let waits = AnswerWaits::new(&self.plan, numbers, statements);
        let worker =
            Rc::new(WorkerState::new(clock, recorder, schedule, measured_from, self.coordinator, waits));
        let mut users = JoinSet::new();
        spawn(&worker, &mut users);
        let mut planned = Some(0);
        while let Some(next) = worker.handle_due(planned) {
            planned = tokio::select! {
                on_time = timer.sleep_until(clock.instant(next)) => on_time.map(|()| Some(next))?,
                () = worker.earlier_deadline() => None,
                changed = signal.changed() => {
                    // The coordinator has ended and no longer waits for this worker.
                    if changed.is_err() {
                        break;
                    }
                    if let Signal::Go { slice: Some(slice), .. } = *signal.borrow() {
                        worker.resume(slice);
                    }
                    worker.coordinator.send(Message::Alive);
                    worker.recheck_end();
                    None
                }
            };
        }
        at_end(&worker, users.len());
        worker.wake_all();
        let drain = finish.drain_time(plan.phases.drain_us);
        let _ = tokio::time::timeout(drain, async { while users.join_next().await.is_some() {} }).await;
        worker.report_end();
        Ok(())
    }

    /// When events are due on this worker.
    pub(crate) fn schedule(&self) -> Schedule {
        let plan = &self.plan;
        let begin: Nanos = plan.phases.warmup_us * 1000;
        let (worker, workers) = (u64::from(self.worker), u64::from(self.workers));
        if let Some(queue) = &self.coordinator.queue {
            return Schedule::Open { queue: Arc::clone(queue), overflow: self.options.queue_overflow };
        }
        if plan.load.slices().is_some() {
            let is_batch = plan.client.scheduling == Scheduling::Batch;
            let _ = is_batch.then(machine::schedule_normal); // The load begins paused.
            return Schedule::Slices { gate: SliceGate::closed(), is_batch };
        }
        let by_transaction = plan.workload.custom_sql().is_some_and(SqlWorkload::has_pauses);
        match Pauses::new(&plan.load, by_transaction, begin, (worker, workers), plan.seed) {
            Some(pauses) => {
                let connections = self.share(plan.load.connections);
                Schedule::Paced(pauses, RateLimit::new(&plan.load, connections, worker, workers))
            }
            None => Schedule::Closed,
        }
    }

    /// This worker's share of `total`, which is divided among the workers of all engines.
    pub fn share(&self, total: u32) -> u32 {
        let (segment, workers) = (self.plan.segment, self.plan.client.workers);
        let engine = share(total, segment.index, segment.count);
        share(engine, self.worker - segment.index * workers, workers)
    }
}
