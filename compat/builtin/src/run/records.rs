//! Merges the spans of all threads into records.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_metrics::phases::{Phases, by_number};
use dbdyno_metrics::spans::{ClosedSpans, DrainedEvents, Span};
use dbdyno_schema::Record;
use dbdyno_schema::record::{End, EndReason, Generator, UserTotals};
use rustix::time::{ClockId, clock_gettime};

use super::interval_work::IntervalWork;
use super::meter::ThreadSpan;
use crate::test::Work;

pub(super) struct Records {
    threads: usize,
    /// Spans that some threads have not closed yet.
    open: BTreeMap<Nanos, PartialSpan>,
    phases: Phases,
    interval_work: IntervalWork,
    cpu_at_start: Duration,
    cpu: Duration,
}

/// The sums of a span that only some threads have closed.
#[derive(Default)]
struct PartialSpan {
    threads: usize,
    closed: ClosedSpans,
    work: Work,
}

/// The records for a span that all threads have closed.
pub(super) struct CompletedSpan {
    pub(super) record: Option<Record>,
    /// Set if a phase ends with the span.
    pub(super) phase_end: Option<Nanos>,
}

impl Records {
    pub(super) fn new(threads: u32, interval_work: IntervalWork) -> Self {
        let cpu = process_cpu();
        Self {
            threads: threads as usize,
            open: BTreeMap::new(),
            phases: Phases::default(),
            interval_work,
            cpu_at_start: cpu,
            cpu,
        }
    }

    /// Adds a thread's span. Returns the records if this thread was the last one. `backlog` is the number of waiting
    /// events.
    pub(super) fn add(&mut self, thread: ThreadSpan, late: Nanos, backlog: u64) -> Option<CompletedSpan> {
        let span_so_far = self.open.entry(thread.bound).or_default();
        span_so_far.threads += 1;
        span_so_far.closed.merge(thread.closed);
        span_so_far.work += thread.work;
        if span_so_far.threads < self.threads {
            return None;
        }
        let PartialSpan { closed, work, .. } = self.open.remove(&thread.bound)?;
        let phase_end = closed.phase.is_some().then_some(thread.bound);
        if let (Some(span), Some(phase)) = (&closed.interval, closed.phase) {
            self.phases.close(span.phase, phase);
        }
        let record = closed.interval.map(|span| self.interval(span, work, late, backlog));
        Some(CompletedSpan { record, phase_end })
    }

    fn interval(&mut self, mut span: Span, work: Work, late: Nanos, backlog: u64) -> Record {
        span.counts.reads += work.reads;
        span.counts.writes += work.writes;
        span.counts.other += work.syncs;
        span.counts.bytes += work.read_bytes + work.written_bytes;
        span.backlog = backlog;
        self.interval_work.add(span.end / 1000, work);
        let generator = self.generator(span.end - span.start, late);
        Record::Interval(Box::new(self.phases.interval(span, generator)))
    }

    /// The load generator and the measured threads are one process, so `cpu` counts both. The lag is the delay with
    /// which the conductor closed the span.
    fn generator(&mut self, length: Nanos, late: Nanos) -> Generator {
        let cpu = process_cpu();
        let used = cpu.saturating_sub(std::mem::replace(&mut self.cpu, cpu));
        let wall = Duration::from_nanos(length.max(1)).as_secs_f64();
        let (cpu, lag_us_max) = (used.as_secs_f64() / wall / self.threads as f64, late / 1000);
        Generator { cpu, lag_us_max, lag_us_p99: lag_us_max, ..Generator::default() }
    }

    pub(super) fn end(&self, reason: EndReason, users: Vec<(u64, UserTotals)>) -> Record {
        Record::End(Box::new(End {
            reason,
            failure: None,
            phases: self.phases.totals(&DrainedEvents::default()),
            users: by_number(users),
            memory_peak_bytes: memory_peak_bytes(),
            cpu_us: process_cpu().saturating_sub(self.cpu_at_start).as_micros() as u64,
        }))
    }
}

fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Peak resident memory of the process (VmHWM), in bytes; 0 where unknown.
fn memory_peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib: Option<u64> = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok());
    kib.unwrap_or(0) * 1024
}
