//! One worker: a thread with an event loop, its connections and its users. What is the same for users of any kind is
//! its post.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use dbdyno_random::Rng;
use dbdyno_schema::record::{EndReason, Failure};
use dbdyno_wire::Connection;
use dbdyno_wire::scripted::ScriptedConnector;
use dbdyno_workload::Program;
use tokio::task::JoinSet;

use crate::control::{Message, WorkerReady};
use crate::desk::{Desk, Seat};
use crate::failure;
use crate::post::{self, Post, Signal, spawn_user};
use crate::refusal::{self, Held, Wanted};
use crate::session::{Opener, Refusal, Session, Way};
use crate::user::{Script, User};

/// How a run ends that cannot begin.
type Ending = (EndReason, Failure);

/// One worker's part of a run.
pub(crate) struct Worker<C> {
    pub(crate) post: Post,
    pub(crate) program: Program,
    pub(crate) connector: C,
    /// What all workers of this engine hold on the server.
    pub(crate) held: Arc<Held>,
}

impl<C: ScriptedConnector> Worker<C> {
    /// Runs the worker on the calling thread, to its end.
    pub(crate) fn run(self) {
        let links = self.post.links.clone();
        post::work_on_this_thread(links, self.work());
    }

    async fn work(self) -> io::Result<()> {
        let mut signal = self.post.links.signal.clone();
        if !self.post.prepare() {
            return Ok(());
        }
        let opener = Rc::new(Opener::new(self.connector.clone(), &self.program, Arc::clone(&self.held)));
        let opened = tokio::select! {
            opened = self.open_all(&opener) => opened,
            _ = signal.wait_for(|signal| matches!(signal, Signal::Quit)) => return Ok(()),
        };
        let sessions = match opened {
            Ok(opened) => opened,
            Err((reason, failure)) => {
                let _ = self.post.links.messages.send(Message::Failed(reason, failure));
                return Ok(());
            }
        };
        self.report_ready(&sessions);
        match signal.wait_for(|signal| !matches!(signal, Signal::Wait)).await.map(|signal| *signal) {
            Ok(Signal::Go { start, .. }) => self.play(opener, sessions, start).await,
            _ => Ok(()),
        }
    }

    fn report_ready(&self, sessions: &[Session<C::Connection>]) {
        let prepared = |session: &Session<C::Connection>| {
            session.ways.iter().filter(|way| matches!(way, Way::Prepared(_))).count() as u64
        };
        let first = sessions.first();
        let is_first = self.post.is_first();
        self.post.links.ready(WorkerReady {
            connections: sessions.len() as u32,
            // The conductor wants that of the engine's first connection, which the first worker has.
            session: first.filter(|_| is_first).map(|first| first.connection.session().clone()),
            prepared_statements: sessions.iter().map(prepared).sum(),
        });
    }

    /// Opens this worker's connections and prepares every statement on each.
    async fn open_all(&self, opener: &Rc<Opener<C>>) -> Result<Vec<Session<C::Connection>>, Ending> {
        let wanted = self.post.share(self.post.plan.load.connections);
        let mut opening = JoinSet::new();
        for position in 0..u64::from(wanted) {
            let (opener, number) = (Rc::clone(opener), self.post.number(position));
            opening.spawn_local(async move { opener.open_in_turn(number).await });
        }
        let mut sessions = Vec::with_capacity(wanted as usize);
        let mut refusals = Vec::new();
        while let Some(joined) = opening.join_next().await {
            match joined.expect("opening a connection does not panic") {
                Ok(session) => sessions.push(session),
                // What is under way counts against the limit too: it is waited for, and then all is counted.
                Err(refusal) if !refusals.is_empty() || refusal::is_limit(&refusal.error) => {
                    opener.stop();
                    refusals.push(refusal);
                }
                Err(refusal) => return Err(refusal.failure(&self.post.plan.target)),
            }
        }
        if !refusals.is_empty() {
            return Err(self.explained(opener, &mut sessions, &mut refusals).await);
        }
        // They come as the server answers; each user is to have the connection of its own number.
        sessions.sort_unstable_by_key(|session| session.number);
        Ok(sessions)
    }

    /// What to say after a limit of the server was met, first by the first of `refusals`.
    async fn explained(
        &self,
        opener: &Opener<C>,
        sessions: &mut [Session<C::Connection>],
        refusals: &mut [Refusal<C::Connection>],
    ) -> Ending {
        let wanted = Wanted {
            connections: self.post.plan.load.connections.into(),
            statements: opener.statements_each(),
        };
        let (error, failure) = (refusals[0].error.clone(), refusals[0].failure(&self.post.plan.target));
        let asked = match sessions.first_mut() {
            Some(session) => Some(&mut session.connection),
            None => refusals.iter_mut().find_map(|refusal| refusal.connection.as_mut()),
        };
        refusal::explained(failure, &error, asked, wanted, &self.held).await
    }

    async fn play(
        self,
        opener: Rc<Opener<C>>,
        sessions: Vec<Session<C::Connection>>,
        start: Instant,
    ) -> io::Result<()> {
        let numbers: Vec<u64> = sessions.iter().map(|session| session.number).collect();
        let kinds = self.program.describe().len();
        let plan = Arc::clone(&self.post.plan);
        let options = self.post.options.clone();
        let script = Rc::new(Script { program: self.program, plan: Arc::clone(&plan), options });
        let openers = Rc::clone(&opener);
        let spawn = |desk: &Rc<Desk>, users: &mut JoinSet<()>| {
            for (here, session) in sessions.into_iter().enumerate() {
                let index = session.number;
                let place = dbdyno_workload::Seat { index, count: u64::from(plan.load.connections) };
                let event = script.program.events(place);
                let rng = Rng::new(plan.seed, &[u64::from_be_bytes(*b"backoffs"), index]);
                let seat = Seat { here, overall: index };
                let (opener, desk, script) = (Rc::clone(&openers), Rc::clone(desk), Rc::clone(&script));
                let user = User { session, opener, desk: Rc::clone(&desk), seat, script, event, rng };
                spawn_user(users, &desk, user.play());
            }
        };
        let over = |desk: &Desk, users: usize| {
            if let Some(error) = opener.all_lost(users) {
                // None of them has waited for long enough to give up by itself.
                desk.fail(failure::gone_at_the_end(&error));
            }
        };
        self.post.play(start, kinds, &numbers, spawn, over).await
    }
}
