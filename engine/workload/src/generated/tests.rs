//! Tests of generated rows: values follow their distributions, and every encoding has the same rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

fn generated(protocol: &str, tables: &Value, seed: u64) -> GeneratedTables {
    let mut plan = json!({
        "schema": 1, "target": {"protocol": protocol, "endpoints": [], "user": "u", "database": "d"},
        "workload": {"name": "sql", "sql": {"tables": tables, "transactions": [{"statements": [{"sql": "DO 1"}]}]}},
        "load": {"connections": 3}, "phases": {"measure_us": 0}, "seed": seed
    });
    if protocol == "null" {
        plan["target"] = json!({"protocol": "null"});
    }
    let plan: Plan = serde_json::from_value(plan).unwrap();
    let problems: Vec<String> =
        plan.problems().into_iter().filter(|problem| problem.contains("tables")).collect();
    assert_eq!(problems, [""; 0]);
    GeneratedTables::from_plan(&plan)
}

/// The encoded fields of all rows of a table.
fn lines(generated: &GeneratedTables, table: u32) -> Vec<Vec<String>> {
    let text = bulk(generated, table, 1, generated.rows(table), 64 * 1024);
    text.lines().map(|line| line.split('\t').map(Into::into).collect()).collect()
}

fn bulk(generated: &GeneratedTables, table: u32, first: u64, last: u64, bytes: usize) -> String {
    let (mut rows, mut out) = (generated.rows_from(table, first, last), Vec::new());
    while rows.write_bulk(&mut out, bytes) {}
    String::from_utf8(out).unwrap()
}

fn column_values(rows: u64, values: Value) -> Vec<String> {
    let tables = json!([{"name": "t", "rows": rows, "columns": [{"name": "a", "values": values}]}]);
    lines(&generated("mysql", &tables, 7), 1).into_iter().map(|mut row| row.remove(0)).collect()
}

/// Chi-square of counted values against their exact probabilities; the bound is the 99.99 % point by Wilson and Hilferty
/// (1931). Every value must be in `probabilities`.
fn assert_fits(values: &[String], probabilities: &[(String, f64)]) {
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    values.iter().for_each(|value| *counts.entry(value).or_default() += 1.0);
    let total: f64 = probabilities.iter().map(|(_, probability)| probability).sum();
    assert!((total - 1.0).abs() < 1e-9);
    let chi_square: f64 = probabilities
        .iter()
        .map(|(value, probability)| {
            let expected = probability * values.len() as f64;
            assert!(expected >= 5.0, "{value} is expected {expected} times: draw more");
            (counts.remove(value.as_str()).unwrap_or(0.0) - expected).powi(2) / expected
        })
        .sum();
    assert!(counts.is_empty(), "{counts:?}");
    let freedom = (probabilities.len() - 1) as f64;
    let ninth = 2.0 / (9.0 * freedom);
    let bound = freedom * (1.0 - ninth + 3.719 * ninth.sqrt()).powi(3);
    assert!(chi_square < bound, "chi-square {chi_square:.1}, bound {bound:.1}");
}

fn equal_probabilities(values: impl IntoIterator<Item = String>) -> Vec<(String, f64)> {
    let values: Vec<String> = values.into_iter().collect();
    let each = 1.0 / values.len() as f64;
    values.into_iter().map(|value| (value, each)).collect()
}

const ROWS: u64 = 60_000;

#[test]
fn numbers_fit_their_distributions() {
    let integers = column_values(ROWS, json!({"integer": {"low": -3, "high": 16}}));
    assert_fits(&integers, &equal_probabilities((-3..=16).map(|number| number.to_string())));
    let hot = column_values(
        ROWS,
        json!({"integer": {"low": 10, "high": 59, "distribution": {"zipfian": {"exponent": 0.9}}}}),
    );
    let weight = |rank: i32| f64::from(rank).powf(-0.9);
    let total: f64 = (1..=50).map(weight).sum();
    let zipf: Vec<_> = (1..=50).map(|rank| ((rank + 9).to_string(), weight(rank) / total)).collect();
    assert_fits(&hot, &zipf);
    let decimals = column_values(ROWS, json!({"decimal": {"low": -0.05, "high": 0.1, "scale": 2}}));
    let hundredths = |units: i32| format!("{}{}.{:02}", if units < 0 { "-" } else { "" }, 0, units.abs());
    assert_fits(&decimals, &equal_probabilities((-5..=10).map(hundredths)));
}

