//! Adds up the rows, bytes and times of one `prepare`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dbdyno_schema::record::{Loaded, LoadedTable, LoadingWay};
use dbdyno_workload::tables::Tables;

use super::stream::{IndexBuild, StoredRows};

/// The time from the first start to the last end of overlapping steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeRange(Option<(Instant, Instant)>);

impl TimeRange {
    fn extend(&mut self, began: Instant, ended: Instant) {
        let (first, last) = self.0.unwrap_or((began, ended));
        self.0 = Some((first.min(began), last.max(ended)));
    }

    fn length_us(self) -> u64 {
        self.0.map_or(0, |(first, last)| (last - first).as_micros() as u64)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct TableTotals {
    rows: u64,
    bytes: u64,
    storing: TimeRange,
    indexing: TimeRange,
}

#[derive(Debug, Default)]
pub(super) struct LoadTotals {
    tables: BTreeMap<u32, TableTotals>,
    rows: u64,
    storing: TimeRange,
    indexing: TimeRange,
    retries: u64,
}

impl LoadTotals {
    pub(super) fn add_rows(&mut self, stored: StoredRows) {
        let table = self.tables.entry(stored.table).or_default();
        table.rows += stored.rows;
        self.rows += stored.rows;
        table.bytes += stored.bytes;
        table.storing.extend(stored.began, stored.ended);
        self.storing.extend(stored.began, stored.ended);
        self.retries += stored.retries;
    }

    pub(super) fn add_index(&mut self, IndexBuild { table, began, ended }: IndexBuild) {
        self.tables.entry(table).or_default().indexing.extend(began, ended);
        self.indexing.extend(began, ended);
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn record(
        &self,
        tables: &impl Tables,
        way: LoadingWay,
        streams: u32,
        analyze: Duration,
    ) -> Loaded {
        let indexed = |span: TimeRange| if tables.has_index() { span.length_us() } else { 0 };
        Loaded {
            way,
            streams,
            rows: self.rows(),
            bytes: self.tables.values().map(|table| table.bytes).sum(),
            rows_us: self.storing.length_us(),
            index_us: indexed(self.indexing),
            analyze_us: analyze.as_micros() as u64,
            after_us: 0,
            retries: self.retries,
            session_settings: BTreeMap::new(),
            tables: self
                .tables
                .iter()
                .map(|(&number, table)| LoadedTable {
                    table: tables.name(number),
                    rows: table.rows,
                    bytes: table.bytes,
                    rows_us: table.storing.length_us(),
                    index_us: indexed(table.indexing),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_schema::plan::OltpOptions;
    use dbdyno_workload::schema::Schema;

    use super::*;

    #[test]
    fn overlapping_times_count_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let stored = |table, began, ended| StoredRows {
            table,
            rows: 10,
            bytes: 1900,
            retries: 1,
            began: at(began),
            ended: at(ended),
        };
        let mut totals = LoadTotals::default();
        for one in [stored(1, 0, 30), stored(2, 10, 40), stored(1, 30, 35)] {
            totals.add_rows(one);
        }
        totals.add_index(IndexBuild { table: 1, began: at(50), ended: at(57) });
        totals.add_index(IndexBuild { table: 2, began: at(51), ended: at(60) });
        let schema = Schema::new(&OltpOptions { tables: 2, ..Default::default() }, 1);
        let loaded = totals.record(&schema, LoadingWay::Insert, 2, Duration::from_millis(3));
        assert_eq!((loaded.rows, loaded.bytes, loaded.retries), (30, 5700, 3));
        assert_eq!((loaded.rows_us, loaded.index_us, loaded.analyze_us), (40_000, 10_000, 3_000));
        let tables: Vec<_> =
            loaded.tables.iter().map(|table| (table.rows, table.rows_us, table.index_us)).collect();
        assert_eq!(tables, [(20, 35_000, 7_000), (10, 30_000, 9_000)]);
    }
}
