//! Answers that are a body of their own: each form, where it is cut, how it breaks off, and that all forms agree.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::*;
use arrow::datatypes::*;
use arrow::ipc::reader::StreamReader;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tidegate_core::{Budget, Error, ErrorKind, Format};

use crate::fake::{AnswerOptions, AnswerRecord, FakeDatabase, batch, request_answer};
use crate::parquet::read_parquet;

fn with_body_format(body: Format) -> AnswerOptions {
    AnswerOptions { body: Some(body), ..AnswerOptions::default() }
}

async fn in_form(fake: &FakeDatabase, form: Format) -> AnswerRecord {
    request_answer(fake, &with_body_format(form)).await
}

fn text(seen: &AnswerRecord) -> String {
    let text = String::from_utf8(seen.body.clone()).unwrap().replace('\r', "␍");
    match text.find("\"elapsed_ms\":") {
        Some(start) => {
            let end = start + text[start..].find(',').unwrap();
            format!("{}\"elapsed_ms\":0{}", &text[..start], &text[end..])
        }
        None => text,
    }
}

/// The batches of a stream that has its end.
pub(crate) fn read_arrow(bytes: &[u8]) -> Vec<RecordBatch> {
    assert!(bytes.ends_with(&[255, 255, 255, 255, 0, 0, 0, 0]), "the stream has no end");
    StreamReader::try_new(Cursor::new(bytes), None).unwrap().collect::<Result<_, _>>().unwrap()
}

fn orders() -> FakeDatabase {
    FakeDatabase::new(vec![batch(&[
        ("id", Arc::new(Int64Array::from(vec![1, 2]))),
        ("note", Arc::new(StringArray::from(vec![Some("a, \"b\""), None]))),
    ])])
}

