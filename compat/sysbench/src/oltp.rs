//! The options of the bundled database workloads. The names and defaults are sysbench's, the descriptions dbdyno's.

use crate::option_definition::{Kind, OptionDefinition};
use dbdyno_schema::plan::{OltpOptions, WorkloadName};

use super::Compat;
use super::registry::Registry;

/// The engine's native workloads by the names of sysbench's scripts.
pub const NATIVE: [(&str, WorkloadName); 11] = [
    ("bulk_insert", WorkloadName::BulkInsert),
    ("oltp_delete", WorkloadName::OltpDelete),
    ("oltp_insert", WorkloadName::OltpInsert),
    ("oltp_point_select", WorkloadName::OltpPointSelect),
    ("oltp_read_only", WorkloadName::OltpReadOnly),
    ("oltp_read_write", WorkloadName::OltpReadWrite),
    ("oltp_update_index", WorkloadName::OltpUpdateIndex),
    ("oltp_update_non_index", WorkloadName::OltpUpdateNonIndex),
    ("oltp_write_only", WorkloadName::OltpWriteOnly),
    ("select_random_points", WorkloadName::SelectRandomPoints),
    ("select_random_ranges", WorkloadName::SelectRandomRanges),
];

const BOOLEANS: [(&str, &str, &str); 5] = [
    ("auto_inc", "on", "Let the server number the rows"),
    ("create_secondary", "on", "Create an index on k after loading"),
    ("range_selects", "on", "Run the four kinds of range SELECT"),
    ("secondary", "off", "Index id by a secondary key instead of the primary key"),
    ("skip_trx", "off", "Leave out BEGIN and COMMIT"),
];
const NUMBERS: [(&str, &str, &str); 11] = [
    ("delete_inserts", "1", "Pairs of DELETE and INSERT in a transaction"),
    ("distinct_ranges", "1", "SELECT DISTINCT over a range in a transaction"),
    ("index_updates", "1", "UPDATE of the indexed column in a transaction"),
    ("non_index_updates", "1", "UPDATE of a column without index in a transaction"),
    ("order_ranges", "1", "SELECT ORDER BY over a range in a transaction"),
    ("point_selects", "10", "SELECT by id in a transaction"),
    ("range_size", "100", "Rows of a range"),
    ("simple_ranges", "1", "Plain SELECT over a range in a transaction"),
    ("sum_ranges", "1", "SELECT SUM() over a range in a transaction"),
    ("table_size", "10000", "Rows of a table"),
    ("tables", "1", "Tables"),
];
const STRINGS: [(&str, Option<&str>, &str); 2] = [
    ("mysql_storage_engine", Some("innodb"), "Storage engine of MySQL's tables"),
    ("pgsql_variant", None, "No effect, as in sysbench"),
];

/// A workload's options, sorted by name as in sysbench's `help`.
pub fn option_definitions(workload: WorkloadName, compat: Compat) -> Vec<OptionDefinition> {
    if workload == WorkloadName::BulkInsert {
        return Vec::new();
    }
    let booleans =
        BOOLEANS.map(|(name, default, help)| OptionDefinition::new(name, Kind::Bool, Some(default), help));
    let numbers =
        NUMBERS.map(|(name, default, help)| OptionDefinition::new(name, Kind::Double, Some(default), help));
    let strings =
        STRINGS.map(|(name, default, help)| OptionDefinition::new(name, Kind::String, default, help));
    let mut all: Vec<_> = booleans.into_iter().chain(numbers).chain(strings).collect();
    let number = |name, default, help| OptionDefinition::new(name, Kind::Double, Some(default), help);
    if compat == Compat::V1_1 {
        let text = "Options appended to CREATE TABLE";
        all.push(OptionDefinition::new("create_table_options", Kind::String, Some(""), text));
        all.push(number("reconnect", "0", "Events between two reconnects; 0 for never"));
    }
    match workload {
        WorkloadName::SelectRandomPoints => {
            all.push(number("random_points", "10", "Values of k in a query"));
        }
        WorkloadName::SelectRandomRanges => {
            all.push(number("number_of_ranges", "10", "Ranges of k in a query"));
            all.push(number("delta", "5", "Width of such a range"));
        }
        _ => {}
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// Number of events between two reconnects, an option of 1.1. As in sysbench, `select_random_*` accept and ignore it.
pub fn reconnect_every(workload: WorkloadName, registry: &Registry) -> u32 {
    match workload {
        WorkloadName::SelectRandomPoints | WorkloadName::SelectRandomRanges | WorkloadName::BulkInsert => 0,
        _ => registry.double("reconnect").max(0.0) as u32,
    }
}

pub fn options(registry: &Registry) -> OltpOptions {
    let defaults = OltpOptions::default();
    let integer = |name: &str| registry.double(name).clamp(0.0, u32::MAX.into()) as u32;
    let optional = |name: &str, default: u32| registry.kind(name).map_or(default, |_| integer(name));
    OltpOptions {
        tables: integer("tables"),
        table_size: registry.double("table_size").max(0.0) as u64,
        range_size: registry.double("range_size").max(0.0) as u64,
        point_selects: integer("point_selects"),
        simple_ranges: integer("simple_ranges"),
        sum_ranges: integer("sum_ranges"),
        order_ranges: integer("order_ranges"),
        distinct_ranges: integer("distinct_ranges"),
        index_updates: integer("index_updates"),
        non_index_updates: integer("non_index_updates"),
        delete_inserts: integer("delete_inserts"),
        random_points: optional("random_points", defaults.random_points),
        number_of_ranges: optional("number_of_ranges", defaults.number_of_ranges),
        delta: optional("delta", defaults.delta),
        range_selects: registry.bool("range_selects"),
        auto_inc: registry.bool("auto_inc"),
        skip_trx: registry.bool("skip_trx"),
        secondary: registry.bool("secondary"),
        create_secondary: registry.bool("create_secondary"),
        mysql_storage_engine: registry.string("mysql_storage_engine").unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_defaults_equal_plan_defaults() {
        let mut registry = Registry::new(Compat::V1_0);
        option_definitions(WorkloadName::SelectRandomRanges, Compat::V1_0)
            .into_iter()
            .for_each(|option| registry.declare(option));
        assert_eq!(options(&registry), OltpOptions::default());
        registry.set("table-size", Some("1M")).unwrap();
        registry.set("skip_trx", None).unwrap();
        let read = options(&registry);
        assert_eq!((read.table_size, read.skip_trx), (1 << 20, true));
    }

    #[test]
    fn version_1_1_declares_more_options() {
        let names = |workload, compat| -> Vec<String> {
            option_definitions(workload, compat).into_iter().map(|option| option.name).collect()
        };
        let newer = names(WorkloadName::OltpReadWrite, Compat::V1_1);
        assert!(newer.is_sorted(), "{newer:?}");
        assert_eq!(newer.len(), names(WorkloadName::OltpReadWrite, Compat::V1_0).len() + 2);
        assert!(names(WorkloadName::BulkInsert, Compat::V1_1).is_empty());
        let every = |workload| {
            let mut registry = Registry::new(Compat::V1_1);
            option_definitions(workload, Compat::V1_1)
                .into_iter()
                .for_each(|option| registry.declare(option));
            registry.set("reconnect", Some("5")).unwrap();
            reconnect_every(workload, &registry)
        };
        assert_eq!((every(WorkloadName::OltpInsert), every(WorkloadName::SelectRandomPoints)), (5, 0));
    }
}
