//! Merges the records of several engines that ran one plan together, each its segment, into the records of one run.
//!
//! Counters and histograms are added, so nothing is lost: percentiles are those of all events together. What describes one
//! load generator, such as its CPU time, is that of the worst engine, so that one saturated client is visible.
//!
//! Every engine closes the same intervals. A record is complete when every engine has sent its part. A run that ends
//! early on one engine has failed on all of them, and has no totals.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_schema::Record;
use dbdyno_schema::plan::Segment;
use dbdyno_schema::record::{Hello, Loading, PhaseName, Warning};

mod end;
mod generator;
mod part;

use self::part::Part;
use crate::phases::RunTotals;

/// Merges the records of the engines of a fleet.
#[derive(Debug)]
pub struct FleetMerger {
    /// Names of the engines, for messages.
    names: Vec<String>,
    /// Records that some engines have not sent yet.
    open: BTreeMap<Key, Open>,
    totals: RunTotals,
    /// Warnings that were passed on.
    warnings: BTreeSet<(String, String)>,
    /// The latest progress of each engine that loads.
    loading: BTreeMap<usize, Loading>,
    has_ended: bool,
}

/// Identifies the parts of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Hello,
    Ready,
    Phase(PhaseName),
    Tick(u64),
    Interval(u64),
    /// By the end of the window.
    Statements(u64),
    Loaded,
    End,
}

/// A record of which some parts are missing.
#[derive(Debug)]
struct Open {
    /// The engines whose parts are in the sum.
    engines: BTreeSet<usize>,
    sum: Part,
}

impl FleetMerger {
    /// A merger for the engines with these names, in the order of their segments.
    pub fn new(names: Vec<String>) -> Self {
        Self {
            names,
            open: BTreeMap::new(),
            totals: RunTotals::default(),
            warnings: BTreeSet::new(),
            loading: BTreeMap::new(),
            has_ended: false,
        }
    }

    /// The engines that have not sent their last record.
    pub fn missing(&self) -> Vec<&str> {
        let ended = self.open.get(&Key::End).map(|open| &open.engines);
        let is_missing = |engine: &usize| !ended.is_some_and(|ended| ended.contains(engine));
        (0..self.names.len()).filter(is_missing).map(|engine| self.names[engine].as_str()).collect()
    }

    /// Adds a record of an engine. Returns the records of the run that are now complete.
    ///
    /// # Errors
    /// The record does not fit those of the other engines.
    pub fn add(&mut self, engine: usize, record: Record) -> Result<Vec<Record>, String> {
        let Some(name) = self.names.get(engine).cloned() else {
            return Err(format!("there is no engine {engine}: the fleet has {}", self.names.len()));
        };
        if self.has_ended {
            return Ok(Vec::new());
        }
        if self.names.len() == 1 {
            // One engine writes no gaps for a merge, and needs none.
            self.has_ended = matches!(record, Record::End(_));
            return Ok(vec![record]);
        }
        let record = match record {
            Record::Warning(warning) => return Ok(self.pass_on(warning)),
            Record::Loading(loading) => return Ok(vec![self.progress(engine, loading)]),
            Record::End(end) if !end.reason.is_planned() => {
                self.has_ended = true;
                return Ok(vec![Record::End(Box::new(end::failed(&name, *end)))]);
            }
            record => record,
        };
        let key = Key::of(&record).ok_or_else(|| format!("{name}: a load in slices needs one engine"))?;
        self.add_part(key, engine, record).map_err(|text| format!("{name}: {text}"))?;
        match self.open.get(&key) {
            Some(open) if open.engines.len() == self.names.len() && !key.is_open_ended() => {
                self.complete(key)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn add_part(&mut self, key: Key, engine: usize, record: Record) -> Result<(), String> {
        match self.open.get_mut(&key) {
            None => {
                let open = Open { engines: BTreeSet::from([engine]), sum: Part::new(record) };
                self.open.insert(key, open);
                Ok(())
            }
            Some(open) => {
                if !open.engines.insert(engine) {
                    return Err(format!("it sent the record {key:?} twice"));
                }
                open.sum.add(record)
            }
        }
    }

    fn complete(&mut self, key: Key) -> Result<Vec<Record>, String> {
        let open = self.open.remove(&key).expect("the caller has found it");
        // An engine without statements in a window sends no part, so a window is complete when all engines are past it.
        let past_us = match &open.sum {
            Part::Interval(span, _) => span.start / 1000,
            Part::Phase(phase) => phase.at_us,
            Part::End(_) => u64::MAX,
            _ => 0,
        };
        let mut records = self.take_windows(past_us);
        records.push(match open.sum {
            Part::Hello(hello) => self.hello(*hello),
            Part::Interval(span, generator) => {
                Record::Interval(Box::new(self.totals.add_interval(*span, generator)))
            }
            Part::End(sum) => {
                self.has_ended = true;
                Record::End(Box::new(sum.total(&mut self.totals)?))
            }
            Part::Ready(ready) => Record::Ready(ready),
            Part::Phase(phase) => Record::Phase(phase),
            Part::Tick(tick) => Record::Tick(tick),
            Part::Statements(statements) => Record::Statements(statements),
            Part::Loaded(loaded) => Record::Loaded(loaded),
        });
        Ok(records)
    }

    /// The windows of statements that end at `past_us` or before.
    fn take_windows(&mut self, past_us: u64) -> Vec<Record> {
        let ended: Vec<Key> = self
            .open
            .keys()
            .copied()
            .filter(|key| matches!(key, Key::Statements(end) if *end <= past_us))
            .collect();
        let windows = ended.into_iter().filter_map(|key| match self.open.remove(&key)?.sum {
            Part::Statements(statements) => Some(Record::Statements(statements)),
            _ => None,
        });
        windows.collect()
    }

    /// The first engine's record, with the plan of all segments together.
    fn hello(&self, hello: Hello) -> Record {
        let mut hello = hello;
        hello.plan.segment = Segment::default();
        Record::Hello(Box::new(hello))
    }

    /// Each warning once.
    fn pass_on(&mut self, warning: Warning) -> Vec<Record> {
        let is_new = self.warnings.insert((warning.code.clone(), warning.text.clone()));
        is_new.then_some(Record::Warning(warning)).into_iter().collect()
    }

    /// The progress of all engines together.
    fn progress(&mut self, engine: usize, loading: Loading) -> Record {
        self.loading.insert(engine, loading.clone());
        let rows = self.loading.values().map(|one| one.rows).sum();
        let rows_planned = self.loading.values().map(|one| one.rows_planned).sum();
        Record::Loading(Loading { rows, rows_planned, ..loading })
    }
}

impl Key {
    /// The key of a record that has a part on every engine; `None` of a slice.
    fn of(record: &Record) -> Option<Self> {
        Some(match record {
            Record::Hello(_) => Key::Hello,
            Record::Ready(_) => Key::Ready,
            Record::Phase(phase) => Key::Phase(phase.name),
            Record::Tick(tick) => Key::Tick(tick.at_us),
            Record::Interval(interval) => Key::Interval(interval.seq),
            Record::Statements(statements) => Key::Statements(statements.end_us),
            Record::Loaded(_) => Key::Loaded,
            Record::End(_) => Key::End,
            Record::Slice(_) | Record::Warning(_) | Record::Loading(_) => return None,
        })
    }

    /// Whether an engine may send no part.
    fn is_open_ended(self) -> bool {
        matches!(self, Key::Statements(_))
    }
}

#[cfg(test)]
mod tests;
