//! Tests of compiled workloads: values, order, retries, counts.

use dbdyno_schema::Plan;
use dbdyno_schema::placeholders::Quoting;
use dbdyno_wire::Value;
use serde_json::json;

use super::columns;
use crate::{Event, Program, UserIndex};

fn plan(sql: &serde_json::Value, statements: &str) -> Plan {
    let plan: Plan = serde_json::from_value(json!({
        "schema": 1, "target": {"protocol": "null"}, "seed": 7,
        "workload": {"name": "sql", "statements": statements, "sql": sql},
        "load": {"connections": 2}, "phases": {"measure_us": 1_000_000}
    }))
    .unwrap();
    assert_eq!(plan.problems(), [""; 0]);
    plan
}

fn program(sql: &serde_json::Value, statements: &str) -> Program {
    let plan = plan(sql, statements);
    let columns = columns::read(plan.workload.custom_sql().unwrap(), |_| Err("none".into())).unwrap();
    Program::from_plan(&plan, &crate::Contents { columns, recording: None }, crate::NewRowIds::default())
}

/// Statements and parameters of the next transaction.
fn execute(program: &Program, event: &mut Event) -> Vec<(String, Vec<Value>)> {
    let statements = program.statements();
    let mut sent = Vec::new();
    event.restart();
    while let Some(call) = event.next(program) {
        sent.push((statements[call.statement].sql.clone(), call.values.clone()));
        if call.is_result_used {
            event.store_result(program, &[Some(b"17".to_vec()), None]);
        }
    }
    sent
}

fn user(program: &Program, index: u64) -> Event {
    program.events(UserIndex { global: index, users: 2 })
}

#[test]
fn a_parameter_keeps_its_value_unless_it_is_drawn_again() {
    let sql = json!({
        "parameters": {"id": {"integer": {"low": 1, "high": 1_000_000_000}}},
        "transactions": [{"statements": [
            {"sql": "SELECT :id"}, {"sql": "SELECT 1, :id"}, {"sql": "SELECT 2, :id", "draw": ["id"], "repeat": 2}
        ]}]
    });
    let program = program(&sql, "prepared");
    let mut event = user(&program, 0);
    let values: Vec<_> = execute(&program, &mut event).into_iter().map(|(_, values)| values).collect();
    assert_eq!(values[0], values[1]);
    assert!(values[1] != values[2] && values[2] != values[3]);
    assert_ne!(execute(&program, &mut event)[0].1, values[0]);
    assert_ne!(execute(&program, &mut user(&program, 1))[0].1, values[0]);
    let statements: Vec<_> = program.statements().into_iter().map(|statement| statement.sql).collect();
    assert_eq!(statements, ["SELECT ?", "SELECT 1, ?", "SELECT 2, ?"]);
    let kinds = program.describe();
    assert_eq!((kinds[2].kind.as_str(), kinds[2].per_event), ("transaction1.3", 2));
}

#[test]
fn a_restart_repeats_the_transaction_with_the_same_values() {
    let sql = json!({
        "parameters": {
            "id": {"integer": {"high": 1_000_000_000}}, "n": {"sequence": {"first": 10}}
        },
        "transactions": [
            {"statements": [{"sql": "A :id, :n"}, {"sql": "B :id", "draw": ["id"]}]},
            {"statements": [{"sql": "C :id, :n"}, {"sql": "D :id", "draw": ["id"]}]}
        ]
    });
    let program = program(&sql, "prepared");
    let mut event = user(&program, 1);
    let mut seen = 11;
    for _ in 0..20 {
        event.restart();
        let first = event.next(&program).unwrap().clone();
        event.next(&program).unwrap();
        let again = execute(&program, &mut event);
        assert_eq!(first.values[0], again[0].1[0]);
        assert_eq!(program.statements()[first.statement].sql, again[0].0);
        // A sequence continues, because the server may have committed the failed transaction.
        assert_eq!((&first.values[1], &again[0].1[1]), (&Value::Int(seen), &Value::Int(seen + 2)));
        seen += 4;
    }
}