#[test]
fn texts_fit_their_alphabet_and_lengths() {
    let texts = column_values(ROWS, json!({"text": {"length": {"low": 0, "high": 2}, "alphabet": "ab"}}));
    let third = 1.0 / 3.0;
    let mut expected = vec![(String::new(), third)];
    expected.extend(["a", "b"].map(|text| (text.into(), third / 2.0)));
    expected.extend(["aa", "ab", "ba", "bb"].map(|text| (text.into(), third / 4.0)));
    assert_fits(&texts, &expected);
}

#[test]
fn times_fit_their_range_and_order() {
    let days = column_values(ROWS, json!({"date": {"from": "2023-12-30", "to": "2024-01-02"}}));
    assert_fits(
        &days,
        &equal_probabilities(["2023-12-30", "2023-12-31", "2024-01-01", "2024-01-02"].map(Into::into)),
    );
    let halves = column_values(
        ROWS,
        json!({"timestamp": {"from": "1969-12-31 23:59:59.8", "to": "1970-01-01 00:00:00.1", "digits": 1}}),
    );
    let expected =
        ["1969-12-31 23:59:59.8", "1969-12-31 23:59:59.9", "1970-01-01 00:00:00.0", "1970-01-01 00:00:00.1"];
    assert_fits(&halves, &equal_probabilities(expected.map(Into::into)));
    let rising =
        column_values(5, json!({"timestamp": {"from": "2024-02-28", "to": "2024-03-01", "order": "rising"}}));
    let expected = ["02-28 00:00:00", "02-28 12:00:00", "02-29 00:00:00", "02-29 12:00:00", "03-01 00:00:00"];
    assert_eq!(rising, expected.map(|rest| format!("2024-{rest}")));
    assert_eq!(
        column_values(1, json!({"date": {"from": "2024-02-29", "to": "2025-01-01", "order": "rising"}})),
        ["2024-02-29"]
    );
}

#[test]
fn choices_fit_their_weights() {
    let chosen =
        column_values(ROWS, json!({"one_of": {"values": ["a", 1, null, 2.5], "weights": [1, 2, 3, 4]}}));
    let expected = [("a", 0.1), ("1", 0.2), ("\\N", 0.3), ("2.5", 0.4)];
    assert_fits(&chosen, &expected.map(|(value, share)| (value.into(), share)));
    assert_eq!(column_values(3, json!({"constant": {"value": "a\tb"}})), ["a\\tb"; 3]);
    assert_eq!(column_values(4, json!({"sequence": {"first": 5, "step": -3}})), ["5", "2", "-1", "-4"]);
    let cyclic = json!({"sequence": {"first": 2, "step": 2_147_483_647, "last": 6}});
    assert_eq!(column_values(6, cyclic), ["2", "4", "6", "3", "5", "2"]);
}

#[test]
fn foreign_keys_are_values_of_their_parents() {
    let tables = json!([
        {"name": "p", "rows": 8, "columns": [
            {"name": "id", "values": {"sequence": {"first": 100, "step": 10}}},
            {"name": "code", "values": {"text": {"length": 20}}}]},
        {"name": "c", "rows": ROWS, "columns": [
            {"name": "boss", "values": {"foreign_key": {"table": "c", "column": "id"}}, "nulls": 0.25},
            {"name": "id", "values": {"sequence": {}}},
            {"name": "p", "values": {"foreign_key": {"table": "p", "column": "id", "distribution": {"zipfian": {"exponent": 1.0}}}}},
            {"name": "code", "values": {"foreign_key": {"table": "p", "column": "code"}}}]}
    ]);
    let generated = generated("mysql", &tables, 1);
    let parents: Vec<String> = lines(&generated, 1).into_iter().map(|mut row| row.remove(1)).collect();
    let children = lines(&generated, 2);
    let column = |number: usize| children.iter().map(|row| row[number].clone()).collect::<Vec<_>>();
    let total: f64 = (1..=8).map(|rank| 1.0 / f64::from(rank)).sum();
    let zipf: Vec<_> =
        (1..=8).map(|rank| ((90 + 10 * rank).to_string(), 1.0 / f64::from(rank) / total)).collect();
    assert_fits(&column(2), &zipf);
    assert_fits(&column(3), &equal_probabilities(parents));
    let null = |value: &String| if value == "\\N" { "null".into() } else { "value".to_owned() };
    let nulls: Vec<String> = column(0).iter().map(null).collect();
    assert_fits(&nulls, &[("null".into(), 0.25), ("value".into(), 0.75)]);
    assert!(column(0).iter().all(|boss| boss == "\\N" || (1..=ROWS).contains(&boss.parse().unwrap())));
}

