//! A user that runs a script: creates its Lua globals, and runs its events.

use std::rc::Rc;

use dbdyno_metrics::Event;
use dbdyno_runner::external::{UserId, WorkerState};
use dbdyno_schema::record::EndReason;
use dbdyno_sysbench::log::Level;
use dbdyno_wire::scripted::ScriptedConnector;
use tokio::task::JoinSet;

use super::LuaFailure;
use super::session::{CurrentEvent, MeasuredUser, ThreadContext, UserSession};
use crate::error::ScriptError;
use crate::raw::ReturnValue;
use crate::state::State;
use crate::task::{Progress, Task};
use crate::vm::Vm;

/// A user whose events never wait for the server yields to the other users of its thread after this number of events.
const EVENTS_PER_TURN: u32 = 64;

/// A user with its Lua globals and its connections.
pub(super) struct ScriptUser<C: ScriptedConnector> {
    // Dropped before the session: functions of the state may call the session while the state closes.
    pub(super) state: State,
    pub(super) session: Rc<UserSession<C>>,
    thread: Rc<ThreadContext<C>>,
    pub(super) number: u64,
}

/// Creates the users with `numbers` in `vms`, and runs `run_user` with all of them concurrently.
pub(super) fn spawn_users<C, T, F>(
    thread: &Rc<ThreadContext<C>>,
    numbers: &[u64],
    vms: &[Rc<Vm>],
    run_user: impl Fn(ScriptUser<C>) -> F + Clone + 'static,
) -> JoinSet<Result<T, LuaFailure>>
where
    C: ScriptedConnector,
    T: 'static,
    F: Future<Output = Result<T, LuaFailure>> + 'static,
{
    let mut users = JoinSet::new();
    for (&number, vm) in numbers.iter().zip(vms) {
        let (thread, vm, run_user) = (Rc::clone(thread), Rc::clone(vm), run_user.clone());
        users.spawn_local(async move { run_user(ScriptUser::new(&thread, number, &vm).await?).await });
    }
    users
}

impl<C: ScriptedConnector> ScriptUser<C> {
    /// Adds user `number` to `vm`, and runs the script's chunk.
    pub(super) async fn new(
        thread: &Rc<ThreadContext<C>>,
        number: u64,
        vm: &Rc<Vm>,
    ) -> Result<Self, LuaFailure> {
        let session = UserSession::new(thread);
        let (run, handler) = (&thread.run, Rc::clone(&session));
        let state = State::new(number as i64, &run.config, &run.host, handler, vm);
        let state = state.map_err(LuaFailure::chunk)?;
        let mut user = Self { state, session, thread: Rc::clone(thread), number };
        let mut chunk = user.state.chunk().map_err(LuaFailure::chunk)?;
        user.call(&mut chunk, &[]).await.map_err(LuaFailure::chunk)?;
        vm.collect_single().map_err(LuaFailure::chunk)?;
        Ok(user)
    }

    /// Calls a function of the script until it returns.
    #[inline]
    pub(super) async fn call(
        &mut self,
        task: &mut Task,
        arguments: &[i64],
    ) -> Result<ReturnValue, ScriptError> {
        let mut progress = self.thread.monitor.time(|| task.start(arguments));
        loop {
            match progress {
                Progress::Requested(request) => {
                    let answer = self.session.execute_request(self.state.context(), request, false).await;
                    progress = self.thread.monitor.time(|| task.resume(answer));
                }
                Progress::Returned(value) => return Ok(value),
                Progress::Failed(error) => return Err(error),
            }
        }
    }

    /// Calls the global function `name` with the user's number, if the function exists.
    async fn call_global(&mut self, name: &str) -> Result<(), LuaFailure> {
        let to_failure = |error| LuaFailure::function(name, error);
        let Some(mut task) = self.state.global(name).map_err(to_failure)? else { return Ok(()) };
        let number = [self.number as i64];
        Box::pin(self.call(&mut task, &number)).await.map(drop).map_err(to_failure)
    }

    /// Fills `sysbench.opt` and calls `thread_init`.
    pub(super) async fn init(&mut self) -> Result<(), LuaFailure> {
        const NAME: &str = "thread_init";
        self.state.fill_options().map_err(|error| LuaFailure::function(NAME, error))?;
        self.call_global(NAME).await?;
        self.state.vm().collect_single().map_err(|error| LuaFailure::function(NAME, error))
    }

    /// Runs events until the run is over or the script ends the user.
    pub(super) async fn run(mut self, worker: Rc<WorkerState>, id: UserId) {
        self.session.start_measurement(MeasuredUser { worker: Rc::clone(&worker), id });
        let result = match self.state.thread_run() {
            Ok(None) => self.run_events(&worker, id).await,
            Ok(Some(mut thread_run)) => {
                let result = Box::pin(self.call(&mut thread_run, &[self.number as i64])).await;
                self.session.add_script_counts(self.state.context());
                if self.session.event.take().is_some() {
                    worker.abandon_event(id, worker.now());
                }
                result.map(drop)
            }
            Err(error) => Err(error),
        };
        let thread = Rc::clone(&self.thread);
        let log = |failure: &LuaFailure| thread.run.host.log(Level::Fatal, &failure.to_string());
        match result.map_err(|error| LuaFailure::function("thread_run", error)) {
            // Without its connection the script fails, but the cause is the server, which the worker reports at the end.
            _ if self.session.has_lost_server.get() => {}
            Ok(()) => {
                // As in sysbench, the run is reported even if `thread_done` fails.
                if let Err(failure) = Box::pin(self.call_global("thread_done")).await {
                    log(&failure);
                    let _ = thread.run.counters.failure_at_end.set(failure);
                }
            }
            Err(failure) => {
                log(&failure);
                worker
                    .fail_run((EndReason::ScriptError, failure.to_record(thread.run.counters.refused.get())));
            }
        }
        self.session.add_script_counts(self.state.context());
        worker.end_user(worker.now());
        Box::pin(self.session.close_all()).await;
        // Wait for the end of the run: closing a state takes time, and must not delay the last events of other users.
        worker.until_run_ends(std::future::pending::<()>()).await;
    }

    async fn run_events(&mut self, worker: &Rc<WorkerState>, id: UserId) -> Result<(), ScriptError> {
        let mut event = self.state.event()?;
        let number = [self.number as i64];
        let mut free_since = None;
        let mut events = 0u32;
        while let Some(due) = worker.next_due(id, free_since).await {
            // An event starts when it is due and its user is free, whichever is later.
            let start = free_since.unwrap_or_else(|| worker.now()).max(due);
            self.session.event.set(Some(CurrentEvent { due, start }));
            let value = match self.call(&mut event, &number).await {
                Ok(value) => value,
                Err(error) => {
                    worker.abandon_event(id, worker.now());
                    return Err(error);
                }
            };
            let end = worker.now();
            self.session.add_script_counts(self.state.context());
            if value == ReturnValue::True {
                // As in sysbench, this event ends the user and is not counted.
                worker.abandon_event(id, end);
                return Ok(());
            }
            worker.end_event(id, Event { due, start, end });
            free_since = Some(end);
            self.session.close_unreferenced(self.state.context()).await;
            events += 1;
            if events.is_multiple_of(EVENTS_PER_TURN) {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}
