//! JSON files: what their columns hold, keys and values that appear late, and errors.

use std::collections::BTreeMap;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_core::Principal;
use tidegate_engines::{ColumnType, FileLimits, TextTableOptions};
use tidegate_query::Database as _;

use crate::messy::open_with_options;
use crate::support::{Folder, TestNode, no_delay_limits, two_thread_options};

/// The comments of the columns of a table that have one.
async fn comments(node: &TestNode, table: &str) -> String {
    let columns = node.database.columns(table, &Principal::anonymous()).await.unwrap();
    let comments = columns.iter().filter_map(|column| Some(format!("{}: {}", column.name, column.comment.clone()?)));
    comments.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn late_keys_and_values_change_the_columns_within_the_query() {
    let row = |id: i64| format!("{{\"id\":{id},\"at\":{{\"x\":1}},\"size\":null,\"tags\":[]}}\n");
    let rows: String = (0..5_000).map(row).collect();
    let late = "{\"id\":0.5,\"at\":{\"x\":\"0870\",\"y\":true},\"size\":99999999999999999999,\"tags\":[1],\"extra\":\"z\"}\n\
                {\"id\":-1,\"more\":null}\n";
    let folder = Folder::with(&[("t.ndjson", &format!("{rows}{late}"))]);
    let node = folder.database();
    assert_eq!(node.columns("t").await.unwrap(), "id bigint, at struct(x bigint), size text, tags text[]");
    assert_eq!(node.rows("SELECT count(*) FROM t").await, "5002");
    let columns = "id double, at struct(x text, y boolean), size decimal(38,0), tags bigint[], extra text, more text";
    assert_eq!(node.columns("t").await.unwrap(), columns);
    let rows = node.rows("SELECT at['x'], at['y'], size, tags, extra, more FROM t WHERE id = 0.5").await;
    assert_eq!(rows, "0870|true|99999999999999999999|[1]|z|null");
    assert_eq!(
        node.rows("SELECT at['x'], at['y'], size, tags, extra FROM t WHERE id = 7").await,
        "1|null|null|[]|null"
    );
}

#[tokio::test]
async fn a_late_key_after_rows_were_sent_is_an_error_that_names_it() {
    let text = format!("{}{{\"a\":1,\"b\":2}}\n", "{\"a\":1}\n".repeat(50_000));
    let folder = Folder::with(&[("t.ndjson", &text)]);
    let node = folder.database();
    let refusal = node.refusal("SELECT a FROM t").await;
    let expected = "unavailable: line 50001 of the file t.ndjson has the key \"b\", which its first rows lack\n\
                    The running program has corrected the column: retry. Where each call starts a program, write in \
                    tidegate.yaml, under its database, tables: {t: {infer: full}}";
    assert_eq!(refusal, expected);
    assert_eq!(node.rows("SELECT sum(a), sum(b) FROM t").await, "50001|2");
}

#[tokio::test]
async fn files_that_were_not_probed_change_the_columns_of_their_folder() {
    let folder = Folder::new();
    for number in 0..20 {
        folder.write(&format!("many/{number:02}.json"), "{\"a\":1}\n");
    }
    folder.write("many/07.json", "{\"a\":0.5,\"b\":{\"c\":1}}\n");
    let limits = FileLimits { probed_files_max: 2, ..no_delay_limits() };
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), limits);
    assert_eq!(node.rows("SELECT sum(a) FROM many").await, "19.5");
    assert_eq!(node.columns("many").await.unwrap(), "a double, b struct(c bigint)");
    assert_eq!(node.rows("SELECT b['c'] FROM many WHERE b IS NOT NULL").await, "1");
}