/// A table with one column of every kind.
fn all_kinds() -> Value {
    json!([{"name": "t", "rows": 3000, "columns": [
        {"name": "id", "values": {"sequence": {}}},
        {"name": "n", "values": {"integer": {"high": 1000}}, "nulls": 0.5},
        {"name": "d", "values": {"decimal": {"low": -1, "high": 1}}},
        {"name": "at", "values": {"timestamp": {"from": "2024-01-01", "to": "2024-12-31"}}},
        {"name": "w", "values": {"text": {"length": 5, "alphabet": "a'\\\t"}}},
        {"name": "o", "values": {"one_of": {"values": ["x", null]}}}]}])
}

#[test]
fn rows_do_not_depend_on_ranges_buffers_or_servers() {
    let mysql = generated("mysql", &all_kinds(), 1);
    let whole = bulk(&mysql, 1, 1, 3000, 1 << 20);
    assert_eq!(whole.matches('\n').count(), 3000);
    assert_eq!(bulk(&mysql, 1, 1, 17, 100) + &bulk(&mysql, 1, 18, 3000, 4096), whole);
    assert_eq!(bulk(&generated("postgresql", &all_kinds(), 1), 1, 1, 3000, 64 * 1024), whole);
    assert_ne!(bulk(&generated("mysql", &all_kinds(), 2), 1, 1, 3000, 1 << 20), whole);
    // An additional column does not change the values of the others.
    let alone =
        json!([{"name": "t", "rows": 9, "columns": [{"name": "n", "values": {"integer": {"high": 1000}}}]}]);
    let more = json!([{"name": "t", "rows": 9, "columns": [{"name": "m", "values": {"integer": {"high": 1000}}},
        {"name": "n", "values": {"integer": {"high": 1000}}}]}]);
    let [alone, more] = [alone, more].map(|tables| lines(&generated("mysql", &tables, 1), 1));
    assert!(alone.iter().zip(&more).all(|(alone, more)| alone[0] == more[1] && alone[0] != more[0]));
}

#[test]
fn a_row_never_changes() {
    // These values must never change: data that an older version loaded would not match the seed any more.
    let rows = lines(&generated("mysql", &all_kinds(), 1), 1);
    assert_eq!(rows[1].join("|"), "2|\\N|0.14|2024-11-23 19:08:32|'\\t\\taa|\\N");
}

#[test]
fn statements_name_tables_and_columns_in_quotes() {
    let tables = json!([{"name": "Order", "rows": 2, "columns": [
        {"name": "Key", "values": {"sequence": {}}}, {"name": "w", "values": {"constant": {"value": "it's \\"}}}]}]);
    let [mysql, postgresql] = ["mysql", "postgresql"].map(|protocol| generated(protocol, &tables, 1));
    assert!(
        mysql.load_sql(1).contains("INTO TABLE `Order` CHARACTER SET ascii FIELDS"),
        "{}",
        mysql.load_sql(1)
    );
    let wide =
        json!([{"name": "t", "rows": 2, "columns": [{"name": "a", "values": {"constant": {"value": "é"}}}]}]);
    assert!(generated("mysql", &wide, 1).load_sql(1).contains("INTO TABLE `t` CHARACTER SET utf8mb4 FIELDS"));
    assert!(mysql.load_sql(1).ends_with("(`Key`, `w`)"));
    assert_eq!(postgresql.load_sql(1), "COPY \"order\" (\"key\", \"w\") FROM STDIN");
    let insert = |generated: &GeneratedTables| {
        let mut out = generated.insert_sql(1).0.into_bytes();
        assert_eq!(generated.rows_from(1, 1, 2).write_values(&mut out, true), 2);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        insert(&mysql),
        "INSERT INTO `Order` (`Key`, `w`) VALUES(1,_utf8mb4 x'69742773205c'),(2,_utf8mb4 x'69742773205c')"
    );
    assert_eq!(
        insert(&postgresql),
        "INSERT INTO \"order\" (\"key\", \"w\") VALUES(1,E'it''s \\\\'),(2,E'it''s \\\\')"
    );
}

