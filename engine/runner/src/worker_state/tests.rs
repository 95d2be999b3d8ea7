//! Tests of a rate on several event loops in simulated time: whatever their number, every event starts exactly when it would
//! with one queue for all connections.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll, Waker};

use dbdyno_load::arrivals::arrivals;
use dbdyno_load::timeline::Timeline;
use dbdyno_random::Rng;
use dbdyno_schema::Record;
use dbdyno_schema::record::{Interval, PhaseName, PhaseTotals};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;
use crate::arrival_queue::ArrivalQueue;
use crate::control::Signal;
use crate::finish::Finish;
use crate::merge::SpanMerger;
use crate::worker_context::WorkerContext;
use crate::{RunSpec, Secrets};

const MS: Nanos = 1_000_000;

/// A load in simulated time.
struct Load {
    connections: u32,
    shape: Value,
    queue_limit: Option<u32>,
    measure: Nanos,
    events: Option<u64>,
    /// The service time of the event that is due at the key.
    service: HashMap<Nanos, Nanos>,
    /// The due times of all arrivals.
    due: Vec<Nanos>,
}

/// When each event that began was due, and when it began; in the order in which they were due.
type Starts = Vec<(Nanos, Nanos)>;

fn plan(load: &Load, workers: u32) -> Value {
    json!({
        "schema": 1,
        "target": {"protocol": "null", "answer_us": 0},
        "workload": {"name": "oltp_point_select"},
        "load": {"connections": load.connections, "shape": load.shape, "queue_limit": load.queue_limit},
        "phases": {"measure_us": load.measure / 1000, "events": load.events},
        "report": {"interval_us": 100_000, "tick_us": 50_000},
        "client": {"workers": workers},
        "seed": 5,
    })
}

impl Load {
    fn new(connections: u32, shape: Value, measure: Nanos, mut service: impl FnMut() -> Nanos) -> Self {
        let mut load = Self {
            connections,
            shape,
            queue_limit: None,
            measure,
            events: None,
            service: HashMap::new(),
            due: Vec::new(),
        };
        let spec = load.spec(1);
        let mut arrivals = arrivals(&spec.plan.load.shape, 0, 0, 1, spec.plan.seed).unwrap();
        load.due = std::iter::repeat_with(|| arrivals.next_due()).take_while(|&due| due < measure).collect();
        load.service = load.due.iter().map(|&due| (due, service())).collect();
        load
    }

    fn spec(&self, workers: u32) -> RunSpec {
        RunSpec::new(serde_json::from_value(plan(self, workers)).unwrap(), Secrets::default())
    }

    /// The starts with one queue, computed arrival by arrival.
    fn expected_starts(&self) -> Starts {
        let limit = self.queue_limit.map_or(usize::MAX, |limit| limit as usize);
        let mut free = vec![0; self.connections as usize];
        let (mut starts, mut queue) = (Starts::new(), VecDeque::new());
        let mut begin = |free: &mut Vec<Nanos>, due: Nanos| {
            let server = free.iter_mut().min().expect("a load has a connection");
            let start = due.max(*server);
            *server = start + self.service[&due];
            starts.push((due, start));
        };
        let is_free = |free: &[Nanos], at| free.iter().any(|&since| since <= at);
        for &due in &self.due {
            while is_free(&free, due)
                && let Some(first) = queue.pop_front()
            {
                begin(&mut free, first);
            }
            if is_free(&free, due) {
                begin(&mut free, due);
            } else if queue.len() < limit {
                queue.push_back(due);
            }
        }
        queue.into_iter().for_each(|due| begin(&mut free, due));
        starts.retain(|&(_, start)| start < self.measure);
        starts
    }
}

enum UserState {
    Waiting(Pin<Box<dyn Future<Output = Option<Nanos>>>>),
    Serving { due: Nanos, start: Nanos, end: Nanos },
    Ended,
}

struct SimulatedUser {
    worker: Rc<WorkerState>,
    id: UserId,
    state: UserState,
}

impl SimulatedUser {
    fn wait(&mut self, free_since: Option<Nanos>) {
        let (worker, id) = (Rc::clone(&self.worker), self.id);
        self.state = UserState::Waiting(Box::pin(async move { worker.next_due(id, free_since).await }));
    }

