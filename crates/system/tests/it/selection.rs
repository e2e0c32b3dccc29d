//! Filter, order and limit against a brute-force version; answers that are too large.

use std::cmp::Ordering;

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_system::{
    FunctionRequest, MASK, OversizedAnswer, RowSelector, SelectedRows, SystemColumn, SystemColumnType, SystemReader,
    SystemTable, SystemTableDescription, SystemValue,
};

const COLUMNS: [(&str, SystemColumnType); 4] = [
    ("name", SystemColumnType::Text),
    ("size", SystemColumnType::Unsigned),
    ("share", SystemColumnType::Float),
    ("is_on", SystemColumnType::Boolean),
];

/// A condition as JSON and as the function that it means.
type ConditionCase = (Value, fn(&[SystemValue]) -> bool);

fn table() -> SystemTableDescription {
    let column = |(name, column_type)| SystemColumn::new(name, column_type, "A column.").good_filter();
    SystemTableDescription {
        name: "things".into(),
        description: "Things.".into(),
        columns: COLUMNS.map(column).to_vec(),
        parameters: Vec::new(),
    }
}

fn request(value: Value) -> FunctionRequest {
    FunctionRequest::validate(&table(), value.as_object().unwrap(), false).unwrap()
}

fn select(request: &FunctionRequest, rows: &[Vec<SystemValue>]) -> SelectedRows {
    let mut selector = RowSelector::new(request);
    rows.iter().for_each(|row| selector.push(row));
    selector.finish()
}

fn arbitrary_row() -> impl Strategy<Value = Vec<SystemValue>> {
    let name = prop_oneof![Just(SystemValue::Null), "[ab]{0,2}".prop_map(SystemValue::from)];
    let size = prop_oneof![Just(SystemValue::Null), (0..5_u64).prop_map(SystemValue::from)];
    let float = prop_oneof![Just(f64::NAN), Just(f64::INFINITY), (-3..3).prop_map(|n| f64::from(n) / 2.0)];
    let share = prop_oneof![Just(SystemValue::Null), float.prop_map(SystemValue::from)];
    let is_on = prop_oneof![Just(SystemValue::Null), any::<bool>().prop_map(SystemValue::from)];
    (name, size, share, is_on).prop_map(|(name, size, share, is_on)| vec![name, size, share, is_on])
}

fn arbitrary_condition() -> impl Strategy<Value = ConditionCase> {
    let cases: Vec<ConditionCase> = vec![
        (json!(["size", ">=", 2]), |row| row[1].as_unsigned().is_some_and(|size| size >= 2)),
        (json!(["size", "!=", 3]), |row| row[1].as_unsigned().is_some_and(|size| size != 3)),
        (json!(["size", "=", null]), |row| row[1].is_null()),
        (json!(["name", "match", "a*|*b"]), |row| {
            row[0].as_text().is_some_and(|name| name.starts_with('a') || name.ends_with('b'))
        }),
        (json!(["name", "not match", "*a*"]), |row| row[0].as_text().is_some_and(|name| !name.contains('a'))),
        (json!(["share", "<", 0.5]), |row| matches!(row[2], SystemValue::Float(share) if share < 0.5)),
        (json!(["is_on", "=", true]), |row| row[3].as_boolean() == Some(true)),
    ];
    proptest::sample::select(cases)
}

/// The order of two values as a person would write it down: by an ordinal number each.
fn ordinal(value: &SystemValue) -> (u8, f64, String) {
    match value {
        SystemValue::Null => panic!("null is ordered apart"),
        SystemValue::Text(text) => (0, 0.0, text.clone()),
        SystemValue::Unsigned(number) => (0, *number as f64, String::new()),
        SystemValue::Float(number) if number.is_nan() => (1, 0.0, String::new()),
        SystemValue::Float(number) => (0, *number, String::new()),
        SystemValue::Boolean(value) => (0, f64::from(u8::from(*value)), String::new()),
        other => panic!("{other:?}"),
    }
}

