//! Runs a command for all users concurrently, such as `prepare` with several threads.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;
use std::time::Instant;

use dbdyno_runner::external::raise_open_files;
use dbdyno_schema::record::Warning;
use dbdyno_sysbench::log::Level;
use dbdyno_wire::scripted::ScriptedConnector;
use tokio::runtime::{Builder, LocalOptions};

use super::LuaFailure;
use super::blocking::BlockingMonitor;
use super::session::{RunContext, ThreadContext};
use super::user::{ScriptUser, spawn_users};
use crate::raw::ReturnValue;
use crate::vm::Vm;

/// The function named in messages about a failed command.
pub(super) const CALL_COMMAND: &str = "sysbench.cmdline.call_command";

/// Runs the command `name` once for each user, with new globals. Returns the first failure after all users have ended.
///
/// Scripts compute the rows that they load. The users are therefore divided among one thread per CPU, unless each user
/// has its own thread.
pub(super) fn run<C: ScriptedConnector>(
    run: &RunContext<C>,
    one_thread_per_user: bool,
    name: &str,
) -> Result<(), LuaFailure> {
    let users = run.plan.load.connections;
    let cpus = available_parallelism().map_or(1, |count| count.get() as u32);
    let threads = if one_thread_per_user { users } else { users.min(cpus) };
    raise_open_files();
    // One warning is enough for all threads.
    let warned = Arc::new(AtomicBool::new(false));
    let run = RunContext { counters: Arc::default(), ..run.clone() };
    std::thread::scope(|scope| {
        let spawn = |thread| {
            let numbers: Vec<u64> = (thread..users).step_by(threads as usize).map(u64::from).collect();
            let (run, warned) = (run.clone(), Arc::clone(&warned));
            scope.spawn(move || run_on_this_thread(run, warned, &numbers, name))
        };
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("its users do not panic"));
        results.fold(Ok(()), Result::and)
    })
}

fn run_on_this_thread<C: ScriptedConnector>(
    run: RunContext<C>,
    warned: Arc<AtomicBool>,
    numbers: &[u64],
    name: &str,
) -> Result<(), LuaFailure> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = runtime.map_err(|error| LuaFailure::Chunk(error.to_string()))?;
    let host = Arc::clone(&run.host);
    let warn = move |warning: Warning| {
        if !warned.swap(true, Ordering::Relaxed) {
            host.warn(&warning);
        }
    };
    let thread = ThreadContext::new(run, BlockingMonitor::new(Some(Box::new(warn)), numbers.len(), true));
    runtime.block_on(async {
        let vms = Vm::for_users(numbers.len(), thread.run.share_states, thread.run.jit);
        let (vms, name) = (vms.map_err(LuaFailure::chunk)?, Rc::<str>::from(name));
        let mut users = spawn_users(&thread, numbers, &vms, move |user| run_as_user(user, Rc::clone(&name)));
        drop(vms);
        let mut first_failure = Ok(());
        while let Some(joined) = users.join_next().await {
            let result = joined.expect("a command's user does not panic");
            if let Err(failure) = &result
                && *failure != LuaFailure::ReturnedFalse
            {
                thread.run.host.log(Level::Fatal, &failure.to_string());
            }
            first_failure = first_failure.and(result);
        }
        thread.monitor.check(Instant::now());
        first_failure
    })
}

async fn run_as_user<C: ScriptedConnector>(mut user: ScriptUser<C>, name: Rc<str>) -> Result<(), LuaFailure> {
    let to_failure = |error| LuaFailure::function(CALL_COMMAND, error);
    user.state.fill_options().map_err(to_failure)?;
    let command = user.state.command(&name).map_err(to_failure)?;
    let (mut task, _) = command.ok_or_else(|| LuaFailure::MissingFunction(name.to_string()))?;
    let value = user.call(&mut task, &[]).await.map_err(to_failure)?;
    user.session.close_all().await;
    if value == ReturnValue::False { Err(LuaFailure::ReturnedFalse) } else { Ok(()) }
}