    /// Returns the event that begins.
    fn poll(&mut self, load: &Load, now: Nanos) -> Option<(Nanos, Nanos)> {
        if let UserState::Serving { due, start, end } = self.state
            && end <= now
        {
            self.worker.end_event(self.id, Event { due, start, end });
            self.wait(Some(end));
        }
        let UserState::Waiting(next) = &mut self.state else { return None };
        match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => None,
            Poll::Ready(None) => {
                self.state = UserState::Ended;
                self.worker.end_user(now);
                None
            }
            Poll::Ready(Some(due)) => {
                self.state = UserState::Serving { due, start: now, end: now + load.service[&due] };
                Some((due, now))
            }
        }
    }
}

struct Simulation {
    workers: Vec<Rc<WorkerState>>,
    users: Vec<SimulatedUser>,
    time: &'static AtomicU64,
    messages: Receiver<Message>,
    merger: SpanMerger,
    _signal: watch::Sender<Signal>,
}

impl Simulation {
    fn new(load: &Load, workers: u32) -> Self {
        let spec = load.spec(workers);
        let plan = &spec.plan;
        assert_eq!(plan.problems(), Vec::<String>::new());
        let (_signal, signal) = watch::channel(Signal::Wait);
        let (sender, messages) = channel();
        let finish = Arc::new(Finish::new(&plan.phases, spec.options.measurement_end, load.connections));
        let queue = ArrivalQueue::new(&spec, 1, finish.time_limit());
        let link = CoordinatorLink { signal, finish, queue, messages: sender };
        let time: &'static AtomicU64 = Box::leak(Box::default());
        let timeline = Timeline::new(&plan.phases, &plan.report, spec.options.measurement_end);
        let (mut states, mut users) = (Vec::new(), Vec::new());
        for number in 0..workers {
            let context = WorkerContext::new(&spec, number, link.clone());
            let schedule = context.schedule();
            let recorder = Recorder::new(timeline.clone(), 1, true);
            let waits = AnswerWaits::new(plan, Vec::new(), Vec::new());
            let clock = Clock::simulated(time);
            let worker = Rc::new(WorkerState::new(clock, recorder, schedule, 0, link.clone(), waits));
            for local in 0..context.share(load.connections) as usize {
                let (worker, id) = (Rc::clone(&worker), context.user_id(local));
                let mut user = SimulatedUser { worker, id, state: UserState::Ended };
                user.wait(None);
                users.push(user);
            }
            states.push(worker);
        }
        let merger = SpanMerger::new(plan, vec!["select".into()]);
        Self { workers: states, users, time, messages, merger, _signal }
    }

    /// Runs the load to its end. Returns the starts, the intervals and the totals.
    fn run(mut self, load: &Load) -> (Starts, Vec<Interval>, PhaseTotals) {
        let (mut starts, mut intervals) = (Starts::new(), Vec::new());
        loop {
            let now = self.time.load(Ordering::Relaxed);
            let deadlines: Vec<_> =
                self.workers.iter().filter_map(|worker| worker.handle_due(None)).collect();
            starts.extend(self.users.iter_mut().filter_map(|user| user.poll(load, now)));
            self.receive(&mut intervals);
            let ended = now.min(load.measure) / (100 * MS);
            assert!(intervals.len() as u64 >= ended, "{} of {ended} intervals at {now}", intervals.len());
            if deadlines.is_empty() {
                break;
            }
            let deadlines = self.workers.iter().filter_map(|worker| worker.handle_due(None));
            let ends = self.users.iter().filter_map(|user| match user.state {
                UserState::Serving { end, .. } => Some(end),
                _ => None,
            });
            let next = deadlines.chain(ends).filter(|&at| at > now).min().unwrap_or(now + 1);
            self.time.store(next, Ordering::Relaxed);
        }
        self.workers.iter().for_each(|worker| worker.report_end());
        self.receive(&mut intervals);
        starts.sort_unstable();
        (starts, intervals, self.merger.totals()[&PhaseName::Measure].clone())
    }

    fn receive(&mut self, intervals: &mut Vec<Interval>) {
        for message in self.messages.try_iter() {
            match message {
                Message::SpansClosed { boundary, spans, usage } => {
                    let span = self.merger.add(boundary, *spans, usage);
                    intervals.extend(span.into_iter().flat_map(|span| span.records).filter_map(|record| {
                        if let Record::Interval(interval) = record { Some(*interval) } else { None }
                    }));
                }
                Message::Drained(drained, users) => self.merger.add_drained(&drained, users),
                Message::EventLimitReached | Message::AllUsersEnded => {
                    self.workers.iter().for_each(|worker| worker.recheck_end());
                }
                _ => {}
            }
        }
    }
}