#[test]
fn long_rows_reduce_the_rows_per_statement() {
    let text = |length: u32, rows: u64| {
        let tables = json!([{"name": "t", "rows": rows, "columns": [{"name": "a", "values": {"text": {"length": length}}}]}]);
        generated("mysql", &tables, 1)
    };
    assert_eq!(text(1_000_000, 100).statement_rows(1), 10);
    assert_eq!(text(99, 1000).statement_rows(1), (10 << 20) / 100);
    let (mut rows, mut sql) = (text(1_000_000, 3).rows_from(1, 1, 3), Vec::new());
    assert_eq!(rows.write_values(&mut sql, true), 1); // A single row may exceed INSERT_BYTES.
}

#[test]
fn marks_follow_the_users_comment() {
    let [tables, others] = [1, 2].map(|seed| generated("mysql", &all_kinds(), seed));
    let comment = |sql: String| sql.split_once(" = '").unwrap().1.trim_end_matches('\'').to_owned();
    let filling = comment(tables.set_mark(1, "the user's", false));
    assert!(filling.starts_with("the user''s dbdyno loading table="), "{filling}");
    assert_eq!(tables.state(1, &filling), TableState::Unfinished);
    for foreign in ["dbdyno loading", "dbdyno loading table=00000000"] {
        assert!(matches!(tables.state(1, foreign), TableState::Other(_)), "{foreign}");
    }
    assert_eq!(tables.state(1, "dbdyno v1 setup table=00000000"), TableState::Unmarked);
    let complete = comment(tables.set_mark(1, "the users dbdyno loading", true));
    assert!(complete.starts_with("the users dbdyno v1 generated seed=1 rows=3000 columns="), "{complete}");
    assert_eq!(tables.state(1, &complete), TableState::Complete);
    let (earlier, _) = complete.split_once(" table=").unwrap();
    assert_eq!(tables.state(1, earlier), TableState::Complete);
    assert!(matches!(tables.state(1, &format!("{earlier} table=00000000")), TableState::Other(_)));
    assert!(matches!(others.state(1, &complete), TableState::Other(_)));
    assert_eq!(tables.state(1, "dbdyno is a word of the user's"), TableState::Unmarked);
    assert_eq!(comment(tables.set_mark(1, &complete, true)), complete);
}

#[test]
fn the_mark_depends_on_parent_tables() {
    let mark = |rows: u64, step: u64| {
        let tables = json!([
            {"name": "p", "rows": rows, "columns": [{"name": "id", "values": {"sequence": {"step": step}}}]},
            {"name": "c", "rows": 5, "columns": [
                {"name": "p", "values": {"foreign_key": {"table": "p", "column": "id"}}}]}
        ]);
        generated("mysql", &tables, 1).specification(2)
    };
    assert_ne!(mark(10, 1), mark(11, 1));
    assert_ne!(mark(10, 1), mark(10, 2));
    assert_eq!(mark(10, 1), mark(10, 1));
}

#[test]
fn cycles_and_shuffles_repeat_their_range() {
    assert_eq!(
        column_values(9, json!({"cycle": {"low": 4, "high": 6, "every": 2}})),
        ["4", "4", "5", "5", "6", "6", "4", "4", "5"]
    );
    let shuffled = column_values(3000, json!({"shuffle": {"low": 1, "high": 1000, "of": 1000}}));
    let runs: Vec<Vec<i64>> =
        shuffled.chunks(1000).map(|run| run.iter().map(|value| value.parse().unwrap()).collect()).collect();
    for run in &runs {
        let mut sorted = run.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(1..=1000));
    }
    assert!(runs[0] != runs[1] && runs[1] != runs[2] && !runs[0].is_sorted());
    // 300 = 27 x 11 + 3: the middle values 9 to 11 occur once more, so that the mean is that of the range.
    let counts = column_values(300, json!({"shuffle": {"low": 5, "high": 15, "of": 300}}));
    for value in 5..=15 {
        let expected = if (9..=11).contains(&value) { 28 } else { 27 };
        assert_eq!(counts.iter().filter(|one| **one == value.to_string()).count(), expected, "{value}");
    }
    for rows in 11..40 {
        let counts = column_values(rows, json!({"shuffle": {"low": 5, "high": 15, "of": rows}}));
        let sum: u64 = counts.iter().map(|count| count.parse::<u64>().unwrap()).sum();
        assert_eq!(sum, 10 * rows, "{rows}");
    }
}

