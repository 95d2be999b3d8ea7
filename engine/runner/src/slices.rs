//! The coordinator's part of a load in slices: checks the commands, and makes the records.

use dbdyno_load::Nanos;
use dbdyno_load::shapes::ClosedSlices;
use dbdyno_load::slices::{Slice, WorkerPause};
use dbdyno_schema::Record;
use dbdyno_schema::histogram::Buckets;
use dbdyno_schema::plan::limits;
use dbdyno_schema::record::{self, Failure, Interval};

/// The slices of a run.
pub(crate) struct Slices {
    guard_us: u64,
    workers: u32,
    running: Option<RunningSlice>,
}

/// The slice that is running.
struct RunningSlice {
    number: u64,
    slice: Slice,
    guard_events: u64,
    /// The counts after the guard time, when every worker has closed them.
    counted: Option<Box<Interval>>,
    /// Number of workers that have not paused.
    running_workers: u32,
    pause: WorkerPause,
    /// Latencies of the events that ended after the slice.
    in_flight: Buckets,
}

impl Slices {
    /// The slices of a run with `workers` event loops.
    pub(crate) fn new(settings: ClosedSlices, workers: u32) -> Self {
        Self { guard_us: settings.guard_us, workers, running: None }
    }

    /// Begins slice number `number`, of `for_us` microseconds, at `now`.
    pub(crate) fn resume(&mut self, number: u64, for_us: u64, now: Nanos) -> Result<Slice, Failure> {
        let (low, high) = (self.guard_us + 1, limits::DURATION_US);
        if let Some(running) = &self.running {
            let text = format!("slice {number} was to begin before slice {} had ended", running.number);
            return Err(failure(text, "send resume after the record `slice`"));
        }
        if !(low..=high).contains(&for_us) {
            let text = format!("for_us of slice {number} is {for_us}; it must be between {low} and {high}");
            return Err(failure(text, "a slice is longer than load.shape.guard_us"));
        }
        let slice = Slice::new(now, self.guard_us, for_us);
        self.running = Some(RunningSlice {
            number,
            slice,
            guard_events: 0,
            counted: None,
            running_workers: self.workers,
            pause: WorkerPause::default(),
            in_flight: Buckets::default(),
        });
        Ok(slice)
    }

    /// Takes an interval that all workers have closed: a guard time, the counted time of a slice, or a pause.
    pub(crate) fn add_interval(&mut self, interval: Box<Interval>) {
        let Some(running) = &mut self.running else { return };
        let end = interval.end_us * 1000;
        if end == running.slice.end {
            running.counted = Some(interval);
        } else if end == running.slice.counted_from {
            running.guard_events = interval.counts.events;
        }
    }

    /// Takes the report of a worker that has paused, with the latencies of its events that ended after the slice. Returns
    /// the slice's record after the last worker's report.
    pub(crate) fn add_pause(&mut self, pause: WorkerPause, in_flight: &Buckets) -> Option<Record> {
        let running = self.running.as_mut()?;
        running.pause.merge(pause);
        running.in_flight.merge(in_flight);
        running.running_workers -= 1;
        if running.running_workers > 0 {
            return None;
        }
        // Each worker closes its spans before it reports its pause. A slice without counts was cut off by the end of the run.
        self.running.take()?.into_record()
    }
}

impl RunningSlice {
    fn into_record(self) -> Option<Record> {
        let Self { number, slice, guard_events, counted, pause, in_flight, .. } = self;
        let counted = *counted?;
        Some(Record::Slice(Box::new(record::Slice {
            slice: number,
            resumed_us: slice.resumed / 1000,
            began_us: pause.first_begin.map(|at| at / 1000),
            start_us: slice.counted_from / 1000,
            end_us: slice.end / 1000,
            paused_us: pause.paused / 1000,
            // Without a guard time, the interval that ends at `counted_from` is the pause before.
            guard_events: if slice.counted_from > slice.resumed { guard_events } else { 0 },
            in_flight: counted.in_flight,
            in_flight_latency_us: in_flight,
            counts: counted.counts,
            latency_us: counted.latency_us,
            latency_sum_us: counted.latency_sum_us,
            latency_min_us: counted.latency_min_us,
            latency_max_us: counted.latency_max_us,
            gaps: counted.gaps,
            percentiles_us: counted.percentiles_us,
            generator: counted.generator,
        })))
    }
}

/// The failure of a run that received `resume` or `finish` before its load started, or although its load is not in slices.
pub(crate) fn unexpected_command() -> Failure {
    failure(
        "resume or finish arrived before the record `phase`, or load.shape is not closed_slices".into(),
        "set load.shape to closed_slices, and send these commands after the record `phase`",
    )
}

fn failure(text: String, fix: &str) -> Failure {
    Failure { text, fix: Some(fix.into()), ..Failure::default() }
}
