//! The last record of a fleet.

use std::collections::BTreeMap;

use dbdyno_schema::histogram::{Buckets, bucket_width_us};
use dbdyno_schema::record::{End, Failure, Generator, PhaseName, PhaseTotals};

use super::generator::add_generator;
use crate::histogram::LatencySummary;
use crate::phases::RunTotals;
use crate::spans::{DrainedEvents, PhaseAccounting, add_accounting};

/// The sum of the last records of the engines that ended as planned.
#[derive(Debug)]
pub(super) struct EndSum {
    end: End,
    phases: BTreeMap<PhaseName, PhaseSum>,
}

/// What the intervals of a phase do not have.
#[derive(Debug, Default)]
struct PhaseSum {
    closed: PhaseAccounting,
    drained: Buckets,
    generator: Generator,
    /// The largest latency or lower bound, and whether it is a bound on any engine.
    max: Option<(f64, bool)>,
}

impl EndSum {
    pub(super) fn new(end: End) -> Self {
        let mut sum = Self { end: End { phases: BTreeMap::new(), ..end.clone() }, phases: BTreeMap::new() };
        sum.add_phases(end.phases);
        sum
    }

    pub(super) fn add(&mut self, end: End) -> Result<(), String> {
        if end.reason != self.end.reason {
            return Err(format!("it ended by {:?}, and another engine by {:?}", end.reason, self.end.reason));
        }
        self.end.memory_peak_bytes += end.memory_peak_bytes;
        self.end.cpu_us += end.cpu_us;
        self.add_phases(end.phases);
        Ok(())
    }

    fn add_phases(&mut self, phases: BTreeMap<PhaseName, PhaseTotals>) {
        for (name, totals) in phases {
            let sum = self.phases.entry(name).or_default();
            add_accounting(&mut sum.closed.accounting, &totals.accounting);
            sum.closed.censored.merge(&totals.censored_us);
            sum.drained.merge(&totals.drained_us);
            add_generator(&mut sum.generator, &totals.generator);
            if let Some(max) = totals.percentiles_us.map(|percentiles| percentiles.max) {
                let (value_us, censored) = sum.max.unwrap_or((0.0, false));
                sum.max = Some((value_us.max(max.value_us), censored || max.censored));
            }
        }
    }

    /// The last record of the run, whose intervals are in `totals`.
    ///
    /// # Errors
    /// The last records do not agree with the intervals.
    pub(super) fn total(self, totals: &mut RunTotals) -> Result<End, String> {
        let Self { mut end, phases } = self;
        let mut drained = DrainedEvents::default();
        for (name, sum) in &phases {
            let counted = totals.totals_so_far(*name).map_or(0, |sums| sums.counts.events);
            if counted != sum.closed.accounting.done {
                let done = sum.closed.accounting.done;
                return Err(format!(
                    "its last record makes {done} transactions in the phase {name:?}, the intervals {counted}"
                ));
            }
            // Only the last phase has drained events.
            drained.latency.merge(&summary(&sum.drained));
            totals.close_phase(*name, sum.closed.clone());
        }
        end.phases = totals.totals(&drained);
        for (name, sum) in phases {
            let Some(phase) = end.phases.get_mut(&name) else { continue };
            phase.generator = sum.generator;
            if let (Some(percentiles), Some((value_us, censored))) = (&mut phase.percentiles_us, sum.max) {
                percentiles.max.value_us = value_us;
                percentiles.max.censored = censored;
            }
        }
        Ok(end)
    }
}

/// The latencies of a histogram whose extremes are known to the width of a bucket.
fn summary(buckets: &Buckets) -> LatencySummary {
    LatencySummary {
        min_us: buckets.0.first().map(|&(lower, _)| lower as f64),
        max_us: buckets.0.last().map(|&(lower, _)| (lower + bucket_width_us(lower) - 1) as f64),
        buckets: buckets.clone(),
        sum_us: 0.0,
    }
}

/// The last record of a run that did not end as planned on the engine `name`: without totals, because those of some
/// engines are no result.
pub(super) fn failed(name: &str, end: End) -> End {
    let at = |failure: Failure| Failure { text: format!("{name}: {}", failure.text), ..failure };
    End { failure: end.failure.map(at), phases: BTreeMap::new(), users: Vec::new(), ..end }
}
