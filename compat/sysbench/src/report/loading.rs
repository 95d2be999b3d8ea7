//! The lines that `prepare`, `prewarm` and `cleanup` print when each step begins, at every log level.

use dbdyno_schema::record::{Loading, LoadingStep};

use super::super::Compat;

/// The line of a step; `None` if sysbench prints none.
pub fn line(loading: &Loading, rows_each: u64, compat: Compat) -> Option<String> {
    let table = &loading.table;
    match loading.step {
        LoadingStep::Creating => Some(format!("Creating table '{table}'...\n")),
        LoadingStep::Filling if rows_each > 0 => {
            Some(format!("Inserting {rows_each} records into '{table}'\n"))
        }
        LoadingStep::Indexing => Some(format!("Creating a secondary index on '{table}'...\n")),
        LoadingStep::Dropping => Some(format!("Dropping table '{table}'...\n")),
        LoadingStep::Prewarming => Some(match compat {
            Compat::V1_0 => format!("Prewarming table {table}\n"),
            Compat::V1_1 => format!("Preloading table {table}\n"),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_steps_have_lines() {
        let line_of = |step, rows| {
            let loading = Loading { step, table: "sbtest1".into(), rows: 0, rows_planned: rows, at_us: 0 };
            line(&loading, rows, Compat::V1_0)
        };
        assert_eq!(line_of(LoadingStep::Creating, 5).as_deref(), Some("Creating table 'sbtest1'...\n"));
        assert_eq!(line_of(LoadingStep::Filling, 5).as_deref(), Some("Inserting 5 records into 'sbtest1'\n"));
        assert_eq!(line_of(LoadingStep::Filling, 0), None);
        assert_eq!(line_of(LoadingStep::Rows, 5), None);
    }
}