fn brute_force(
    rows: &[Vec<SystemValue>],
    conditions: &[ConditionCase],
    sort: &[(usize, bool)],
    limit: usize,
) -> (Vec<Vec<SystemValue>>, u64) {
    let mut matching: Vec<Vec<SystemValue>> =
        rows.iter().filter(|row| conditions.iter().all(|(_, is_met)| is_met(row))).cloned().collect();
    let matched = matching.len() as u64;
    matching.sort_by(|a, b| {
        for (column, is_descending) in sort {
            let order = match (a[*column].is_null(), b[*column].is_null()) {
                (false, false) => {
                    let order = ordinal(&a[*column]).partial_cmp(&ordinal(&b[*column])).unwrap();
                    if *is_descending { order.reverse() } else { order }
                }
                (a, b) => a.cmp(&b),
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    });
    matching.truncate(limit);
    (matching, matched)
}

proptest! {
    #[test]
    fn agrees_with_a_brute_force_version(
        rows in prop::collection::vec(arbitrary_row(), 0..40),
        conditions in prop::collection::vec(arbitrary_condition(), 0..3),
        sort in prop::sample::subsequence(vec![0_usize, 1, 2, 3], 0..=3).prop_shuffle(),
        directions in prop::collection::vec(any::<bool>(), 4),
        limit in 1..12_usize,
    ) {
        let sort: Vec<(usize, bool)> = sort.into_iter().zip(directions).collect();
        let direction = |is_descending: bool| if is_descending { "desc" } else { "asc" };
        let request = request(json!({
            "conditions": conditions.iter().map(|(json, _)| json.clone()).collect::<Vec<_>>(),
            "sort": sort.iter().map(|(column, is_descending)| {
                json!({"column": COLUMNS[*column].0, "direction": direction(*is_descending)})
            }).collect::<Vec<_>>(),
            "limit": limit,
        }));
        let selected = select(&request, &rows);
        let (expected, matched) = brute_force(&rows, &conditions, &sort, limit);
        // NaN is not equal to itself, its text is.
        prop_assert_eq!(format!("{:?}", selected.rows), format!("{expected:?}"));
        prop_assert_eq!((selected.matched, selected.evaluated), (matched, rows.len() as u64));
        prop_assert_eq!(selected.is_limited(), matched > limit as u64);
    }
}

#[test]
fn requested_columns_have_the_requested_order() {
    let request = request(json!({"columns": ["size", "name"], "sort": [{"column": "share"}]}));
    let row = |name: &str, share: f64| vec![name.into(), SystemValue::Unsigned(1), share.into(), true.into()];
    let selected = select(&request, &[row("b", 2.0), row("a", 1.0)]);
    assert_eq!(selected.rows, [[SystemValue::Unsigned(1), "a".into()], [SystemValue::Unsigned(1), "b".into()]]);
}

fn many_rows() -> Vec<Vec<SystemValue>> {
    let row = |number: u64| {
        let name = ["backup", "web", "web"][number as usize % 3];
        vec![name.into(), number.into(), (number as f64 / 4.0).into(), number.is_multiple_of(10).into()]
    };
    (0..90).map(row).collect()
}

#[test]
fn answer_that_is_too_large_has_an_example_and_advice() {
    let table = table();
    let request = request(json!({"conditions": [["share", ">=", 1]]}));
    let selected = select(&request, &many_rows());
    let bytes = selected.estimated_bytes();
    assert_eq!(OversizedAnswer::check(&table, &request, &selected, bytes, bytes), None);
    let oversized = OversizedAnswer::check(&table, &request, &selected, 20_000, 1_000).unwrap();
    assert_eq!((oversized.rows, oversized.suggested_limit), (86, 4));
    insta::assert_snapshot!(oversized, @r#"
    The answer has 86 rows (86 match) and about 20000 bytes; at most 1000 fit.
    One row as an example:
    {"name": "web", "size": 4, "share": 1.0, "is_on": false}
    Add conditions, select fewer columns, or use a limit of 4. Good filters:
    - name (=, !=, match, not match): frequent values "web" (58 rows), "backup" (28 rows)
    - is_on (=, !=): frequent values false (78 rows), true (8 rows)
    - size (=, !=, <, <=, >, >=)
    "#);
}

#[test]
fn sensitive_values_are_not_in_the_advice() {
    let table = SystemTable::Processes.description();
    let arguments = json!({"columns": ["command_line", "name"]});
    let request = FunctionRequest::validate(table, arguments.as_object().unwrap(), true).unwrap();
    let mut selector = RowSelector::new(&request);
    for number in 0..10 {
        let mut row = vec![SystemValue::Null; table.columns.len()];
        row[table.column("command_line").unwrap().0] = format!("secret {}", number % 2).into();
        row[table.column("name").unwrap().0] = "x".repeat(500).into();
        selector.push(&row);
    }
    let selected = selector.finish();
    let oversized = OversizedAnswer::check(table, &request, &selected, selected.estimated_bytes(), 100).unwrap();
    assert!(oversized.filters.iter().all(|filter| filter.column != "command_line"));
    assert!(oversized.filters.iter().all(|filter| filter.frequent_values.is_empty()));
    assert!(oversized.to_string().len() < 1_000);
}

#[test]
fn request_is_applied_to_the_rows_of_a_table() {
    let pid = std::process::id();
    let arguments = json!({
        "columns": ["pid", "command_line"],
        "conditions": [["pid", "=", pid], ["is_kernel_thread", "=", false]],
        "sort": [{"column": "memory_bytes", "direction": "desc"}]
    });
    let table = SystemTable::Processes;
    let request = FunctionRequest::validate(table.description(), arguments.as_object().unwrap(), false).unwrap();
    let (selected, summary) = SystemReader::new().select(table, &request, false).unwrap();
    assert_eq!(selected.rows, [[SystemValue::Integer(pid.into()), MASK.into()]]);
    assert_eq!((selected.matched, selected.evaluated), (1, summary.rows as u64));
    assert!(!summary.is_truncated && !selected.is_limited());
}

#[test]
fn no_rows_are_never_too_large() {
    let request = request(json!({"conditions": [["size", ">", 1000]]}));
    let selected = select(&request, &many_rows());
    assert_eq!(OversizedAnswer::check(&table(), &request, &selected, 1_000_000, 10), None);
}

#[test]
fn estimated_size_is_that_of_the_json() {
    let request = request(json!({}));
    let selected = select(&request, &many_rows());
    let lists: Vec<Vec<Value>> =
        selected.rows.iter().map(|row| row.iter().map(SystemValue::to_json).collect()).collect();
    let actual = json!(lists).to_string().len();
    assert!(selected.estimated_bytes().abs_diff(actual) < actual / 10, "{} {actual}", selected.estimated_bytes());
}
