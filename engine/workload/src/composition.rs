//! The number of statements of each kind in a transaction of each workload, in sysbench's order.

use dbdyno_schema::plan::{OltpOptions, WorkloadName};

use crate::kind::Kind;

/// A statement kind of a transaction, and how often it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindCount {
    pub(crate) kind: Kind,
    /// Statements of this kind in every transaction; 0 if only some transactions send it.
    pub(crate) per_event: u32,
    /// Number of rows that each execution returns or changes; `None` if unknown.
    pub(crate) rows: Option<u64>,
}

/// The statements of one transaction.
pub(crate) fn composition(name: WorkloadName, options: &OltpOptions) -> Vec<KindCount> {
    use WorkloadName::{
        OltpDelete, OltpInsert, OltpPointSelect, OltpReadOnly, OltpReadWrite, OltpUpdateIndex,
        OltpUpdateNonIndex, OltpWriteOnly, SelectRandomPoints, SelectRandomRanges,
    };
    let among = |names: &[WorkloadName], times: u32| if names.contains(&name) { times } else { 0 };
    let read = [OltpReadOnly, OltpReadWrite].as_slice();
    let write = [OltpWriteOnly, OltpReadWrite].as_slice();
    let transaction = among(&[OltpReadOnly, OltpReadWrite, OltpWriteOnly], u32::from(!options.skip_trx));
    let range = |times| if options.range_selects { among(read, times) } else { 0 };
    if name == WorkloadName::BulkInsert {
        return vec![KindCount { kind: Kind::BulkInsert, per_event: 0, rows: None }];
    }
    [
        (Kind::Begin, transaction),
        (Kind::PointSelect, among(&[OltpPointSelect], 1) + among(read, options.point_selects)),
        (Kind::SimpleRange, range(options.simple_ranges)),
        (Kind::SumRange, range(options.sum_ranges)),
        (Kind::OrderRange, range(options.order_ranges)),
        (Kind::DistinctRange, range(options.distinct_ranges)),
        (Kind::IndexUpdate, among(&[OltpUpdateIndex, OltpReadWrite, OltpWriteOnly], options.index_updates)),
        (
            Kind::NonIndexUpdate,
            among(&[OltpUpdateNonIndex, OltpReadWrite, OltpWriteOnly], options.non_index_updates),
        ),
        (Kind::Delete, among(&[OltpDelete], 1) + among(write, options.delete_inserts)),
        (Kind::Insert, among(write, options.delete_inserts)),
        (Kind::NewRow, among(&[OltpInsert], 1)),
        (Kind::RandomPoints, among(&[SelectRandomPoints], 1)),
        (Kind::RandomRanges, among(&[SelectRandomRanges], 1)),
        (Kind::Commit, transaction),
    ]
    .into_iter()
    .filter(|&(_, per_event)| per_event > 0)
    .map(|(kind, per_event)| KindCount { kind, per_event, rows: kind.rows(name, options) })
    .collect()
}