#[tokio::test]
async fn objects_among_other_values_are_json_with_a_note() {
    let text = "{\"id\":1,\"v\":7}\n{\"id\":2,\"v\":{\"x\": [1, 2]}}\n{\"id\":3,\"v\":\"a\"}\n{\"id\":4,\"v\":null}\n";
    let late = format!("{}{{\"id\":2,\"v\":{{\"x\":[]}}}}\n", "{\"id\":1,\"v\":\"a\"}\n".repeat(3_000));
    let folder = Folder::with(&[
        ("detected.ndjson", text),
        ("declared.ndjson", text),
        ("late.ndjson", &late),
        ("files/1.json", "{\"v\":1}"),
        ("files/2.json", "{\"v\":[1]}"),
    ]);
    let columns = BTreeMap::from([("v".to_owned(), ColumnType::String)]);
    let declared = TextTableOptions { columns, ..TextTableOptions::default() };
    let node = open_with_options(vec![folder.path()], &[("declared", declared)]);
    assert_eq!(node.columns("detected").await.unwrap(), "id bigint, v json");
    assert_eq!(comments(&node, "detected").await, "v: JSON, because line 2 of detected.ndjson has {\"x\": [1, 2]}");
    assert_eq!(node.rows("SELECT v FROM detected ORDER BY id").await, "7\n{\"x\": [1, 2]}\n\"a\"\nnull");
    assert_eq!(node.rows("SELECT v->'x'->>1 FROM detected WHERE id = 2").await, "2");
    assert_eq!(node.columns("declared").await.unwrap(), "id bigint, v text");
    assert_eq!(node.rows("SELECT v FROM declared ORDER BY id").await, "7\n{\"x\": [1, 2]}\na\nnull");
    assert_eq!(node.columns("late").await.unwrap(), "id bigint, v text");
    assert_eq!(node.rows("SELECT max(id), count(v) FROM late").await, "2|3001");
    assert_eq!(node.columns("late").await.unwrap(), "id bigint, v json");
    assert_eq!(comments(&node, "late").await, "v: JSON, because line 3001 of late.ndjson has {\"x\":[]}");
    assert_eq!(node.columns("files").await.unwrap(), "v json");
    assert!(comments(&node, "files").await.contains("objects or arrays in some files"));
}

#[tokio::test]
async fn declared_types_hold_or_are_an_error_with_the_line() {
    let text = "{\"n\":\"0870\",\"day\":\"2024-02-29\"}\n{\"n\":7,\"day\":null}\n";
    let folder = Folder::with(&[("good.json", text), ("bad.json", &format!("{text}{{\"n\":\"x\"}}\n"))]);
    let types = [("n", ColumnType::Integer), ("day", ColumnType::Date), ("absent", ColumnType::Number)];
    let columns = BTreeMap::from(types.map(|(name, kind)| (name.to_owned(), kind)));
    let declared = TextTableOptions { columns, ..TextTableOptions::default() };
    let node = open_with_options(vec![folder.path()], &[("good", declared.clone()), ("bad", declared)]);
    assert_eq!(node.columns("good").await.unwrap(), "n bigint, day date, absent double");
    assert_eq!(node.rows("SELECT n, day, absent FROM good").await, "870|2024-02-29|null\n7|null|null");
    assert_eq!(
        node.refusal("SELECT sum(n) FROM bad").await,
        "unavailable: line 3 of the file bad.json has \"x\" in column \"n\", which the configuration declares as bigint"
    );
}

#[tokio::test]
async fn characters_beyond_the_first_plane_are_kept() {
    let text = "{\"a\":\"\\ud834\\udd1e\",\"b\":\"\\ud840\\udc00\",\"c\":\"\\udbff\\udfff\",\"\\ud83d\\ude00\":1}";
    let folder = Folder::with(&[("t.json", text)]);
    assert_eq!(folder.database().rows("SELECT a, b, c, \"😀\" FROM t").await, "𝄞|𠀀|\u{10ffff}|1");
}

#[tokio::test]
async fn errors_have_their_line() {
    let rows = "{\"a\":1}\n".repeat(3_000);
    for (row, reason) in [
        ("{\"a\":1,\"a\":2}", "line 3001: the key \"a\" is twice in one object"),
        ("{\"a\":tru}", "line 3001: a value is expected"),
        ("{\"a\":\"\\ud800\"}", "line 3001: a string has half of a pair of \\u escapes, which is no character"),
        ("{\"a\":\n1 2}", "line 3002: an object needs a comma or its end here"),
        ("[1]", "line 3001: a row is not an object"),
        ("{\"a\":1", "line 3001: an object is not closed; the file is cut off"),
        ("{\"a\":1\n{\"a\":2}", "line 3002: an object needs a comma or its end here"),
    ] {
        let folder = Folder::with(&[("late.ndjson", &format!("{rows}{row}\n")), ("early.ndjson", row)]);
        let node = folder.database();
        let refusal = node.refusal("SELECT sum(a) FROM late").await;
        assert_eq!(refusal, format!("unavailable: the file late.ndjson cannot be read: {reason}"), "{row}");
        let early = reason.replace("line 300", "line ");
        assert!(node.tables().await.contains(&format!("early: unreadable, {early}")), "{row}");
    }
    let keys: String = (0..100).map(|key| format!("{{\"k{key}\":1}}\n")).collect();
    let folder = Folder::with(&[("t.ndjson", &keys)]);
    let limits = FileLimits { inferred_rows: 1, columns_max: 50, ..no_delay_limits() };
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), limits);
    let expected =
        "unavailable: the file t.ndjson cannot be read: line 2: its objects have more than 50 different keys";
    assert_eq!(node.refusal("SELECT count(*) FROM t").await, expected);
}

