//! The output of `describe`, derived from the plan and the log that it replays, without opening connections or files.

use std::collections::BTreeMap;
use std::sync::Arc;

use dbdyno_schema::description::{Description, TableGroup};
use dbdyno_schema::plan::{Plan, WorkloadName, limits};
use dbdyno_schema::record::ErrorClass;
use dbdyno_wire::{mysql, postgres};

use crate::generated::GeneratedTables;
use crate::kind::Dialect;
use crate::new_ids::NewRowIds;
use crate::program::{Contents, Program};
use crate::replay::Recording;
use crate::schema::Schema;

/// The description of a plan that has no errors, and of the log that it replays. The statements of a script are known only
/// during a run, so they are missing.
pub fn describe(plan: &Plan, recording: Option<Arc<Recording>>) -> Description {
    let mut description = Description {
        schema: 1,
        engine: env!("CARGO_PKG_VERSION").into(),
        statements: Vec::new(),
        recorded: recording.iter().flat_map(|recording| recording.recorded().to_vec()).collect(),
        prepared_per_connection: 0,
        tables: tables(plan),
        limits: limits::by_name(),
        error_classes: match Dialect::from_target(&plan.target) {
            Dialect::Mysql => error_classes(&mysql::errors::CLASSES),
            Dialect::Postgresql => error_classes(&postgres::errors::CLASSES),
        },
    };
    if plan.workload.name != WorkloadName::Lua {
        let program =
            Program::from_plan(plan, &Contents { recording, ..Contents::default() }, NewRowIds::default());
        description.statements = match &program {
            Program::Oltp(oltp) => oltp.describe_statements(),
            Program::Sql(sql) => sql.describe_statements(plan),
            Program::Replay(_) => Vec::new(),
        };
        let prepared = program.statements().iter().filter(|statement| statement.prepared).count();
        description.prepared_per_connection = prepared as u64;
    }
    description
}

fn error_classes<T: ToString>(classes: &[(ErrorClass, &[T])]) -> BTreeMap<String, ErrorClass> {
    let pair = |&(class, codes): &(ErrorClass, &[T])| {
        codes.iter().map(move |code| (code.to_string(), class)).collect::<Vec<_>>()
    };
    classes.iter().flat_map(pair).collect()
}

fn tables(plan: &Plan) -> Vec<TableGroup> {
    match plan.workload.name {
        WorkloadName::Lua => Vec::new(),
        WorkloadName::Sql => GeneratedTables::from_plan(plan).describe(),
        _ => vec![Schema::from_plan(plan).describe()],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn describe(workload: serde_json::Value) -> Description {
        let plan = json!({
            "schema": 1, "target": {"protocol": "null"}, "workload": workload,
            "load": {"connections": 2}, "phases": {"measure_us": 1}, "seed": 1
        });
        super::describe(&serde_json::from_value(plan).unwrap(), None)
    }

    #[test]
    fn the_oltp_family_is_described_by_kind() {
        let described =
            describe(json!({"name": "oltp_read_write", "options": {"tables": 5, "table_size": 50}}));
        assert_eq!(described.prepared_per_connection, 9 * 5 + 2);
        let find = |kind: &str| described.statements.iter().find(|one| one.kind == kind).unwrap();
        assert_eq!((find("point_select").per_transaction, find("point_select").rows), (10, Some(1)));
        assert_eq!((find("simple_range").parameters.len(), find("simple_range").rows), (2, Some(50)));
        let [group] = &described.tables[..] else { panic!("{:?}", described.tables) };
        assert_eq!((group.names.len(), group.names[4].as_str(), group.rows), (5, "sbtest5", 50));
    }

    #[test]
    fn own_sql_is_described_statement_by_statement() {
        let described = describe(json!({"name": "sql", "sql": {
            "parameters": {"a": {"sequence": {}}, "b": {"result": {"statement": "first"}}},
            "transactions": [{"name": "t", "statements": [
                {"sql": "SELECT x FROM t WHERE a=:a", "name": "first", "rows": 1},
                {"sql": "UPDATE t SET x=:b", "repeat": 3},
                {"sql": "UPDATE t SET x=:b"}
            ]}],
            "tables": [{"name": "t", "rows": 7, "columns": [{"name": "a", "values": {"sequence": {}}}]}]
        }}));
        let summary = |one: &dbdyno_schema::description::StatementDescription| {
            (one.kind.clone(), one.per_transaction, one.prepared, one.rows)
        };
        assert_eq!(
            described.statements.iter().map(summary).collect::<Vec<_>>(),
            [
                // A statement whose result another one uses is sent as text.
                ("first".into(), 1, false, Some(1)),
                ("t.2".into(), 3, true, None),
                ("t.3".into(), 1, true, None),
            ]
        );
        assert_eq!(described.prepared_per_connection, 1);
        assert_eq!((described.tables[0].rows, described.tables[0].columns.len()), (7, 1));
    }
}
