//! One thread's users of a run.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use crate::Level;
use dbdyno_schema::record::{EndReason, Failure, Session};
use dbdyno_wire::scripted::ScriptedConnector;
use tokio::task::JoinSet;

use super::LuaFailure;
use super::blocking::Watch;
use super::broker::{Common, KINDS, Shared};
use super::player::{Making, Player};
use super::vms::Vms;
use dbdyno_runner::external::WorkerReady;
use dbdyno_runner::external::{Desk, Seat};
use dbdyno_runner::external::{Post, Signal, give_back_memory, spawn_user, work_on_this_thread};

/// One thread of a run.
pub(super) struct LuaWorker<C> {
    pub(super) post: Post,
    pub(super) connector: C,
    pub(super) making: Making,
    /// What all threads share.
    pub(super) common: Arc<Common>,
}

impl<C: ScriptedConnector> LuaWorker<C> {
    pub(super) fn run(self) {
        let links = self.post.links.clone();
        work_on_this_thread(links, work(self.post, self.connector, self.making, self.common));
    }
}

async fn work<C: ScriptedConnector>(
    post: Post,
    connector: C,
    making: Making,
    common: Arc<Common>,
) -> io::Result<()> {
    let mut signal = post.links.signal.clone();
    if !post.prepare() {
        return Ok(());
    }
    let links = post.links.clone();
    let wanted = post.share(post.plan.load.connections);
    let to_conductor = links.clone();
    let tell = move |warning| to_conductor.warn(warning);
    let watch = Rc::new(Watch::new(Box::new(tell), wanted as usize));
    let plan = Arc::clone(&post.plan);
    let shared = Shared::new(connector, plan, Arc::clone(&making.front), common);
    let making_all = make_all(&post, wanted, &making, &shared, &watch);
    let made = tokio::select! {
        made = making_all => made,
        _ = signal.wait_for(|signal| matches!(signal, Signal::Quit)) => return Ok(()),
    };
    let players = match made {
        Ok(players) => players,
        Err(failure) => {
            making.front.log(Level::Fatal, &failure.to_string());
            let failure = Failure { text: failure.to_string(), ..Failure::default() };
            links.fail(EndReason::ScriptError, failure);
            return Ok(());
        }
    };
    let session = post.is_first().then(Session::default);
    let ready = WorkerReady { connections: wanted, session, prepared_statements: 0 };
    links.ready(ready);
    let start = match signal.wait_for(|signal| !matches!(signal, Signal::Wait)).await.map(|signal| *signal) {
        Ok(Signal::Go { start, .. }) => start,
        _ => return Ok(()),
    };
    let numbers: Vec<u64> = players.iter().map(|player| player.number).collect();
    let spawn = |desk: &Rc<Desk>, users: &mut JoinSet<()>| {
        for (here, player) in players.into_iter().enumerate() {
            let seat = Seat { here, overall: player.number };
            spawn_user(users, desk, player.play(Rc::clone(desk), seat));
        }
    };
    let look = |_: &Desk, _| watch.look(Instant::now());
    post.play(start, KINDS.len(), &numbers, spawn, look).await
}

/// Makes the states of this thread's users and has every one's `thread_init` done, all at the same time.
async fn make_all<C: ScriptedConnector>(
    post: &Post,
    wanted: u32,
    making: &Making,
    shared: &Rc<Shared<C>>,
    watch: &Rc<Watch>,
) -> Result<Vec<Player<C>>, LuaFailure> {
    let mut making_each = JoinSet::new();
    let vms = Vms::new(making, wanted as usize)?;
    for position in 0..u64::from(wanted) {
        let (making, shared, watch) = (making.clone(), Rc::clone(shared), Rc::clone(watch));
        let (number, vm) = (post.number(position), vms.of(position as usize)?);
        making_each.spawn_local(async move {
            let mut player = Player::new(&making, &shared, &watch, number, &vm).await?;
            player.init().await?;
            Ok(player)
        });
    }
    let mut players = Vec::with_capacity(wanted as usize);
    while let Some(joined) = making_each.join_next().await {
        players.push(joined.expect("making a state does not panic")?);
    }
    players.sort_unstable_by_key(|player| player.number);
    vms.collect()?;
    give_back_memory();
    Ok(players)
}