#[tokio::test]
async fn each_format_has_its_media_type_and_only_rows() {
    let mut out = String::new();
    for form in Format::FOR_REST {
        let seen = in_form(&orders(), form).await;
        assert!(seen.blocks.is_empty() && seen.failure.is_none());
        assert_eq!((seen.rows, seen.metadata.rows), (2, Some(2)));
        assert_eq!(seen.metadata.bytes, Some(seen.body.len() as u64));
        out.push_str(&format!("--- {} ---\n", seen.head.as_ref().unwrap().media_type));
        if !matches!(form, Format::Arrow | Format::Parquet) {
            out.push_str(&text(&seen));
            out.push('\n');
        }
    }
    insta::assert_snapshot!(out, @r#"
    --- application/json ---
    {"Query":[{"id":1,"note":"a, \"b\""},{"id":2,"note":null}],"columns":[{"name":"id","type":"bigint"},{"name":"note","type":"text"}],"rows":2,"elapsed_ms":0,"truncated":false}
    --- application/x-ndjson ---
    {"id":1,"note":"a, \"b\""}
    {"id":2,"note":null}

    --- text/csv; charset=utf-8; header=present ---
    id,note␍
    1,"a, ""b"""␍
    2,␍

    --- application/vnd.apache.arrow.stream ---
    --- application/vnd.apache.parquet ---
    --- text/plain; charset=utf-8 ---
     id | note
    ----+--------
      1 | a, "b"
      2 | NULL
    (2 rows)

    --- text/markdown; charset=utf-8 ---
    | id | note |
    | ---: | --- |
    | 1 | a, "b" |
    | 2 | NULL |

    --- application/json ---
    [{"id":1,"note":"a, \"b\""},{"id":2,"note":null}]
    "#);
}

#[tokio::test]
async fn an_answer_without_rows_has_its_columns() {
    let none = || FakeDatabase::new(vec![orders().batches[0].slice(0, 0)]);
    let mut out = String::new();
    for form in [Format::Json, Format::Ndjson, Format::Csv, Format::Table] {
        out.push_str(&format!("{:?}\n", text(&in_form(&none(), form).await)));
    }
    insta::assert_snapshot!(out, @r#"
    "{\"Query\":[],\"columns\":[{\"name\":\"id\",\"type\":\"bigint\"},{\"name\":\"note\",\"type\":\"text\"}],\"rows\":0,\"elapsed_ms\":0,\"truncated\":false}"
    ""
    "id,note␍\n"
    " id | note\n----+------\n(0 rows)\n"
    "#);
    let seen = in_form(&none(), Format::Arrow).await;
    let reader = StreamReader::try_new(Cursor::new(&seen.body), None).unwrap();
    assert_eq!(reader.schema().field(1).name(), "note");
}

#[tokio::test]
async fn format_argument_overrides_requested_format() {
    let requested =
        async |format| request_answer(&orders(), &AnswerOptions { format, ..with_body_format(Format::Arrow) }).await;
    assert_eq!(requested(Some(Format::Csv)).await.head.unwrap().media_type, "text/csv; charset=utf-8; header=present");
    assert_eq!(requested(Some(Format::Toon)).await.head.unwrap().media_type, "text/toon; charset=utf-8");
    let bare_rows = requested(Some(Format::Mcp)).await;
    assert_eq!(bare_rows.head.as_ref().unwrap().media_type, "application/json");
    assert_eq!(text(&bare_rows), r#"[{"id":1,"note":"a, \"b\""},{"id":2,"note":null}]"#);
    assert_eq!(requested(None).await.head.unwrap().media_type, "application/vnd.apache.arrow.stream");
}

#[tokio::test]
async fn a_binary_format_needs_a_body() {
    for format in Format::ALL.iter().copied().filter(|format| format.is_binary()) {
        let seen = request_answer(&orders(), &AnswerOptions { format: Some(format), ..AnswerOptions::default() }).await;
        assert_eq!(seen.failure.unwrap().kind(), ErrorKind::Internal, "{format:?}");
    }
}

#[tokio::test]
async fn one_column_is_a_list_in_every_form() {
    let fake = FakeDatabase::new(vec![batch(&[("c", Arc::new(StringViewArray::from(vec!["b", "a", "b"])))])]);
    let mut out = String::new();
    for form in Format::FOR_REST {
        let seen =
            request_answer(&fake, &AnswerOptions { extract: Some("c".to_owned()), ..with_body_format(form) }).await;
        let visible = match form {
            Format::Arrow => format!("{:?}", read_arrow(&seen.body)[0].column(0).as_string::<i32>()),
            Format::Parquet => format!("{:?}", read_parquet(&seen.body)[0].column(0).as_string::<i32>()),
            _ => text(&seen),
        };
        out.push_str(&format!("--- {} ---\n{visible}\n", seen.head.as_ref().unwrap().media_type));
    }
    insta::assert_snapshot!(out, @r#"
    --- application/json ---
    {"Query":["a","b"],"columns":[{"name":"c","type":"text"}],"rows":2,"elapsed_ms":0,"truncated":false}
    --- application/x-ndjson ---
    "a"
    "b"

    --- text/csv; charset=utf-8; header=absent ---
    a␍
    b␍

    --- application/vnd.apache.arrow.stream ---
    StringArray
    [
      "a",
      "b",
    ]
    --- application/vnd.apache.parquet ---
    StringArray
    [
      "a",
      "b",
    ]
    --- text/plain; charset=utf-8 ---
    a
    b

    --- text/markdown; charset=utf-8 ---
    - a
    - b

    --- application/json ---
    ["a","b"]
    "#);
}

#[tokio::test]
async fn reports_truncation() {
    let mut out = String::new();
    for form in Format::FOR_REST {
        let wishes = AnswerOptions {
            max_rows: Some(3),
            budget: Budget { rows: Some(9), bytes: None },
            ..with_body_format(form)
        };
        let seen = request_answer(&FakeDatabase::counting(2, 5), &wishes).await;
        assert_eq!(seen.head.as_ref().unwrap().budget, Budget { rows: Some(3), bytes: None });
        assert_eq!((seen.rows, seen.metadata.is_truncated), (3, Some(true)));
        match form {
            Format::Arrow => assert_eq!(read_arrow(&seen.body)[0].num_rows(), 3),
            Format::Parquet => assert_eq!(read_parquet(&seen.body)[0].num_rows(), 3),
            _ => out.push_str(&format!("--- {} ---\n{}\n", form.name(), text(&seen))),
        }
    }
    insta::assert_snapshot!(out, @r#"
    --- json ---
    {"Query":[{"n":0},{"n":1},{"n":2}],"columns":[{"name":"n","type":"bigint"}],"rows":3,"elapsed_ms":0,"truncated":true}
    --- ndjson ---
    {"n":0}
    {"n":1}
    {"n":2}

    --- csv ---
    n␍
    0␍
    1␍
    2␍

    --- table ---
     n
    ---
     0
     1
     2
    (3 rows)
    Showing the first 3 rows; more exist. Raise the limit.

    --- markdown ---
    | n |
    | ---: |
    | 0 |
    | 1 |
    | 2 |

    Showing the first 3 rows; more exist. Raise the limit.

    --- mcp ---
    [{"n":0},{"n":1},{"n":2}]
    "#);
}

#[tokio::test]
async fn a_budget_in_bytes_holds_in_every_form() {
    for form in Format::FOR_REST {
        for max in [4_000, 10_000, 100_000] {
            let budget = Budget { rows: None, bytes: Some(max) };
            let fake = FakeDatabase::counting(40, 1_000);
            let seen = request_answer(&fake, &AnswerOptions { budget, ..with_body_format(form) }).await;
            assert!(seen.body.len() <= max, "{form:?}: {} of {max} bytes", seen.body.len());
            assert!(seen.body.len() > max / 3, "{form:?}: {} of {max} bytes", seen.body.len());
            assert_eq!(seen.metadata.is_truncated, Some(true));
            assert!(fake.stopped.load(Ordering::Relaxed));
            let read = match form {
                Format::Arrow => read_arrow(&seen.body),
                Format::Parquet => read_parquet(&seen.body),
                _ => continue,
            };
            assert_eq!(read.iter().map(|batch| batch.num_rows() as u64).sum::<u64>(), seen.rows);
        }
    }
}

#[tokio::test]
async fn a_long_answer_is_complete_and_leaves_in_pieces() {
    for form in Format::FOR_REST {
        let seen = in_form(&FakeDatabase::counting(20, 8_192), form).await;
        assert_eq!(seen.rows, 20 * 8_192);
        // Numbers that count on are much smaller when they are compressed.
        let least = if form == Format::Parquet { 5 } else { 10 };
        assert!(seen.pieces.len() > least && seen.pieces.len() < 100, "{form:?}: {}", seen.pieces.len());
    }
}

fn broken() -> FakeDatabase {
    let failure = || Error::new(ErrorKind::Unavailable, "the disk is \"gone\"");
    FakeDatabase { failure: Some(failure), delay: Some(std::time::Duration::from_millis(5)), ..orders() }
}

#[tokio::test]
async fn reports_failure_in_formats_that_can() {
    let mut out = String::new();
    for form in Format::FOR_REST {
        let seen = in_form(&broken(), form).await;
        assert_eq!(seen.failure.as_ref().unwrap().kind(), ErrorKind::Unavailable);
        if form == Format::Parquet {
            // Its first group of rows was not complete, so nothing of it was sent either.
            assert!(seen.head.is_none() && seen.body.is_empty());
            continue;
        }
        if form == Format::Arrow {
            let mut reader = StreamReader::try_new(Cursor::new(&seen.body), None).unwrap();
            assert_eq!(reader.next().unwrap().unwrap().num_rows(), 2);
            assert!(!seen.body.ends_with(&[255, 255, 255, 255, 0, 0, 0, 0]));
            continue;
        }
        out.push_str(&format!("--- {} ---\n{}\n", form.name(), text(&seen)));
    }
    // A table waits for all of its rows, so nothing of it was sent.
    insta::assert_snapshot!(out, @r#"
    --- json ---
    {"Query":[{"id":1,"note":"a, \"b\""},{"id":2,"note":null}],"columns":[{"name":"id","type":"bigint"},{"name":"note","type":"text"}],"rows":2,"elapsed_ms":0,"truncated":true,"error":"the disk is \"gone\""}
    --- ndjson ---
    {"id":1,"note":"a, \"b\""}
    {"id":2,"note":null}
    {"error":"the disk is \"gone\""}

    --- csv ---
    id,note␍
    1,"a, ""b"""␍
    2,␍

    --- table ---

    --- markdown ---
    | id | note |
    | ---: | --- |
    | 1 | a, "b" |
    | 2 | NULL |

    the disk is "gone"

    --- mcp ---
    [{"id":1,"note":"a, \"b\""},{"id":2,"note":null}
    "#);
}

#[tokio::test]
async fn sends_no_header_before_first_row() {
    let failure = || Error::new(ErrorKind::Unavailable, "gone");
    let fake = FakeDatabase { failure: Some(failure), ..FakeDatabase::new(vec![orders().batches[0].slice(0, 0)]) };
    for form in Format::FOR_REST {
        let seen = in_form(&fake, form).await;
        assert!(seen.head.is_none() && seen.body.is_empty() && seen.failure.is_some(), "{form:?}");
    }
}

#[tokio::test]
async fn arrow_body_uses_portable_types_and_names() {
    let dictionary: DictionaryArray<Int8Type> = vec![Some("x"), None, Some("y")].into_iter().collect();
    let mut lists = ListBuilder::new(StringViewBuilder::new());
    for value in ["p", "q", "r"] {
        lists.values().append_value(value);
        lists.append(true);
    }
    let decimals = Decimal128Array::from(vec![Some(125), None, Some(-5)]).with_precision_and_scale(9, 2).unwrap();
    let rows = batch(&[
        ("same", Arc::new(StringViewArray::from(vec![Some("é"), None, Some("a text longer than a view holds")]))),
        ("same", Arc::new(decimals)),
        ("", Arc::new(dictionary)),
        ("lists", Arc::new(lists.finish())),
        ("bytes", Arc::new(BinaryViewArray::from(vec![&b"\x00"[..], b"\xff", b""]))),
    ]);
    let seen = in_form(&FakeDatabase::new(vec![rows.slice(1, 2), rows.slice(0, 1)]), Format::Arrow).await;
    let read = read_arrow(&seen.body);
    assert_eq!(read.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 1]);
    let schema = read[0].schema();
    let columns: Vec<String> =
        schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    insta::assert_snapshot!(columns.join("\n"), @r#"
    same Utf8
    same_2 Decimal128(9, 2)
    column_3 Dictionary(Int8, Utf8)
    lists List(Utf8)
    bytes Binary
    "#);
    assert_eq!(read[0].column(0).as_string::<i32>().value(1), "a text longer than a view holds");
    assert_eq!(read[1].column(2).as_dictionary::<Int8Type>().downcast_dict::<StringArray>().unwrap().value(0), "x");
    assert_eq!(read[0].column(3).as_list::<i32>().value(0).as_string::<i32>().value(0), "q");
}

#[tokio::test]
async fn rows_without_columns_are_rows() {
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let rows = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    let seen = in_form(&FakeDatabase::new(vec![rows]), Format::Arrow).await;
    assert_eq!(read_arrow(&seen.body)[0].num_rows(), 3);
}

/// The fields of each record of RFC 4180; none for one that is empty and not quoted.
fn read_csv(text: &str) -> Vec<Vec<Option<String>>> {
    let (mut records, mut record, mut field, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if field.is_empty() && !is_quoted => {
                is_quoted = true;
                loop {
                    match characters.next().unwrap() {
                        '"' if characters.next_if_eq(&'"').is_none() => break,
                        other => field.push(other),
                    }
                }
            }
            ',' | '\r' => {
                let ended = std::mem::take(&mut field);
                record.push((is_quoted || !ended.is_empty()).then_some(ended));
                is_quoted = false;
                if character == '\r' {
                    assert_eq!(characters.next(), Some('\n'));
                    records.push(std::mem::take(&mut record));
                }
            }
            other => field.push(other),
        }
    }
    assert!(record.is_empty() && field.is_empty(), "the last record has no end");
    records
}

proptest! {
    #[test]
    fn all_forms_of_the_same_rows_agree(
        rows in prop::collection::vec((any::<Option<i64>>(), prop::option::of(".{0,12}"), any::<Option<bool>>()), 0..40),
        split in 0_usize..40,
    ) {
        let whole = batch(&[
            ("n", Arc::new(Int64Array::from_iter(rows.iter().map(|(n, _, _)| *n)))),
            ("t", Arc::new(StringViewArray::from_iter(rows.iter().map(|(_, t, _)| t.clone())))),
            ("b", Arc::new(BooleanArray::from_iter(rows.iter().map(|(_, _, b)| *b)))),
        ]);
        let split = split.min(rows.len());
        let fake = FakeDatabase::new(vec![whole.slice(0, split), whole.slice(split, rows.len() - split)]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let body = |form| runtime.block_on(in_form(&fake, form)).body;

        let expected: Vec<Value> = rows.iter().map(|(n, t, b)| json!({"n": n, "t": t, "b": b})).collect();
        let ndjson = String::from_utf8(body(Format::Ndjson)).unwrap();
        let lines: Vec<Value> = ndjson.split_terminator('\n').map(|line| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(&lines, &expected);
        let json: Value = serde_json::from_slice(&body(Format::Json)).unwrap();
        prop_assert_eq!(&json["Query"], &Value::from(expected.clone()));

        let csv = read_csv(std::str::from_utf8(&body(Format::Csv)).unwrap());
        let names: Vec<String> = csv[0].iter().flatten().cloned().collect();
        prop_assert_eq!(names.join(" "), "n t b");
        let of_csv = |record: &Vec<Option<String>>| {
            let [n, t, b] = &record[..] else { panic!("{record:?}") };
            json!({
                "n": n.as_ref().map(|n| n.parse::<i64>().unwrap()),
                "t": t,
                "b": b.as_ref().map(|b| b.parse::<bool>().unwrap()),
            })
        };
        prop_assert_eq!(&csv[1..].iter().map(of_csv).collect::<Vec<_>>(), &expected);

        let arrow: Vec<Value> = read_arrow(&body(Format::Arrow)).iter().flat_map(of_arrow).collect();
        prop_assert_eq!(&arrow, &expected);
        let parquet: Vec<Value> = read_parquet(&body(Format::Parquet)).iter().flat_map(of_arrow).collect();
        prop_assert_eq!(&parquet, &expected);
    }
}

fn of_arrow(batch: &RecordBatch) -> Vec<Value> {
    let numbers = batch.column(0).as_primitive::<Int64Type>();
    let (texts, truths) = (batch.column(1).as_string::<i32>(), batch.column(2).as_boolean());
    let row = |row: usize| -> Value {
        let mut object = Map::new();
        object.insert("n".to_owned(), numbers.is_valid(row).then(|| numbers.value(row)).into());
        object.insert("t".to_owned(), texts.is_valid(row).then(|| texts.value(row)).into());
        object.insert("b".to_owned(), truths.is_valid(row).then(|| truths.value(row)).into());
        object.into()
    };
    (0..batch.num_rows()).map(row).collect()
}
