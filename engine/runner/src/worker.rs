//! One worker: a thread with an event loop, its connections and its users.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use dbdyno_random::Rng;
use dbdyno_wire::Connection;
use dbdyno_wire::scripted::ScriptedConnector;
use dbdyno_workload::{Program, UserIndex};
use tokio::task::JoinSet;

use crate::control::{Signal, WorkerReady};
use crate::failure::RunFailure;
use crate::server_limits::{self, Demand, OpenCounts};
use crate::session::{OpenFailure, Session, SessionOpener, count_prepared};
use crate::user::{RunContext, User};
use crate::worker_context::{self, WorkerContext, spawn_user};
use crate::worker_state::WorkerState;

/// One worker's part of a run.
pub(crate) struct Worker<C> {
    pub(crate) context: WorkerContext,
    pub(crate) program: Program,
    pub(crate) connector: C,
    /// Shared by all workers of this engine.
    pub(crate) open_counts: Arc<OpenCounts>,
}

impl<C: ScriptedConnector> Worker<C> {
    /// Runs the worker on the calling thread until it ends.
    pub(crate) fn run(self) {
        let coordinator = self.context.coordinator.clone();
        worker_context::run_worker(coordinator, self.open_and_run());
    }

    async fn open_and_run(self) -> io::Result<()> {
        let mut signal = self.context.coordinator.signal.clone();
        if !self.context.configure_thread() {
            return Ok(());
        }
        let session_sql = [self.program.session(), self.context.plan.session.clone()].concat();
        let open_counts = Arc::clone(&self.open_counts);
        let opener =
            Rc::new(SessionOpener::new(self.connector.clone(), &self.program, session_sql, open_counts));
        let opened = tokio::select! {
            opened = self.open_all(&opener) => opened,
            _ = signal.wait_for(|signal| matches!(signal, Signal::Quit)) => return Ok(()),
        };
        let sessions = match opened {
            Ok(opened) => opened,
            Err((reason, failure)) => {
                self.context.coordinator.fail_run(reason, failure);
                return Ok(());
            }
        };
        self.report_ready(&sessions);
        match signal.wait_for(|signal| !matches!(signal, Signal::Wait)).await.map(|signal| *signal) {
            Ok(Signal::Go { start, .. }) => self.run_users(opener, sessions, start).await,
            _ => Ok(()),
        }
    }

    fn report_ready(&self, sessions: &[Session<C::Connection>]) {
        // The records describe the engine's first connection, which belongs to the first worker.
        let first = sessions.first().filter(|_| self.context.is_first());
        self.context.coordinator.report_ready(WorkerReady {
            connections: sessions.len() as u32,
            session: first.map(|first| first.connection.session().clone()),
            prepared_statements: sessions.iter().map(|session| count_prepared(&session.handles) as u64).sum(),
        });
    }

    /// Opens this worker's connections and prepares every statement on each.
    async fn open_all(
        &self,
        opener: &Rc<SessionOpener<C>>,
    ) -> Result<Vec<Session<C::Connection>>, RunFailure> {
        let connections = self.context.share(self.context.plan.load.connections) as usize;
        let mut opening = JoinSet::new();
        for local in 0..connections {
            let (opener, user) = (Rc::clone(opener), self.context.user_id(local));
            opening.spawn_local(async move { opener.open_with_permit(user).await });
        }
        let mut sessions = Vec::with_capacity(connections);
        let mut failures = Vec::new();
        while let Some(joined) = opening.join_next().await {
            match joined.expect("opening a connection does not panic") {
                Ok(session) => sessions.push(session),
                // Attempts in progress count against the limit too, so they must all end before the use of the limit is
                // read.
                Err(failure) if !failures.is_empty() || server_limits::is_limit(&failure.error) => {
                    opener.stop_opening();
                    failures.push(failure);
                }
                Err(failure) => return Err(failure.to_run_failure(&self.context.plan.target)),
            }
        }
        if !failures.is_empty() {
            return Err(self.explain_limit(opener, &mut sessions, &mut failures).await);
        }
        // Connections finish in any order; sort them, because a user's position is its number on this worker.
        sessions.sort_unstable_by_key(|session| session.user.local);
        Ok(sessions)
    }

    /// The failure of a run that reached a limit of the server, from the first of `failures`.
    async fn explain_limit(
        &self,
        opener: &SessionOpener<C>,
        sessions: &mut [Session<C::Connection>],
        failures: &mut [OpenFailure<C::Connection>],
    ) -> RunFailure {
        let demand = Demand {
            connections: self.context.plan.load.connections.into(),
            statements: opener.prepared_statements(),
        };
        let (error, failure) =
            (failures[0].error.clone(), failures[0].to_run_failure(&self.context.plan.target));
        let connection = match sessions.first_mut() {
            Some(session) => Some(&mut session.connection),
            None => failures.iter_mut().find_map(|failure| failure.connection.as_mut()),
        };
        server_limits::explain(failure, &error, connection, demand, &self.open_counts).await
    }

    async fn run_users(
        self,
        opener: Rc<SessionOpener<C>>,
        sessions: Vec<Session<C::Connection>>,
        start: Instant,
    ) -> io::Result<()> {
        let kinds = self.program.describe().len();
        let statements = self.program.statements().into_iter().map(|statement| statement.sql).collect();
        let plan = Arc::clone(&self.context.plan);
        let options = self.context.options.clone();
        let run = Rc::new(RunContext { program: self.program, plan: Arc::clone(&plan), options });
        let spawn = |worker: &Rc<WorkerState>, users: &mut JoinSet<()>| {
            for session in sessions {
                let global = session.user.global;
                let event = run.program.events(UserIndex { global, users: plan.load.connections.into() });
                let rng = Rng::new(plan.seed, &[u64::from_be_bytes(*b"backoffs"), global]);
                let (opener, worker, run) = (Rc::clone(&opener), Rc::clone(worker), Rc::clone(&run));
                let user = User { session, opener, worker: Rc::clone(&worker), run, event, rng };
                spawn_user(users, &worker, user.run());
            }
        };
        self.context.run_users(start, kinds, statements, spawn, WorkerState::report_lost_connections).await
    }
}
