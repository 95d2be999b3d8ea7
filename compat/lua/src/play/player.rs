//! One user that plays a script: a state, its connections, and the loop of its events.

use std::rc::Rc;
use std::sync::Arc;

use crate::{Front, Level, Program, Returned, ScriptError, State, Step, Task, Vm};
use dbdyno_metrics::Event;
use dbdyno_schema::record::{EndReason, Failure};
use dbdyno_wire::scripted::ScriptedConnector;

use super::LuaFailure;
use super::blocking::Watch;
use super::broker::{Broker, Place, Shared, Under};
use dbdyno_runner::external::{Desk, Seat};

/// Events after which a user that waits for nobody lets the others of its thread go on.
const EVENTS_ALONE: u32 = 64;

/// A state with its connections.
pub(super) struct Player<C: ScriptedConnector> {
    // Before the broker: the state's functions may still call it while the state is closed.
    pub(super) state: State,
    pub(super) broker: Rc<Broker<C>>,
    watch: Rc<Watch>,
    pub(super) number: u64,
}

/// How a state is made.
#[derive(Clone)]
pub(super) struct Making {
    pub(super) program: Arc<Program>,
    pub(super) front: Arc<dyn Front>,
    /// Whether traces are compiled.
    pub(super) jit: bool,
    /// Whether the users of a thread share states, where there are many.
    pub(super) shared: bool,
}

impl<C: ScriptedConnector> Player<C> {
    /// User `number` in `vm`, for whom the script's chunk has run.
    pub(super) async fn new(
        making: &Making,
        shared: &Rc<Shared<C>>,
        watch: &Rc<Watch>,
        number: u64,
        vm: &Rc<Vm>,
    ) -> Result<Self, LuaFailure> {
        let chunk_failed = |error: ScriptError| match LuaFailure::function("", error) {
            LuaFailure::Function { message, .. } => LuaFailure::Chunk(message),
            other => other,
        };
        let broker = Broker::new(shared);
        let world = Rc::clone(&broker);
        let state =
            State::new(number as i64, &making.program, &making.front, world, vm).map_err(chunk_failed)?;
        let mut player = Self { state, broker, watch: Rc::clone(watch), number };
        let mut chunk = player.state.chunk().map_err(chunk_failed)?;
        player.call(&mut chunk, &[]).await.map_err(chunk_failed)?;
        // What this leaves behind is the memory of the next state.
        vm.has_grown().map_err(chunk_failed)?;
        Ok(player)
    }

    /// Calls a function of the script to its end.
    #[inline]
    pub(super) async fn call(&mut self, task: &mut Task, arguments: &[i64]) -> Result<Returned, ScriptError> {
        let mut step = self.watch.over(|| task.begin(arguments));
        loop {
            match step {
                Step::Wants(request) => {
                    let answer = self.broker.answer(self.state.context(), request, false).await;
                    step = self.watch.over(|| task.answer(answer));
                }
                Step::Done(returned) => return Ok(returned),
                Step::Failed(error) => return Err(error),
            }
        }
    }

    /// Calls the global function `name`, where there is one.
    pub(super) async fn call_global(
        &mut self,
        name: &str,
        arguments: &[i64],
    ) -> Result<Option<Returned>, LuaFailure> {
        let failed = |error| LuaFailure::function(name, error);
        match self.state.global(name).map_err(failed)? {
            None => Ok(None),
            Some(mut task) => Box::pin(self.call(&mut task, arguments)).await.map(Some).map_err(failed),
        }
    }

    /// Fills `sysbench.opt` and calls `thread_init`.
    pub(super) async fn init(&mut self) -> Result<(), LuaFailure> {
        self.state.fill_options().map_err(|error| LuaFailure::function("thread_init", error))?;
        self.call_global("thread_init", &[self.number as i64]).await?;
        self.state.vm().has_grown().map_err(|error| LuaFailure::function("thread_init", error))
    }

    /// Plays events at `seat` until the run is over or the script has enough.
    pub(super) async fn play(mut self, desk: Rc<Desk>, seat: Seat) {
        self.broker.take_place(Place { desk: Rc::clone(&desk), seat });
        let played = match self.state.thread_run() {
            Ok(None) => self.play_events(&desk, seat).await,
            Ok(Some(mut own)) => {
                let played = Box::pin(self.call(&mut own, &[self.number as i64])).await;
                self.broker.count_scripts_own(self.state.context());
                if self.broker.under.take().is_some() {
                    desk.failed(seat, desk.now());
                }
                played.map(drop)
            }
            Err(error) => Err(error),
        };
        let shared = Rc::clone(&self.broker.shared);
        let log = |failure: &LuaFailure| shared.front.log(Level::Fatal, &failure.to_string());
        match played.map_err(|error| LuaFailure::function("thread_run", error)) {
            Ok(()) => {
                let ended = Box::pin(self.call_global("thread_done", &[self.number as i64])).await;
                // What was measured stands, and is told, as in sysbench.
                if let Err(failure) = ended {
                    log(&failure);
                    let _ = shared.common.fault_at_end.set(failure);
                }
            }
            Err(failure) => {
                log(&failure);
                let failure = Failure { text: failure.to_string(), ..Failure::default() };
                desk.fail((EndReason::ScriptError, failure));
            }
        }
        self.broker.count_scripts_own(self.state.context());
        desk.leave(desk.now());
        Box::pin(self.broker.close_all()).await;
        // Closing a state takes a while, and the others' last events are not to wait for it.
        desk.unless_over(std::future::pending::<()>()).await;
    }

    async fn play_events(&mut self, desk: &Rc<Desk>, seat: Seat) -> Result<(), ScriptError> {
        let mut event = self.state.event()?;
        let number = [self.number as i64];
        let mut free_since = None;
        let mut alone = 0u32;
        while let Some(due) = desk.next_due(seat, free_since).await {
            // It begins when its user is free and it is due, whichever comes last.
            let start = free_since.unwrap_or_else(|| desk.now()).max(due);
            self.broker.under.set(Some(Under { due, start }));
            let returned = match self.call(&mut event, &number).await {
                Ok(returned) => returned,
                Err(error) => {
                    desk.failed(seat, desk.now());
                    return Err(error);
                }
            };
            let end = desk.now();
            self.broker.count_scripts_own(self.state.context());
            if returned == Returned::True {
                // It has enough, and this one does not count.
                desk.failed(seat, end);
                return Ok(());
            }
            desk.event(seat, Event { due, start, end });
            free_since = Some(end);
            self.broker.close_abandoned(self.state.context()).await;
            alone += 1;
            if alone.is_multiple_of(EVENTS_ALONE) {
                // An event may wait for nobody, and the others of the thread want their turn.
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}