#[test]
fn transactions_are_chosen_by_weight() {
    let sql = json!({"transactions": [
        {"weight": 1, "statements": [{"sql": "A"}]}, {"weight": 0, "statements": [{"sql": "B"}]},
        {"weight": 3, "statements": [{"sql": "C"}]}
    ]});
    let program = program(&sql, "prepared");
    let mut event = user(&program, 0);
    let mut counts = [0; 3];
    for _ in 0..4000 {
        counts[execute(&program, &mut event)[0].0.as_bytes()[0] as usize - usize::from(b'A')] += 1;
    }
    // Of 4,000; four standard deviations of the first are 110.
    assert!(i32::abs(counts[0] - 1000) < 110 && counts[1] == 0, "{counts:?}");
}

#[test]
fn users_share_one_list_in_order_and_have_separate_lists_each_in_order() {
    let list = |order| {
        let statement = |number| json!({"statements": [{"sql": format!("{number}"), "name": "q"}]});
        json!({"order": order, "transactions": (0..5).map(statement).collect::<Vec<_>>()})
    };
    let shared = program(&list("in-order"), "text");
    assert_eq!((shared.describe().len(), shared.describe()[0].per_connection), (1, 5));
    let (mut one, mut other) = (user(&shared, 0), user(&shared, 1));
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(execute(&shared, &mut one)[0].0.clone());
        taken.push(execute(&shared, &mut other)[0].0.clone());
    }
    assert_eq!(taken, ["0", "1", "2", "3", "4", "0"]);
    let each = program(&list("each-in-order"), "text");
    let mut other = user(&each, 1);
    let executed: Vec<_> = (0..6).map(|_| execute(&each, &mut other)[0].0.clone()).collect();
    assert_eq!(executed, ["0", "1", "2", "3", "4", "0"]);
}

#[test]
fn a_result_is_stored_for_later_statements() {
    let sql = json!({
        "parameters": {
            "got": {"result": {"statement": "look"}}, "second": {"result": {"statement": "look", "column": 2}},
            "third": {"result": {"statement": "look", "column": 3}}
        },
        "transactions": [{"statements": [
            {"sql": "SELECT a FROM t", "name": "look"}, {"sql": "UPDATE t SET a=:got, b=:second, c=:third"}
        ]}]
    });
    let program = program(&sql, "prepared");
    let prepared: Vec<_> = program.statements().iter().map(|statement| statement.prepared).collect();
    assert_eq!(prepared, [false, true]);
    let sent = execute(&program, &mut user(&program, 0));
    assert_eq!(sent[1].1, [Value::Text(b"17".to_vec()), Value::Null, Value::Null]);
}

#[test]
fn parameters_of_one_file_use_the_same_line() {
    let csv = |column, order| json!({"csv": {"from": {"text": "a,b\n1,x\n2,y\n3,z\n"}, "column": column, "order": order}});
    let sql = json!({
        "parameters": {
            "a": csv("a", "in-order"), "b": csv("b", "in-order"), "r": csv("a", "random"), "s": csv("b", "random")
        },
        "transactions": [{"statements": [
            {"sql": "SELECT :a, :b"}, {"sql": "SELECT :s, :r", "draw": ["r", "s"], "repeat": 3}
        ]}]
    });
    let program = program(&sql, "prepared");
    let mut event = user(&program, 1);
    let mut firsts = Vec::new();
    for _ in 0..30 {
        let sent = execute(&program, &mut event);
        firsts.push(sent[0].1[0].clone());
        assert_eq!(sent.len(), 4);
        for (values, [number, letter]) in sent.iter().zip([[0, 1], [1, 0], [1, 0], [1, 0]]) {
            let (Value::Int(number), Value::Text(letter)) = (&values.1[number], &values.1[letter]) else {
                panic!("{values:?}")
            };
            assert_eq!(b"xyz"[*number as usize - 1..][..1], **letter);
        }
    }
    assert_eq!(firsts[..4], [2, 1, 3, 2].map(Value::Int)); // The second of two users.
}