#[test]
fn words_write_numbers() {
    let words =
        json!({"words": {"words": ["BAR", "OUGHT", "ABLE"], "numbers": {"cycle": {"low": 0, "high": 10}}}});
    assert_eq!(
        column_values(5, words),
        ["BARBARBAR", "BARBAROUGHT", "BARBARABLE", "BAROUGHTBAR", "BAROUGHTOUGHT"]
    );
}

#[test]
fn texts_can_contain_a_word_and_a_suffix() {
    let texts = column_values(
        10_000,
        json!({"text": {"length": {"low": 8, "high": 9}, "alphabet": "ab", "word": {"text": "WORD", "share": 0.1}, "suffix": "11"}}),
    );
    let with_word = texts.iter().filter(|text| text.contains("WORD"));
    let places: std::collections::BTreeSet<usize> =
        with_word.clone().filter_map(|text| text.find("WORD")).collect();
    // Four standard deviations of 10,000 draws with the probability 0.1 are 120.
    assert!(with_word.count().abs_diff(1000) <= 120);
    assert!(places.into_iter().eq(0..=5));
    assert!(texts.iter().all(|text| text.ends_with("11") && (10..=11).contains(&text.len())));
}

fn orders_and_lines(rows: u64) -> Value {
    json!([
        {"name": "orders", "rows": 500, "columns": [
            {"name": "id", "values": {"cycle": {"high": 100}}},
            {"name": "lines", "values": {"shuffle": {"low": 0, "high": 4, "of": 100}}},
            {"name": "carrier", "values": {"below": {"column": "id", "bound": 71, "then": {"constant": {"value": 1}},
                "otherwise": {"one_of": {"values": [null]}}}}},
            {"name": "at", "values": {"timestamp": {"from": "2024-01-01", "to": "2024-12-31"}}}]},
        {"name": "line", "rows": rows, "parent": {"table": "orders", "rows": "lines"}, "columns": [
            {"name": "paid", "values": {"below": {"column": "id", "bound": 71, "then": {"parent": {"column": "at"}},
                "otherwise": {"one_of": {"values": [null]}}}}},
            {"name": "id", "values": {"parent": {"column": "id"}}},
            {"name": "number", "values": {"child_number": {}}}]},
        {"name": "note", "rows": 200, "columns": [
            {"name": "line", "values": {"foreign_key": {"table": "line", "column": "number"}}}]}
    ])
}

#[test]
fn every_row_of_a_parent_has_its_rows() {
    let generated = generated("mysql", &orders_and_lines(1000), 3);
    assert_eq!(generated.problems(), [""; 0]);
    let mut children = lines(&generated, 2).into_iter();
    for parent in lines(&generated, 1) {
        let is_below = parent[0].parse::<i64>().unwrap() < 71;
        assert_eq!(parent[2], if is_below { "1" } else { "\\N" });
        for number in 1..=parent[1].parse().unwrap() {
            let child = children.next().unwrap();
            assert_eq!((&child[1], &child[2]), (&parent[0], &number.to_string()));
            assert_eq!(child[0], if is_below { &*parent[3] } else { "\\N" });
        }
    }
    assert_eq!(children.next(), None);
    assert!(lines(&generated, 3).iter().all(|note| ["1", "2", "3", "4"].contains(&&*note[0])));
    assert_eq!(
        bulk(&generated, 2, 400, 410, 100),
        bulk(&generated, 2, 1, 410, 4096).split_inclusive('\n').skip(399).collect::<String>()
    );
}

#[test]
fn rows_that_do_not_fit_the_parent_are_a_problem() {
    let problems = generated("mysql", &orders_and_lines(999), 3).problems();
    assert_eq!(
        problems,
        ["workload.sql.tables: line has 999 rows, but orders.lines adds up to 1000; set rows to 1000"]
    );
    let mark = |low: u64| {
        let mut tables = orders_and_lines(1000);
        tables[0]["columns"][0]["values"]["cycle"]["low"] = low.into();
        generated("mysql", &tables, 1).specification(2)
    };
    assert_ne!(mark(1), mark(2));
}
