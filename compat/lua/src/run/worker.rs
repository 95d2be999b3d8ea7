//! A worker of a run: a thread that creates its share of the users and runs their events.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use dbdyno_runner::external::{
    Signal, UserId, WorkerContext, WorkerReady, WorkerState, release_memory, run_worker, spawn_user,
};
use dbdyno_schema::record::{EndReason, Session};
use dbdyno_sysbench::log::Level;
use dbdyno_wire::scripted::ScriptedConnector;
use tokio::task::JoinSet;

use super::LuaFailure;
use super::blocking::BlockingMonitor;
use super::session::{KINDS, RunContext, ThreadContext};
use super::user::{ScriptUser, spawn_users};
use crate::vm::Vm;

/// Runs this worker's share of the users on the calling thread.
pub(super) fn run<C: ScriptedConnector>(context: WorkerContext, run: RunContext<C>) {
    let coordinator = context.coordinator.clone();
    run_worker(coordinator, run_users(context, run));
}

async fn run_users<C: ScriptedConnector>(context: WorkerContext, mut run: RunContext<C>) -> io::Result<()> {
    let mut signal = context.coordinator.signal.clone();
    if !context.configure_thread() {
        return Ok(());
    }
    run.plan = Arc::clone(&context.plan);
    let coordinator = context.coordinator.clone();
    let connections = context.share(context.plan.load.connections);
    let numbers: Vec<u64> = (0..connections as usize).map(|local| context.user_id(local).global).collect();
    let to_coordinator = coordinator.clone();
    let warn = Box::new(move |warning| to_coordinator.warn(warning));
    let monitor = BlockingMonitor::new(Some(warn), numbers.len(), false);
    let thread = ThreadContext::new(run, monitor);
    let users = tokio::select! {
        users = create_users(&thread, &numbers) => users,
        _ = signal.wait_for(|signal| matches!(signal, Signal::Quit)) => return Ok(()),
    };
    let users = match users {
        Ok(users) => users,
        Err(failure) => {
            thread.run.host.log(Level::Fatal, &failure.to_string());
            coordinator
                .fail_run(EndReason::ScriptError, failure.to_record(thread.run.counters.refused.get()));
            return Ok(());
        }
    };
    let session = context.is_first().then(Session::default);
    coordinator.report_ready(WorkerReady { connections, session, prepared_statements: 0 });
    let start = match signal.wait_for(|signal| !matches!(signal, Signal::Wait)).await.map(|signal| *signal) {
        Ok(Signal::Go { start, .. }) => start,
        _ => return Ok(()),
    };
    let spawn = |worker: &Rc<WorkerState>, tasks: &mut JoinSet<()>| {
        for (local, user) in users.into_iter().enumerate() {
            let id = UserId { global: user.number, local };
            spawn_user(tasks, worker, user.run(Rc::clone(worker), id));
        }
    };
    let at_end = |worker: &WorkerState, users| {
        thread.monitor.check(Instant::now());
        worker.report_lost_connections(users);
    };
    context.run_users(start, KINDS.len(), Vec::new(), spawn, at_end).await
}

/// Creates this thread's users and calls `thread_init` of all of them concurrently.
async fn create_users<C: ScriptedConnector>(
    thread: &Rc<ThreadContext<C>>,
    numbers: &[u64],
) -> Result<Vec<ScriptUser<C>>, LuaFailure> {
    let run = &thread.run;
    let vms = Vm::for_users(numbers.len(), run.share_states, run.jit).map_err(LuaFailure::chunk)?;
    let mut tasks = spawn_users(thread, numbers, &vms, async |mut user| {
        user.init().await?;
        Ok(user)
    });
    let mut users = Vec::with_capacity(numbers.len());
    while let Some(joined) = tasks.join_next().await {
        users.push(joined.expect("creating a user does not panic")?);
    }
    users.sort_unstable_by_key(|user: &ScriptUser<C>| user.number);
    Vm::collect_shared(&vms).map_err(|error| LuaFailure::function("thread_init", error))?;
    release_memory();
    Ok(users)
}
