//! Merges the spans of all threads into interval records and the end record.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_metrics::phases::{RunTotals, sort_by_number};
use dbdyno_metrics::spans::{ClosedSpans, DrainedEvents, Span};
use dbdyno_runner::external::{memory_peak_bytes, process_cpu};
use dbdyno_schema::Record;
use dbdyno_schema::record::{End, EndReason, Generator, UserTotals};

use super::interval_io_counts::IntervalIoCounts;
use super::meter::ThreadSpan;
use crate::test::IoCounts;

pub(super) struct RecordBuilder {
    threads: usize,
    /// Spans that some threads have not closed yet. The key is the time at which the span ends.
    partial_spans: BTreeMap<Nanos, PartialSpan>,
    phases: RunTotals,
    interval_io_counts: IntervalIoCounts,
    /// CPU time of the process at the start of the run, and at the end of the last interval.
    cpu_at_start: Duration,
    last_cpu: Duration,
}

/// The sums of the threads that have closed a span.
#[derive(Default)]
struct PartialSpan {
    threads: usize,
    closed: ClosedSpans,
    io: IoCounts,
}

/// The records for a span that all threads have closed.
pub(super) struct CompletedSpan {
    pub(super) record: Option<Record>,
    /// Set if a phase ends with the span.
    pub(super) phase_end: Option<Nanos>,
}

impl RecordBuilder {
    pub(super) fn new(threads: u32, interval_io_counts: IntervalIoCounts) -> Self {
        let cpu = process_cpu();
        Self {
            threads: threads as usize,
            partial_spans: BTreeMap::new(),
            phases: RunTotals::default(),
            interval_io_counts,
            cpu_at_start: cpu,
            last_cpu: cpu,
        }
    }

    /// Adds a thread's span, and returns the completed span if all threads have closed it. `delay` is the time from the
    /// end of the span to this call, `backlog` the number of waiting events.
    pub(super) fn add(&mut self, thread: ThreadSpan, delay: Nanos, backlog: u64) -> Option<CompletedSpan> {
        let partial = self.partial_spans.entry(thread.span_end).or_default();
        partial.threads += 1;
        partial.closed.merge(thread.closed);
        partial.io += thread.io;
        if partial.threads < self.threads {
            return None;
        }
        let PartialSpan { closed, io, .. } = self.partial_spans.remove(&thread.span_end)?;
        let phase_end = closed.phase.is_some().then_some(thread.span_end);
        if let (Some(interval), Some(phase_sums)) = (&closed.interval, closed.phase) {
            self.phases.close_phase(interval.phase, phase_sums);
        }
        let record = closed.interval.map(|span| self.interval_record(span, io, delay, backlog));
        Some(CompletedSpan { record, phase_end })
    }

    fn interval_record(&mut self, mut span: Span, io: IoCounts, delay: Nanos, backlog: u64) -> Record {
        span.counts.reads += io.reads;
        span.counts.writes += io.writes;
        span.counts.other += io.syncs;
        span.counts.bytes += io.read_bytes + io.written_bytes;
        span.backlog = backlog;
        self.interval_io_counts.add(span.end / 1000, io);
        let generator = self.generator(span.end - span.start, delay);
        Record::Interval(Box::new(self.phases.add_interval(span, generator)))
    }

    /// The state of the load generator in a span of `length`. The generator and the measured threads are one process, so
    /// `cpu` counts both. The lag is the delay with which the coordinator closed the span.
    fn generator(&mut self, length: Nanos, delay: Nanos) -> Generator {
        let cpu = process_cpu();
        let used = cpu.saturating_sub(std::mem::replace(&mut self.last_cpu, cpu));
        let wall = Duration::from_nanos(length.max(1)).as_secs_f64();
        let (cpu, lag_us_max) = (used.as_secs_f64() / wall / self.threads as f64, delay / 1000);
        Generator { cpu, lag_us_max, lag_us_p99: lag_us_max, ..Generator::default() }
    }

    pub(super) fn end_record(&self, reason: EndReason, users: Vec<(u64, UserTotals)>) -> Record {
        Record::End(Box::new(End {
            reason,
            failure: None,
            // Threads start no event that another one would have to finish, so none is left.
            phases: self.phases.totals(&DrainedEvents::default()),
            users: sort_by_number(users),
            memory_peak_bytes: memory_peak_bytes(),
            cpu_us: process_cpu().saturating_sub(self.cpu_at_start).as_micros() as u64,
        }))
    }
}
