//! Which kinds of statement a transaction of each workload holds, and how often; the order is sysbench's.

use dbdyno_schema::plan::{OltpOptions, WorkloadName};

use crate::kind::Kind;

/// Times a kind stands in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The kind.
    pub kind: Kind,
    /// How often; 0 where only some events send it.
    pub per_event: u32,
}

/// What one transaction holds.
pub(crate) fn shares(name: WorkloadName, options: &OltpOptions) -> Vec<Share> {
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
        return vec![Share { kind: Kind::BulkInsert, per_event: 0 }]; // Sent by few of many events.
    }
    [
        (Kind::Begin, transaction),
        (Kind::Point, among(&[OltpPointSelect], 1) + among(read, options.point_selects)),
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
    .map(|(kind, per_event)| Share { kind, per_event })
    .collect()
}