#[test]
fn question_marks_of_the_text_are_sent_unchanged() {
    let sql = json!({
        "parameters": {"w": {"one_of": {"values": ["it's", 3, null]}}},
        "transactions": [{"statements": [{"sql": "SELECT 'a?b', :w /* ? */"}]}]
    });
    let text = program(&sql, "text");
    let sent = &execute(&text, &mut user(&text, 0))[0];
    let put_in = dbdyno_wire::placeholders::to_sql(&sent.0, &sent.1, Quoting::Mysql);
    let expected = ["'it\\'s'", "'3'", "NULL"].map(|value| format!("SELECT 'a?b', {value} /* ? */"));
    assert!(expected.contains(&put_in), "{put_in}");
    let prepared = program(&sql, "prepared");
    assert_eq!(execute(&prepared, &mut user(&prepared, 0))[0].1.len(), 1);
}

#[test]
fn the_first_word_determines_the_class() {
    use dbdyno_schema::record::StatementClass::{Other, Read, Write};
    let words = [
        "/* x */ SELECT 1",
        "update t SET a=1",
        "BEGIN",
        "(SELECT 1)",
        "CALL p()",
        "INSERT INTO t VALUES (1)",
    ];
    let statements: Vec<_> = words.iter().map(|sql| json!({"sql": sql})).collect();
    let program = program(&json!({"transactions": [{"statements": statements}]}), "prepared");
    let mut event = user(&program, 0);
    let mut classes = Vec::new();
    while let Some(call) = event.next(&program) {
        classes.push(call.class.unwrap());
    }
    assert_eq!(classes, [Read, Write, Other, Read, Other, Write]);
}

#[test]
fn a_user_is_done_after_its_number_of_transactions() {
    let sql = json!({"each": 2, "session": ["SET a=1"], "teardown": ["COMMIT"], "transactions": [{"statements": [{"sql": "A"}]}]});
    let program = program(&sql, "text");
    assert_eq!(
        (program.session(), program.teardown()),
        (vec!["SET a=1".to_owned()], &["COMMIT".to_owned()][..])
    );
    let mut event = user(&program, 0);
    let done: Vec<bool> = (0..2)
        .map(|_| {
            execute(&program, &mut event);
            event.is_done()
        })
        .collect();
    assert_eq!(done, [false, true]);
}

#[test]
fn the_latest_rows_exist_and_are_read_by_their_distribution() {
    let zipfian = json!({"zipfian": {"exponent": 0.99}});
    let sql = json!({
        "parameters": {
            "new": {"sequence": {"first": 21}},
            "recent": {"latest": {"sequence": "new", "low": 1, "high": 20, "distribution": zipfian}}
        },
        "transactions": [
            {"weight": 19, "statements": [{"sql": "SELECT :recent"}]},
            {"weight": 1, "statements": [{"sql": "INSERT :new"}, {"sql": "SELECT :recent, :new"}]}
        ]
    });
    let program = program(&sql, "prepared");
    let mut event = user(&program, 1);
    // The rows, the latest last; the other user of two has every second number of the sequence.
    let mut rows: Vec<i64> = (1..=20).collect();
    let (mut places, mut next) = ([0i32; 20], 22);
    for number in 0..20_000 {
        event.restart();
        let first = event.next(&program).unwrap().values[0].clone();
        // A lost connection after the INSERT: its row may not exist.
        let fails = number % 7 == 0 && first == Value::Int(next);
        next += if fails { 2 } else { 0 };
        let sent = if fails { execute(&program, &mut event) } else { rest(&program, &mut event, first) };
        let read = sent.iter().find(|(sql, _)| sql.starts_with("SELECT")).unwrap().1[0].clone();
        let place = rows.iter().rev().position(|row| read == Value::Int(*row));
        places[place.expect("the row exists and is one of the latest 20")] += 1;
        if sent.len() == 2 {
            rows.push(next);
            next += 2;
        }
    }
    assert!(rows.len() > 500, "{}", rows.len());
    // The 99.99 % point of chi-square for 19 degrees of freedom is 51.
    let total: f64 = (1..=20).map(|k| f64::from(k).powf(-0.99)).sum();
    let expected = (1..=20).map(|k| 20_000.0 * f64::from(k).powf(-0.99) / total);
    let chi_square: f64 = places
        .iter()
        .zip(expected)
        .map(|(&seen, expected)| (f64::from(seen) - expected).powi(2) / expected)
        .sum();
    assert!(chi_square < 51.0, "{chi_square}: {places:?}");
}