/// A member that an object lacks is a null, so that a few bytes can stand for many values.
#[tokio::test]
async fn the_lists_of_a_row_are_bounded_together() {
    let wide: String = (0..200).map(|member| format!(",\"m{member}\":1")).collect();
    let row = |item: &str, items: usize| {
        let list = vec![item; items].join(",");
        let keys: Vec<String> = (0..20).map(|key| format!("\"k{key}\":[{list}]")).collect();
        format!("{{{}}}\n", keys.join(","))
    };
    let folder =
        Folder::with(&[("t.ndjson", &format!("{}{}", row(&format!("{{{}}}", &wide[1..]), 1), row("{}", 6_000)))]);
    let refusal = folder.database().refusal("SELECT * FROM t").await;
    assert!(refusal.contains("line 2") && refusal.contains("the lists of the row take too much memory"), "{refusal}");
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        4 => any::<i64>().prop_map(|number| json!(number)),
        2 => (0_i64..1_000).prop_map(|number| json!(number)),
        1 => any::<u64>().prop_map(|number| json!(number)),
        2 => any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(|number| json!(number)),
        1 => any::<bool>().prop_map(|boolean| json!(boolean)),
        1 => ".{0,8}".prop_map(|text| json!(text)),
        1 => "[0-9]{1,4}".prop_map(|text| json!(text)),
        1 => Just(Value::Null),
    ];
    let nested = prop_oneof![Just(json!([])), Just(json!([1, 2.5])), Just(json!({"x": 1})), Just(json!({"y": ["a"]}))];
    prop_oneof![20 => scalar, 1 => nested]
}

/// Whether `read` is what a column of this type has of `written`.
fn is_same(kind: &str, read: &str, written: &Value) -> bool {
    match kind {
        "json" => read == format!("{written}"),
        "double" => read.parse::<f64>().ok() == written.to_string().parse::<f64>().ok(),
        // Zeros after the point are no digits of a whole number.
        decimal if decimal.starts_with("decimal") => {
            let written = written.to_string();
            read == written.strip_suffix(".0").unwrap_or(&written)
        }
        // Which types these have is tested where they are made.
        nested if nested.ends_with("[]") || nested.starts_with("struct") => true,
        _ => written.as_str().map_or_else(|| read == format!("{written}"), |text| read == text),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_value_is_read_as_it_was_written_wherever_odd_ones_are(
        values in prop::collection::vec(value(), 1..30),
        inferred_rows in 1_usize..8,
    ) {
        let rows = values.iter().enumerate().map(|(id, value)| format!("{}\n", json!({"id": id, "v": value})));
        let folder = Folder::with(&[("t.ndjson", &rows.collect::<String>())]);
        let limits = FileLimits { inferred_rows, ..no_delay_limits() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let node = TestNode::open_with(vec![folder.path()], two_thread_options(), limits);
            prop_assert_eq!(node.rows("SELECT count(*), count(v) >= 0 FROM t").await, format!("{}|true", values.len()));
            let columns = node.columns("t").await.unwrap();
            let kind = columns.strip_prefix("id bigint, v ").unwrap();
            let options = FormatOptions::default().with_null("null");
            let mut read = Vec::new();
            for batch in node.batches("SELECT v FROM t ORDER BY id", Vec::new()).await.unwrap() {
                let column = ArrayFormatter::try_new(batch.column(0), &options).unwrap();
                read.extend((0..batch.num_rows()).map(|row| column.value(row).to_string()));
            }
            prop_assert_eq!(read.len(), values.len());
            for (read, written) in read.iter().zip(&values) {
                prop_assert!(is_same(kind, read, written), "{}: {} of {}", kind, read, written);
            }
            Ok(())
        })?;
    }
}
