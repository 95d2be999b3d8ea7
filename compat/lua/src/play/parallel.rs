//! Commands that run on all users at the same time: `prepare` with several threads.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::available_parallelism;
use std::time::Instant;

use crate::{Level, Returned, Vm};
use dbdyno_schema::plan::Plan;
use dbdyno_schema::record::Warning;
use dbdyno_wire::scripted::ScriptedConnector;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinSet;

use super::LuaFailure;
use super::blocking::Watch;
use super::broker::{Common, Shared};
use super::player::{Making, Player};
use super::vms::Vms;
use dbdyno_runner::external::raise_open_files;

/// Runs the command `name` in a fresh state of each user. All are waited for; the first failure stands.
///
/// Rows are made by the scripts, so as many threads as there are CPUs share the users, unless each has its own.
pub(super) fn run<C: ScriptedConnector>(
    connector: &C,
    making: &Making,
    plan: &Plan,
    own_threads: bool,
    name: &str,
) -> Result<(), LuaFailure> {
    let users = plan.load.connections;
    let cpus = available_parallelism().map_or(1, |count| count.get() as u32);
    let threads = if own_threads { users } else { users.min(cpus) };
    raise_open_files();
    let (common, plan) = (Arc::new(Common::default()), Arc::new(plan.clone()));
    let (sender, results) = channel();
    // One thread that tells of a script is enough.
    let told = Arc::new(AtomicBool::new(false));
    let spawn = |thread: u32| {
        let (connector, making, common) = (connector.clone(), making.clone(), Arc::clone(&common));
        let (plan, sender, name) = (Arc::clone(&plan), sender.clone(), name.to_owned());
        let told = Arc::clone(&told);
        std::thread::spawn(move || {
            let numbers = (thread..users).step_by(threads as usize).map(u64::from);
            let shared = Shared::new(connector, plan, Arc::clone(&making.front), common);
            let result = run_on_this_thread(&shared, &making, &told, numbers, &name);
            // The receiver waits for all.
            let _ = sender.send(result);
        })
    };
    let handles: Vec<_> = (0..threads).map(spawn).collect();
    drop(sender);
    let first_failure = results.iter().find_map(Result::err);
    for handle in handles {
        handle.join().expect("a thread of a command does not panic");
    }
    first_failure.map_or(Ok(()), Err)
}

fn run_on_this_thread<C: ScriptedConnector>(
    shared: &Rc<Shared<C>>,
    making: &Making,
    told: &Arc<AtomicBool>,
    numbers: impl Iterator<Item = u64>,
    name: &str,
) -> Result<(), LuaFailure> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = runtime.map_err(|error| LuaFailure::Chunk(error.to_string()))?;
    let numbers: Vec<u64> = numbers.collect();
    let (front, told) = (Arc::clone(&making.front), Arc::clone(told));
    let tell = move |warning: Warning| {
        if !told.swap(true, Ordering::Relaxed) {
            front.warn(&warning);
        }
    };
    let watch = Rc::new(Watch::of_command(Box::new(tell), numbers.len()));
    runtime.block_on(async {
        let mut users = JoinSet::new();
        let vms = Vms::new(making, numbers.len())?;
        for (position, number) in numbers.into_iter().enumerate() {
            let vm = vms.of(position)?;
            let (shared, making) = (Rc::clone(shared), making.clone());
            let (watch, name) = (Rc::clone(&watch), name.to_owned());
            users.spawn_local(async move {
                let result = run_for(&shared, &making, &watch, (number, &vm), &name).await;
                if let Err(failure) = &result
                    && *failure != LuaFailure::False
                {
                    making.front.log(Level::Fatal, &failure.to_string());
                }
                result
            });
        }
        let mut first_failure = Ok(());
        while let Some(joined) = users.join_next().await {
            first_failure = first_failure.and(joined.expect("a command's user does not panic"));
        }
        watch.look(Instant::now());
        first_failure
    })
}

async fn run_for<C: ScriptedConnector>(
    shared: &Rc<Shared<C>>,
    making: &Making,
    watch: &Rc<Watch>,
    (number, vm): (u64, &Rc<Vm>),
    name: &str,
) -> Result<(), LuaFailure> {
    const CALL: &str = "sysbench.cmdline.call_command";
    let failed = |error| LuaFailure::function(CALL, error);
    let mut player = Player::new(making, shared, watch, number, vm).await?;
    player.state.fill_options().map_err(failed)?;
    let Some((mut task, _)) = player.state.command(name).map_err(failed)? else {
        return Err(LuaFailure::Missing(name.to_owned()));
    };
    let returned = player.call(&mut task, &[]).await.map_err(failed)?;
    player.broker.close_all().await;
    if returned == Returned::False { Err(LuaFailure::False) } else { Ok(()) }
}