/// The statements of a transaction whose first one, with this value, was sent.
fn rest(program: &Program, event: &mut Event, first: Value) -> Vec<(String, Vec<Value>)> {
    let statements = program.statements();
    let mut sent = vec![(statements[event.last().statement].sql.clone(), vec![first])];
    while let Some(call) = event.next(program) {
        sent.push((statements[call.statement].sql.clone(), call.values.clone()));
    }
    sent
}

#[test]
fn a_limit_is_the_expected_number_of_rows() {
    let sql = json!({
        "parameters": {"n": {"integer": {"low": 1, "high": 100}}, "text": {"text": {"length": 30, "alphabet": "xyz"}}},
        "transactions": [{"statements": [{"sql": "SELECT :text LIMIT :n", "rows_parameter": "n"}]}]
    });
    let program = program(&sql, "prepared");
    let mut event = user(&program, 0);
    let mut texts = std::collections::HashSet::new();
    for _ in 0..50 {
        event.restart();
        let call = event.next(&program).unwrap();
        let [Value::Text(text), Value::Int(limit)] = &call.values[..] else { panic!("{:?}", call.values) };
        assert_eq!(call.rows_expected, Some(*limit as u64));
        assert!(text.len() == 30 && text.iter().all(|byte| b"xyz".contains(byte)));
        texts.insert(text.clone());
        assert!(event.next(&program).is_none());
    }
    assert_eq!(texts.len(), 50);
}

