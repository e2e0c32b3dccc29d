//! What holds for any question and any rows.

use std::sync::Arc;

use arrow::array::{BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sqlparser::parser::Parser;
use tidegate_core::{Budget, Format, Principal};
use tidegate_query::QuerySpec;
use tidegate_sql::{Parameter, SqlDialect};

use crate::fake::{AnswerOptions, FakeDatabase, batch, request_answer};

const COLUMNS: [&str; 8] =
    ["flight_date", "carrier", "origin", "dest", "dep_delay", "arr_delay", "distance", "Tail Number"];

/// Text that no SQL of ours contains, with the characters that break out of quotes.
fn value() -> impl Strategy<Value = String> {
    "\\PC{0,12}".prop_map(|text| format!("§{text}'\"\\`§"))
}

fn condition() -> impl Strategy<Value = Value> {
    let column = prop::sample::select(&COLUMNS[..]);
    let one = prop_oneof![
        value().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|number: f64| json!(number)),
    ];
    let comparison = prop_oneof![
        (column.clone(), prop::sample::select(&["=", "!=", "<", "<=", ">", ">="][..]), one)
            .prop_map(|(column, op, value)| json!({"column": column, "op": op, "value": value})),
        (column.clone(), prop::sample::select(&["like", "not_like", "ilike", "contains", "starts_with"][..]), value())
            .prop_map(|(column, op, value)| json!({"column": column, "op": op, "value": value})),
        (column.clone(), prop::sample::select(&["in", "not_in"][..]), prop::collection::vec(value(), 1..5))
            .prop_map(|(column, op, value)| json!({"column": column, "op": op, "value": value})),
        (column.clone(), value(), value())
            .prop_map(|(column, low, high)| json!({"column": column, "op": "between", "value": [low, high]})),
        (column, prop::sample::select(&["is_null", "is_not_null"][..]))
            .prop_map(|(column, op)| json!({"column": column, "op": op})),
        Just(json!("dep_delay + 1 > arr_delay OR carrier IS NULL")),
        Just(json!("NOT distance BETWEEN 1 AND 2 AND CASE WHEN origin = 'x' THEN true ELSE false END")),
    ];
    comparison.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| json!({"and": parts})),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| json!({"or": parts})),
            inner.prop_map(|part| json!({"not": part})),
        ]
    })
}

fn alias() -> impl Strategy<Value = String> {
    "[^\"\\\\§\\p{Cc}]{1,12}"
}

pub(crate) fn question() -> impl Strategy<Value = Map<String, Value>> {
    let column = || prop::sample::select(&COLUMNS[..]);
    let plain = (prop::collection::vec((column(), prop::option::of(alias())), 0..4)).prop_map(|columns| {
        let select = |(column, alias): &(&str, Option<String>)| json!({"column": column, "as": alias});
        json!({"select": columns.iter().map(select).collect::<Vec<_>>()})
    });
    let functions = prop::sample::select(&["count", "sum", "avg", "min", "max", "median", "count_distinct"][..]);
    let grouped = (
        prop::collection::vec(column(), 0..3),
        prop::collection::vec((functions, column(), prop::option::of(alias()), any::<bool>()), 1..3),
        prop::option::of(value()),
    )
        .prop_map(|(groups, functions, having)| {
            let aggregate = |(function, column, alias, distinct): &(&str, &str, Option<String>, bool)| {
                json!({"function": function, "column": column, "as": alias, "distinct": distinct})
            };
            let mut select: Vec<Value> = groups.iter().map(|group| json!(group)).collect();
            select.extend(functions.iter().map(aggregate));
            let having = having.map(|value| json!({"column": "dep_delay", "op": "!=", "value": value}));
            json!({"select": select, "group_by": groups, "having": having})
        });
    let order = prop::collection::vec((column(), any::<bool>()), 0..3).prop_map(|order| {
        let item =
            |(column, descending): &(&str, bool)| if *descending { format!("-{column}") } else { (*column).to_owned() };
        order.iter().map(item).collect::<Vec<_>>()
    });
    let joins = prop_oneof![
        3 => Just(json!([])),
        1 => Just(json!([{"table": "flights", "as": "o\u{17F} x", "type": "left", "on": "1 = 1"}])),
    ];
    (prop_oneof![plain, grouped], prop::option::of(condition()), order, joins, 1..10_000_u64).prop_map(
        |(select, filter, order, joins, limit)| {
            let mut question = json!({"table": "flights", "where": filter, "order_by": order, "limit": limit});
            let members = question.as_object_mut().unwrap();
            members.extend(select.as_object().unwrap().clone());
            // With two tables every column is ambiguous, so that joined questions stay simple.
            if joins != json!([]) {
                return json!({"table": "flights", "joins": joins, "limit": limit}).as_object().unwrap().clone();
            }
            members.clone()
        },
    )
}

pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn render(question: &Map<String, Value>) -> tidegate_sql::Statement {
    let spec = QuerySpec::from_json(question).unwrap_or_else(|error| panic!("{question:?}\n{error}"));
    let rendered = wait(spec.render(&FakeDatabase::counting(1, 1), &Principal::anonymous()));
    rendered.unwrap_or_else(|error| panic!("{question:?}\n{error}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rendered_sql_parses_back_to_same_tree(question in question()) {
        let statement = render(&question);
        let parsed = Parser::parse_sql(SqlDialect::DataFusion.parser_dialect(), statement.text()).unwrap();
        prop_assert_eq!(parsed.as_slice(), std::slice::from_ref(statement.ast().unwrap()));
    }

    #[test]
    fn values_are_bound_not_inlined(question in question()) {
        let statement = render(&question);
        prop_assert!(!statement.text().contains('§'), "{}", statement.text());
        let texts = statement.parameters().iter().filter(|parameter| matches!(parameter, Parameter::Text(_))).count();
        let values = Value::Object(question).to_string().matches("§").count() / 2;
        prop_assert_eq!(texts, values);
        prop_assert_eq!(statement.parameters().len(), statement.placeholders());
    }

    #[test]
    fn any_json_is_read_or_refused(value in json_value(), key in prop::sample::select(&["select", "where", "joins", "having", "order_by", "limit"][..])) {
        let mut question = Map::new();
        question.insert("table".to_owned(), json!("flights"));
        question.insert(key.to_owned(), value);
        if let Ok(spec) = QuerySpec::from_json(&question) {
            let _ = wait(spec.render(&FakeDatabase::counting(1, 1), &Principal::anonymous()));
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "(SELECT|FROM|'|\"|\\(|\\)|,| |a|1|\\$1|\\?|--|/\\*|;|=|CASE|END|\\[|::|U&|E'|\\\\|UNION|\\PC){0,30}") {
        if let Ok(statement) = tidegate_sql::Statement::parse(&text, SqlDialect::DataFusion) {
            let retried = tidegate_sql::Statement::parse(statement.text(), SqlDialect::DataFusion).unwrap();
            prop_assert_eq!(retried.ast(), statement.ast());
        }
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        prop::sample::select(&["carrier", "count", "distance", "=", "in", "flights", "carrier = 'x'"][..])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        static KEYS: [&str; 13] = [
            "column",
            "op",
            "value",
            "and",
            "or",
            "not",
            "table",
            "on",
            "left",
            "right",
            "function",
            "as",
            "direction",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(&KEYS[..]).prop_map(str::to_owned), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

type Row = (Option<i64>, Option<String>, Option<f64>, Option<bool>);

fn rows() -> impl Strategy<Value = Vec<RecordBatch>> {
    let row = (
        prop::option::of(any::<i64>()),
        prop::option::of(any::<String>()),
        prop::option::of(any::<f64>()),
        prop::option::of(any::<bool>()),
    );
    prop::collection::vec(prop::collection::vec(row, 0..20), 1..4).prop_map(|batches| {
        let of = |rows: Vec<Row>| {
            batch(&[
                ("i", Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>())),
                ("s", Arc::new(rows.iter().map(|row| row.1.clone()).collect::<StringArray>())),
                ("f", Arc::new(rows.iter().map(|row| row.2).collect::<Float64Array>())),
                ("b", Arc::new(rows.iter().map(|row| row.3).collect::<BooleanArray>())),
            ])
        };
        batches.into_iter().map(of).collect()
    })
}

fn expected(batches: &[RecordBatch]) -> Vec<Value> {
    let mut rows = Vec::new();
    for batch in batches {
        let integers = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
        let strings = batch.column(1).as_any().downcast_ref::<StringArray>().unwrap();
        let floats = batch.column(2).as_any().downcast_ref::<Float64Array>().unwrap();
        let booleans = batch.column(3).as_any().downcast_ref::<BooleanArray>().unwrap();
        for row in 0..batch.num_rows() {
            let float = match floats.iter().nth(row).unwrap() {
                Some(float) if float.is_nan() => json!("NaN"),
                Some(float) if float.is_infinite() => json!(if float > 0.0 { "Infinity" } else { "-Infinity" }),
                other => json!(other),
            };
            rows.push(json!({
                "i": integers.iter().nth(row).unwrap(),
                "s": strings.iter().nth(row).unwrap(),
                "f": float,
                "b": booleans.iter().nth(row).unwrap(),
            }));
        }
    }
    rows
}

fn answered(batches: &[RecordBatch], format: Format, budget: Budget) -> crate::fake::AnswerRecord {
    wait(request_answer(
        &FakeDatabase::new(batches.to_vec()),
        &AnswerOptions { format: Some(format), budget, ..AnswerOptions::default() },
    ))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_read_back_as_they_were(batches in rows()) {
        let expected = expected(&batches);
        let seen = answered(&batches, Format::Mcp, Budget::default());
        prop_assert_eq!(&serde_json::from_str::<Vec<Value>>(&seen.blocks[0]).unwrap(), &expected);
        let seen = answered(&batches, Format::Ndjson, Budget::default());
        let lines: Vec<Value> = seen.blocks[0].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(&lines, &expected);
        let seen = answered(&batches, Format::Toon, Budget::default());
        for table in seen.blocks[0].split("\n\n") {
            let back = toon_format::decode_default::<Value>(table);
            prop_assert!(back.is_ok(), "{:?}\n{}", back, table);
        }
    }

    #[test]
    fn truncated_answer_is_prefix_of_rows(batches in rows(), max in 0..2_000_usize) {
        let expected = expected(&batches);
        let seen = answered(&batches, Format::Mcp, Budget { rows: None, bytes: Some(max) });
        let rows: Vec<Value> = serde_json::from_str(&seen.blocks[0]).unwrap();
        prop_assert!(expected.starts_with(&rows));
        prop_assert!(seen.blocks[0].len() <= max.max(2));
        // Missing rows are reported.
        prop_assert_eq!(seen.blocks.len() == 2, rows.len() < expected.len());
    }
}
