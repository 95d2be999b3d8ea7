//! The users of a run on one thread.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use dbdyno_runner::external::{
    Desk, Post, Seat, Signal, WorkerReady, give_back_memory, spawn_user, work_on_this_thread,
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

/// Plays the share of the run that `post` has, on this thread.
pub(super) fn run<C: ScriptedConnector>(post: Post, run: RunContext<C>) {
    let links = post.links.clone();
    work_on_this_thread(links, work(post, run));
}

async fn work<C: ScriptedConnector>(post: Post, mut run: RunContext<C>) -> io::Result<()> {
    let mut signal = post.links.signal.clone();
    if !post.prepare() {
        return Ok(());
    }
    run.plan = Arc::clone(&post.plan);
    let links = post.links.clone();
    let connections = post.share(post.plan.load.connections);
    let numbers: Vec<u64> = (0..u64::from(connections)).map(|position| post.number(position)).collect();
    let to_conductor = links.clone();
    let warn = Box::new(move |warning| to_conductor.warn(warning));
    let monitor = BlockingMonitor::new(Some(warn), numbers.len(), false);
    let thread = ThreadContext::new(run, monitor);
    let users = tokio::select! {
        users = make_users(&thread, &numbers) => users,
        _ = signal.wait_for(|signal| matches!(signal, Signal::Quit)) => return Ok(()),
    };
    let users = match users {
        Ok(users) => users,
        Err(failure) => {
            thread.run.host.log(Level::Fatal, &failure.to_string());
            links.fail(EndReason::ScriptError, failure.record());
            return Ok(());
        }
    };
    let session = post.is_first().then(Session::default);
    links.ready(WorkerReady { connections, session, prepared_statements: 0 });
    let start = match signal.wait_for(|signal| !matches!(signal, Signal::Wait)).await.map(|signal| *signal) {
        Ok(Signal::Go { start, .. }) => start,
        _ => return Ok(()),
    };
    let spawn = |worker: &Rc<Desk>, tasks: &mut JoinSet<()>| {
        for (here, user) in users.into_iter().enumerate() {
            let id = Seat { here, overall: user.number };
            spawn_user(tasks, worker, user.play(Rc::clone(worker), id));
        }
    };
    let check = |_: &Desk, _| thread.monitor.check(Instant::now());
    post.play(start, KINDS.len(), &numbers, spawn, check).await
}

/// Makes this thread's users and calls `thread_init` of each, all at the same time.
async fn make_users<C: ScriptedConnector>(
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
        users.push(joined.expect("making a user does not panic")?);
    }
    users.sort_unstable_by_key(|user: &ScriptUser<C>| user.number);
    Vm::collect_shared(&vms).map_err(|error| LuaFailure::function("thread_init", error))?;
    give_back_memory();
    Ok(users)
}