#[test]
fn a_loop_repeats_its_statements() {
    let sql = json!({
        "parameters": {
            "lines": {"integer": {"low": 0, "high": 3}}, "id": {"integer": {"high": 1_000_000_000}},
            "item": {"integer": {"high": 1_000_000_000}}, "line": {"repetition": {}}
        },
        "transactions": [{"name": "order", "statements": [
            {"sql": "BEGIN :line"}, {"sql": "GET :id, :item, :line", "draw": ["item"]}, {"sql": "PUT :id, :item", "repeat": 2},
            {"sql": "BETWEEN :line"}, {"sql": "TAIL :line, :lines"}
        ], "loops": [{"first": 2, "last": 3, "times": "lines"}, {"first": 5, "last": 5, "times": 2}]}]
    });
    let program = program(&sql, "prepared");
    let mut event = user(&program, 0);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let sent = execute(&program, &mut event);
        let Value::Int(lines) = sent.last().unwrap().1[1] else { panic!("{sent:?}") };
        seen.insert(lines);
        assert_eq!(sent.len() as i64, 1 + 3 * lines + 1 + 2);
        assert_eq!((&sent[0].1[0], &sent[sent.len() - 3].1[0]), (&Value::Int(1), &Value::Int(1)));
        assert_eq!(
            sent[sent.len() - 2..].iter().map(|one| one.1[0].clone()).collect::<Vec<_>>(),
            [1, 2].map(Value::Int)
        );
        for (number, repetition) in sent[1..sent.len() - 3].chunks(3).enumerate() {
            let [get, put, again] = repetition else { panic!("{repetition:?}") };
            assert_eq!(get.1[2], Value::Int(number as i64 + 1));
            assert_eq!((&get.1[0], &get.1[1]), (&put.1[0], &put.1[1]));
            assert_eq!((put, &get.1[0]), (again, &sent[1].1[0]), "only the drawn parameter changes");
            assert!(number == 0 || get.1[1] != sent[1].1[1]);
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(program.describe().iter().all(|kind| kind.per_event == 0), "the number depends on a parameter");
    // A restart begins outside the loop.
    event.restart();
    let first = event.next(&program).unwrap().clone();
    event.next(&program).unwrap();
    event.restart();
    assert_eq!(event.next(&program).unwrap(), &first);
}

#[test]
fn parameters_depend_on_the_connection_and_on_each_other() {
    let sql = json!({
        "parameters": {
            "a_supply": {"choice": {"parameters": ["home", "elsewhere"], "weights": [3, 1]}},
            "elsewhere": {"integer": {"low": 1, "high": 3, "other_than": "home"}},
            "home": {"connection": {"low": 1, "high": 3, "every": 2}},
            "alone": {"integer": {"low": 3, "high": 3, "other_than": "only"}}, "only": {"connection": {"low": 3, "high": 3}},
            "name": {"words": {"words": ["BAR", "OUGHT", "ABLE"], "low": 3, "high": 5}}
        },
        "transactions": [{"statements": [{"sql": ":home, :a_supply, :elsewhere, :alone, :name"}]}]
    });
    let program = program(&sql, "prepared");
    for index in 0..8 {
        let mut event = user(&program, index);
        let (mut supplies, mut names) =
            (std::collections::BTreeMap::new(), std::collections::BTreeSet::new());
        for _ in 0..400 {
            let sent = execute(&program, &mut event).remove(0).1;
            let [
                Value::Int(home),
                Value::Int(supply),
                Value::Int(elsewhere),
                Value::Int(3),
                Value::Text(name),
            ] = &sent[..]
            else {
                panic!("{sent:?}")
            };
            assert_eq!(*home, index as i64 / 2 % 3 + 1);
            assert!(
                home != elsewhere && (1..=3).contains(elsewhere) && (supply == home || supply == elsewhere)
            );
            *supplies.entry(*supply).or_insert(0) += 1;
            names.insert(String::from_utf8(name.clone()).unwrap());
        }
        // Four standard deviations of 400 draws with the probability 3/4 are 35.
        let home = supplies[&(index as i64 / 2 % 3 + 1)];
        assert!(i32::abs(home - 300) <= 35 && supplies.len() == 3, "{supplies:?}");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["OUGHTABLE", "OUGHTBAR", "OUGHTOUGHT"]);
    }
}

#[test]
fn results_can_be_integers() {
    let sql = json!({
        "parameters": {
            "n": {"result": {"statement": "look", "type": "integer"}}, "text": {"result": {"statement": "look"}},
            "null": {"result": {"statement": "look", "column": 2, "type": "integer"}}
        },
        "transactions": [{"statements": [{"sql": "SELECT", "name": "look"}, {"sql": "PUT :n, :text, :null"}]}]
    });
    let program = program(&sql, "prepared");
    let sent = execute(&program, &mut user(&program, 0));
    assert_eq!(sent[1].1, [Value::Int(17), Value::Text(b"17".to_vec()), Value::Null]);
    use dbdyno_wire::scripted::Type;
    assert_eq!(program.statements()[1].types, [Type::Int, Type::Text, Type::Int]);
}

#[test]
fn pauses_belong_to_the_transaction_before_and_to_the_next_one() {
    let transaction = |name, keying, think| json!({"name": name, "statements": [{"sql": name}], "keying_us": keying, "think_us": think});
    let sql =
        json!({"order": "each-in-order", "transactions": [transaction("A", 1, 2), transaction("B", 10, 20)]});
    let program = program(&sql, "prepared");
    let mut event = user(&program, 0);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let pauses = event.pauses(&program);
        seen.push((pauses.think_us, pauses.keying_us, execute(&program, &mut event).remove(0).0));
    }
    assert_eq!(seen, [(2, 1, "A".to_owned()), (2, 10, "B".into()), (20, 1, "A".into())]);
}
