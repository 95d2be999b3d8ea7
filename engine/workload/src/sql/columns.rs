//! Reads columns of CSV files before a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use dbdyno_schema::plan::{CsvSource, ParameterSource, SqlWorkload};
use dbdyno_wire::Value;

/// The values of each parameter that a CSV file provides, by the parameter's name.
pub type Columns = BTreeMap<String, Arc<[Value]>>;

/// Reads the columns of a workload's parameters. `text` returns the content of a file. An error contains all problems.
pub fn read(
    custom: &SqlWorkload,
    mut text: impl FnMut(&str) -> Result<String, String>,
) -> Result<Columns, Vec<String>> {
    let mut texts: BTreeMap<&CsvSource, Result<String, String>> = BTreeMap::new();
    let (mut columns, mut problems) = (Columns::new(), Vec::new());
    for (name, generator) in &custom.parameters {
        let ParameterSource::Csv { from, column, .. } = generator else { continue };
        let content = texts.entry(from).or_insert_with(|| match from {
            CsvSource::Path(path) => text(path).map_err(|error| format!("{path}: {error}")),
            CsvSource::Text(text) => Ok(text.clone()),
        });
        match content.as_ref().map_err(Clone::clone).and_then(|text| read_column(text, column)) {
            Ok(values) => {
                columns.insert(name.clone(), values);
            }
            Err(problem) => problems.push(format!("workload.sql.parameters.{name}: {problem}")),
        }
    }
    if problems.is_empty() { Ok(columns) } else { Err(problems) }
}

/// The values of one column, as integers if all of them are integers.
fn read_column(text: &str, column: &str) -> Result<Arc<[Value]>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| error.to_string())?.clone();
    let Some(position) = headers.iter().position(|header| header.trim() == column) else {
        let names: Vec<&str> = headers.iter().collect();
        return Err(format!("no column {column}; the columns are {}", names.join(", ")));
    };
    let mut values = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        values.push(record.get(position).unwrap_or_default().to_owned());
    }
    if values.is_empty() {
        return Err("no line follows the column names".into());
    }
    let integers: Option<Vec<i64>> = values.iter().map(|value| value.parse().ok()).collect();
    Ok(match integers {
        // "007" remains a string, because as an integer it would lose its zeros.
        Some(integers) if integers.iter().zip(&values).all(|(number, text)| number.to_string() == *text) => {
            integers.into_iter().map(Value::Int).collect()
        }
        _ => values.into_iter().map(|text| Value::Text(text.into_bytes())).collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn custom(parameters: serde_json::Value) -> SqlWorkload {
        serde_json::from_value(json!({"parameters": parameters, "transactions": []})).unwrap()
    }

    #[test]
    fn columns_of_integers_are_integers() {
        let text = "id,name,code\n1,\"a, b\",007\n-2,c,8\n";
        let custom = custom(json!({
            "i": {"csv": {"from": {"text": text}, "column": "id"}},
            "n": {"csv": {"from": {"path": "f"}, "column": "name"}},
            "c": {"csv": {"from": {"path": "f"}, "column": "code"}},
            "other": {"sequence": {}}
        }));
        let mut reads = 0;
        let columns = read(&custom, |path| {
            reads += 1;
            assert_eq!(path, "f");
            Ok(text.into())
        })
        .unwrap();
        assert_eq!(reads, 1);
        assert_eq!(*columns["i"], [Value::Int(1), Value::Int(-2)]);
        assert_eq!(*columns["n"], [Value::Text(b"a, b".to_vec()), Value::Text(b"c".to_vec())]);
        assert_eq!(*columns["c"], [Value::Text(b"007".to_vec()), Value::Text(b"8".to_vec())]);
    }

    #[test]
    fn an_error_lists_all_problems() {
        let custom = custom(json!({
            "a": {"csv": {"from": {"text": "x\n1\n"}, "column": "y"}},
            "b": {"csv": {"from": {"text": "x\n"}, "column": "x"}},
            "c": {"csv": {"from": {"path": "gone"}, "column": "x"}},
            "d": {"csv": {"from": {"text": "x,y\n1\n"}, "column": "y"}}
        }));
        let problems = read(&custom, |_| Err("No such file".into())).unwrap_err();
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert_eq!(problems[0], "workload.sql.parameters.a: no column y; the columns are x");
        assert!(problems[1].ends_with("no line follows the column names"));
        assert_eq!(problems[2], "workload.sql.parameters.c: gone: No such file");
    }
}