/// Compares starts, accounting and queue lengths with those of one queue.
fn assert_one_queue(load: &Load, workers: u32) {
    let label = format!("{} connections, {workers} event loops, {}", load.connections, load.shape);
    let expected = load.expected_starts();
    let (starts, intervals, totals) = Simulation::new(load, workers).run(load);
    assert!(starts == expected, "{label}: {} of {} events began", starts.len(), expected.len());
    let done = starts.iter().filter(|(due, start)| start + load.service[due] < load.measure).count() as u64;
    let accounting = &totals.accounting;
    assert_eq!((accounting.due, accounting.done), (load.due.len() as u64, done), "{label}");
    if load.queue_limit.is_none() {
        assert_eq!(accounting.dropped, 0, "{label}");
        assert_eq!(intervals.len() as u64, load.measure / (100 * MS), "{label}");
        for interval in intervals {
            let at = interval.end_us * 1000;
            let due = load.due.partition_point(|&due| due < at);
            let begun = starts.iter().filter(|&&(_, start)| start < at).count();
            assert_eq!(interval.backlog, (due - begun) as u64, "{label}: at {at}");
        }
    }
}

fn poisson(rate_per_s: f64) -> Value {
    json!({"poisson": {"rate_per_s": rate_per_s}})
}

#[test]
fn any_number_of_event_loops_has_one_queue() {
    let mut rng = Rng::new(3, &[]);
    for connections in [1, 3, 4, 16] {
        for utilisation in [0.5, 0.8, 0.95, 1.3] {
            let rate = utilisation * f64::from(connections) / 0.006;
            let measure = (1e12 / rate) as Nanos / (100 * MS) * (100 * MS) + 100 * MS;
            let constant = Load::new(connections, poisson(rate), measure, || 6 * MS);
            let random = Load::new(connections, poisson(rate), measure, || {
                (-(1.0 - rng.unit()).ln() * 6e6) as Nanos + 1
            });
            for workers in [1, 2, 4, 7] {
                assert_one_queue(&constant, workers);
                assert_one_queue(&random, workers);
            }
        }
    }
}

#[test]
fn event_loops_without_connections_take_no_arrivals() {
    for (connections, workers, rate) in [(1, 2, 200.0), (3, 4, 100.0), (1, 16, 200.0)] {
        let shape = json!({"constant": {"rate_per_s": rate}});
        let load = Load::new(connections, shape, 2_000 * MS, || MS);
        let (starts, _, totals) = Simulation::new(&load, workers).run(&load);
        assert_eq!((starts.len() as f64, totals.counts.events as f64), (2.0 * rate, 2.0 * rate));
        assert_eq!(totals.latency_max_us, Some(1000.0));
        assert_one_queue(&load, workers);
    }
}

#[test]
fn intervals_are_written_when_they_end_even_if_an_event_is_due_then() {
    for (connections, workers) in [(1, 1), (4, 2)] {
        let load = Load::new(connections, json!({"constant": {"rate_per_s": 200.0}}), 1_000 * MS, || MS);
        assert_one_queue(&load, workers);
    }
}

#[test]
fn the_limit_of_the_queue_is_that_of_all_event_loops() {
    for (connections, queue_limit) in [(4, 0), (4, 7), (3, 1)] {
        let mut load = Load::new(connections, poisson(1200.0), 2_000 * MS, || 6 * MS);
        load.queue_limit = Some(queue_limit);
        let dropped: Vec<_> = [1, 2, 4]
            .map(|workers| {
                assert_one_queue(&load, workers);
                Simulation::new(&load, workers).run(&load).2.accounting.dropped
            })
            .to_vec();
        assert!(dropped[0] > 500 && dropped.iter().all(|&count| count == dropped[0]), "{dropped:?}");
    }
}

#[test]
fn events_that_the_limit_of_events_does_not_admit_are_not_due() {
    for workers in [1, 2, 4] {
        // At this rate, no event waits.
        let mut load = Load::new(4, poisson(60.0), 5_000 * MS, || 6 * MS);
        load.events = Some(100);
        let (starts, _, totals) = Simulation::new(&load, workers).run(&load);
        assert_eq!((starts.len(), totals.counts.events), (100, 100));
        assert_eq!(starts, load.expected_starts()[..100]);
        assert_eq!((totals.accounting.due, totals.accounting.unfinished), (100, 0));
    }
}
