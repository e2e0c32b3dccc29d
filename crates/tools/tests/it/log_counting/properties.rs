//! What holds for the log tools over every database.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tidegate_telemetry::logs::{TimeInput, parse_time};

use super::node::LogNode;
use super::rows::{FACETS, LogRow, Question};

/// The maximum number of values of a facet in an answer of `query_logs`.
const VALUES_MAX: usize = 10;

/// Counts of the database, a scan and brute force agree.
pub(crate) async fn check_answers(
    node: &LogNode,
    rows: &[LogRow],
    question: &Question,
    display_flag: fn(bool) -> &'static str,
) {
    let arguments = question.arguments();
    let (mut counted, mut scanned) = (node.ask(arguments.clone()).await, node.scan(arguments.clone()).await);
    assert_eq!(counted["matched"], question.matched(rows), "{arguments:?}");
    for (field, _) in FACETS.iter().zip(&question.facets).filter(|(_, is_chosen)| **is_chosen) {
        let expected = question.facet(rows, field, display_flag);
        let (returned, left_out) = expected.split_at(expected.len().min(VALUES_MAX));
        let returned: Vec<Value> = returned.iter().map(|(value, rows)| json!([value, rows])).collect();
        let values = counted["facets"][field]["values"].as_array().unwrap();
        // Without the names of severities.
        let values: Vec<Value> = values.iter().map(|value| json!([value[0], value[1]])).collect();
        assert_eq!(values, returned, "{field}: {arguments:?}");
        let more = match left_out.len() {
            0 => Value::Null,
            values => json!({"values": values, "rows": left_out.iter().map(|(_, rows)| rows).sum::<u64>()}),
        };
        assert_eq!(counted["facets"][field]["more"], more, "{field}: {arguments:?}");
    }
    // A scan reads rows that do not match.
    for answer in [&mut counted, &mut scanned] {
        answer.as_object_mut().unwrap().remove("evaluated");
    }
    assert_eq!(counted, scanned, "{arguments:?}");
}

/// Pages of all entries, while `grow` adds entries with the newest time and newer ones after the first page: each entry is
/// in one page, and the tail has each new one.
pub(crate) async fn check_pages(
    node: &LogNode,
    rows: &[LogRow],
    (limit, is_forward): (usize, bool),
    added: &[LogRow],
    grow: impl AsyncFn(),
) {
    if rows.is_empty() {
        // Without an entry there is no cursor.
        return;
    }
    let arguments = |cursor: Option<&str>| {
        let mut arguments = Map::from_iter([("limit".to_owned(), json!(limit))]);
        match cursor {
            Some(cursor) => arguments.insert("cursor".to_owned(), json!(cursor)),
            None => arguments.insert("direction".to_owned(), json!(if is_forward { "forward" } else { "backward" })),
        };
        arguments
    };
    let mut found: BTreeMap<String, i64> = BTreeMap::new();
    let mut times: Vec<String> = Vec::new();
    let mut answer = node.ask(arguments(None)).await;
    let tail = answer["tail"].as_str().map(str::to_owned);
    grow().await;
    loop {
        let entries = entries_of(&answer);
        for (time, entry) in &entries {
            *found.entry(entry.clone()).or_default() += 1;
            times.push(time.clone());
        }
        let Some(cursor) = answer["cursor"].as_str().filter(|_| !entries.is_empty()) else { break };
        answer = node.ask(arguments(Some(cursor))).await;
    }
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    for row in rows.iter().chain(added.iter().filter(|_| is_forward)) {
        *expected.entry(row.message.clone().unwrap_or_default()).or_default() += 1;
    }
    // Going backward, entries that were added with the time of the cursor may come.
    let is_new = |entry: &str| !is_forward && added.iter().any(|row| row.message.as_deref() == Some(entry));
    found.retain(|entry, _| !is_new(entry));
    assert_eq!(found, expected, "limit {limit}, forward {is_forward}");
    let times: Vec<Option<i64>> = times.iter().map(|time| parse_time(TimeInput::Text(time), 0).ok()).collect();
    let in_order = times.windows(2).all(|pair| if is_forward { pair[0] <= pair[1] } else { pair[0] >= pair[1] });
    assert!(in_order, "{times:?}");
    let Some(tail) = tail else { return };
    let mut new: Vec<String> = Vec::new();
    let mut cursor = tail;
    loop {
        let answer = node.ask(arguments(Some(&cursor))).await;
        let entries = entries_of(&answer);
        new.extend(entries.iter().map(|(_, entry)| entry.clone()));
        match answer["cursor"].as_str().filter(|_| !entries.is_empty()) {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    let mut expected: Vec<String> = added.iter().filter_map(|row| row.message.clone()).collect();
    new.sort();
    expected.sort();
    assert_eq!(new, expected, "the tail, limit {limit}");
}

/// The times and messages of the entries of an answer; missing times are empty.
fn entries_of(answer: &Value) -> Vec<(String, String)> {
    let columns = answer["entries"]["columns"].as_array().cloned().unwrap_or_default();
    let position = |name: &str| columns.iter().position(|column| column == name);
    let (time, message) = (position("time"), position("message"));
    let text = |row: &Value, index: Option<usize>| index.and_then(|index| row[index].as_str()).unwrap_or("").to_owned();
    let rows = answer["entries"]["rows"].as_array().into_iter().flatten();
    rows.map(|row| (text(row, time), text(row, message))).collect()
}
