//! Answers without the rows of some nodes of a network: each format, mode and stored result says so.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Schema;
use arrow::ipc::reader::StreamReader;
use bytes::Bytes;
use futures::StreamExt;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_core::{Budget, Format, JsonSchema, MissingNode, MissingNodes};
use tidegate_query::{
    AnswerMode, MISSING_NODES_KEY, ROWS_ON_ALL_NODES_KEY, RowEncoder, missing_nodes_of_schema, output_schema,
    result_manifest,
};
use tidegate_results::ResultEnd;

use crate::bodies::read_arrow;
use crate::fake::{AnswerOptions, AnswerRecord, FakeDatabase, batch, request_answer};
use crate::stored::{StoredAnswers, caller_named, id_of, limits};

const NOTE: &str = "This answer is partial: it lacks the rows of 2 nodes, about 30 % of all rows: oslo (did not answer \
                    within 20 s), rome (connection refused).";

fn missing() -> Arc<MissingNodes> {
    let node = |name: &str, reason: &str, rows| MissingNode {
        name: name.to_owned(),
        reason: reason.to_owned(),
        rows: Some(rows),
    };
    let nodes = vec![node("oslo", "did not answer within 20 s", 10), node("rome", "connection refused", 20)];
    Arc::new(MissingNodes { nodes, rows_total: Some(100) })
}

fn partial(fake: FakeDatabase) -> FakeDatabase {
    FakeDatabase { missing: Some(missing()), ..fake }
}

fn flights() -> FakeDatabase {
    partial(FakeDatabase::new(vec![batch(&[
        ("dest", Arc::new(StringArray::from(vec!["BER", "ORD"]))),
        ("n", Arc::new(Int64Array::from(vec![2, 1]))),
    ])]))
}

fn check_metadata(seen: &AnswerRecord) {
    assert_eq!(seen.metadata.missing_nodes, Some(missing()));
}

fn without_time(text: &str) -> String {
    let Some(start) = text.find("\"elapsed_ms\":") else { return text.to_owned() };
    let end = start + text[start..].find(',').unwrap();
    format!("{}\"elapsed_ms\":0{}", &text[..start], &text[end..])
}

#[tokio::test]
async fn every_format_for_a_model_ends_with_the_note() {
    let formats =
        [Format::Mcp, Format::Json, Format::Ndjson, Format::Csv, Format::Table, Format::Markdown, Format::Toon];
    for format in formats {
        for mode in [AnswerMode::Streaming, AnswerMode::Batch] {
            for extract in [None, Some("dest".to_owned())] {
                let case = format!("{format:?} {mode:?} {extract:?}");
                let wishes = AnswerOptions { format: Some(format), mode, extract, ..AnswerOptions::default() };
                let seen = request_answer(&flights(), &wishes).await;
                assert_eq!(seen.blocks.len(), 2, "{case}: {:?}", seen.blocks);
                assert_eq!(seen.blocks[1], NOTE, "{case}");
                check_metadata(&seen);
            }
        }
    }
}

#[tokio::test]
async fn the_note_follows_the_notice_about_more_rows() {
    let wishes = AnswerOptions { max_rows: Some(1), ..AnswerOptions::default() };
    let seen = request_answer(&flights(), &wishes).await;
    insta::assert_snapshot!(seen.blocks.join("\n"), @r#"
    [{"dest":"BER","n":2}]
    Showing the first row; more exist. Raise the limit.
    This answer is partial: it lacks the rows of 2 nodes, about 30 % of all rows: oslo (did not answer within 20 s), rome (connection refused).
    "#);
    // Without rows, an answer is not complete either.
    let none = partial(FakeDatabase::new(vec![RecordBatch::new_empty(flights().batches[0].schema())]));
    assert_eq!(request_answer(&none, &AnswerOptions::default()).await.blocks, ["[]", NOTE]);
}

#[tokio::test]
async fn the_note_stays_within_the_budget() {
    for format in [Format::Mcp, Format::Json, Format::Markdown] {
        let budget = Budget { rows: None, bytes: Some(4_000) };
        let wishes = AnswerOptions { budget, format: Some(format), ..AnswerOptions::default() };
        let seen = request_answer(&partial(FakeDatabase::counting(10, 1_000)), &wishes).await;
        let bytes: usize = seen.blocks.iter().map(String::len).sum();
        assert!(bytes <= 4_000, "{format:?}: {bytes}");
        assert_eq!(seen.blocks.last().unwrap(), NOTE);
    }
}

#[tokio::test]
async fn bodies_say_it_where_the_format_has_a_place() {
    let mut out = String::new();
    let forms = [Format::Json, Format::Ndjson, Format::Csv, Format::Table, Format::Markdown];
    for form in forms {
        let seen = request_answer(&flights(), &AnswerOptions { body: Some(form), ..AnswerOptions::default() }).await;
        assert!(seen.blocks.is_empty());
        check_metadata(&seen);
        let text = String::from_utf8(seen.body).unwrap().replace('\r', "");
        out.push_str(&format!("--- {}\n{}\n", form.name(), without_time(&text)));
    }
    insta::assert_snapshot!(out, @r#"
    --- json
    {"Query":[{"dest":"BER","n":2},{"dest":"ORD","n":1}],"columns":[{"name":"dest","type":"text"},{"name":"n","type":"bigint"}],"rows":2,"elapsed_ms":0,"truncated":false,"partial":true,"missing_nodes":[{"name":"oslo","reason":"did not answer within 20 s","rows":10},{"name":"rome","reason":"connection refused","rows":20}],"missing_rows_share":0.3}
    --- ndjson
    {"dest":"BER","n":2}
    {"dest":"ORD","n":1}

    --- csv
    dest,n
    BER,2
    ORD,1

    --- table
     dest | n
    ------+---
     BER  | 2
     ORD  | 1
    (2 rows)
    This answer is partial: it lacks the rows of 2 nodes, about 30 % of all rows: oslo (did not answer within 20 s), rome (connection refused).

    --- markdown
    | dest | n |
    | --- | ---: |
    | BER | 2 |
    | ORD | 1 |

    This answer is partial: it lacks the rows of 2 nodes, about 30 % of all rows: oslo (did not answer within 20 s), rome (connection refused).
    "#);
}

#[tokio::test]
async fn arrow_and_parquet_have_it_in_their_metadata() {
    let body = |form| AnswerOptions { body: Some(form), ..AnswerOptions::default() };
    let seen = request_answer(&flights(), &body(Format::Arrow)).await;
    check_metadata(&seen);
    let reader = StreamReader::try_new(Cursor::new(&seen.body), None).unwrap();
    assert_eq!(missing_nodes_of_schema(&reader.schema()).as_ref(), Some(&*missing()));
    let nodes: Value = serde_json::from_str(&reader.schema().metadata()[MISSING_NODES_KEY]).unwrap();
    assert_eq!(nodes, missing().nodes_as_json());
    assert_eq!(reader.schema().metadata()[ROWS_ON_ALL_NODES_KEY], "100");
    assert_eq!(read_arrow(&seen.body)[0].num_rows(), 2);

    let seen = request_answer(&flights(), &body(Format::Parquet)).await;
    check_metadata(&seen);
    let file = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(seen.body)).unwrap();
    assert_eq!(missing_nodes_of_schema(file.schema()).as_ref(), Some(&*missing()));
    let entries = file.metadata().file_metadata().key_value_metadata().unwrap();
    let entry = |key: &str| entries.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.clone());
    assert_eq!(entry(MISSING_NODES_KEY), Some(missing().nodes_as_json().to_string()));
    assert_eq!(entry(ROWS_ON_ALL_NODES_KEY).as_deref(), Some("100"));
}

#[tokio::test]
async fn a_complete_answer_has_no_mark_of_an_earlier_one() {
    // Such as a file that was exported from a partial answer.
    let body = AnswerOptions { body: Some(Format::Arrow), ..AnswerOptions::default() };
    let rows = read_arrow(&request_answer(&flights(), &body).await.body).remove(0);
    assert!(missing_nodes_of_schema(&rows.schema()).is_some());
    let complete = FakeDatabase::new(vec![rows]);
    let seen = request_answer(&complete, &body).await;
    assert_eq!(seen.metadata.missing_nodes, None);
    assert!(read_arrow(&seen.body)[0].schema().metadata().is_empty());
    assert_eq!(request_answer(&complete, &AnswerOptions::default()).await.blocks.len(), 1);
}

#[test]
fn a_mark_that_cannot_be_read_still_counts() {
    let marked = |text: &str| {
        Schema::empty().with_metadata([(MISSING_NODES_KEY.to_owned(), text.to_owned())].into_iter().collect())
    };
    assert_eq!(missing_nodes_of_schema(&marked("{not JSON")).unwrap().names(), "unknown");
    assert_eq!(missing_nodes_of_schema(&marked("[]")), None);
    assert_eq!(missing_nodes_of_schema(&Schema::empty()), None);
}

#[tokio::test]
async fn structured_content_names_the_nodes_and_conforms_to_its_schema() {
    let columns = flights().batches[0].schema();
    let budget = Budget { rows: None, bytes: Some(100_000) };
    let wishes = AnswerOptions { structured: Some(columns.clone()), budget, ..AnswerOptions::default() };
    let structured = request_answer(&flights(), &wishes).await.structured.unwrap();
    insta::assert_snapshot!(structured, @r#"{"rows":[{"dest":"BER","n":2},{"dest":"ORD","n":1}],"truncated":false,"partial":true,"missing_nodes":[{"name":"oslo","reason":"did not answer within 20 s","rows":10},{"name":"rome","reason":"connection refused","rows":20}],"missing_rows_share":0.3}"#);
    let schema = JsonSchema::new(output_schema(&columns)).unwrap();
    schema.check(&serde_json::from_str(&structured).unwrap()).unwrap();
}

/// A node in miniature with `fake`, whose answers are worth caching.
async fn stored_answers(fake: FakeDatabase) -> StoredAnswers {
    fake.version.store(1, Ordering::Relaxed);
    StoredAnswers::new(FakeDatabase { delay: Some(Duration::from_millis(25)), ..fake }, limits()).await
}

#[tokio::test]
async fn stored_results_keep_the_mark_on_every_page_and_after_a_restart() {
    let scene = stored_answers(partial(FakeDatabase::counting(2, 100))).await;
    let ann = caller_named("ann");
    let first = scene.call(&ann, json!({})).await;
    assert_eq!(first.lines.last().unwrap(), NOTE);
    let id = id_of(&first.links[0]);
    assert_eq!(scene.stored(&ann, id).await.1, Some(ResultEnd::Complete));
    let mut cursor = first.cursor().map(str::to_owned);
    let mut pages = 0;
    while let Some(at) = cursor {
        let page = scene.call(&ann, json!({"cursor": at})).await;
        assert_eq!((page.lines.last().unwrap().as_str(), &page.metadata.missing_nodes), (NOTE, &Some(missing())));
        cursor = page.cursor().map(str::to_owned);
        pages += 1;
    }
    assert!(pages > 1);

    let scene = reopened(into_folder(scene)).await;
    let result = scene.store.get(id, &ann).unwrap();
    assert_eq!(result.header().missing_nodes.as_ref(), Some(&*missing()));
    let manifest = result_manifest(&scene.store, &result, None);
    assert_eq!((&manifest["partial"], &manifest["missing_rows_share"]), (&json!(true), &json!(0.3)));
    assert_eq!(manifest["missing_nodes"], missing().nodes_as_json());
    // Downloads in other formats have the mark too, and so do the blocks.
    let mut json = RowEncoder::new(Format::Json, result.schema()).unwrap();
    let mut text = Vec::new();
    let mut rows = result.rows_from(0);
    while let Some(batch) = rows.next().await {
        text.extend_from_slice(&json.write(&batch.unwrap()).unwrap());
    }
    text.extend_from_slice(&json.finish(false).unwrap());
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap()["partial"], true);
    let block = result.block(0).await.unwrap().batches().unwrap();
    assert_eq!(missing_nodes_of_schema(&block[0].schema()).as_ref(), Some(&*missing()));
    let markdown = RowEncoder::new(Format::Markdown, result.schema()).unwrap().finish(false).unwrap();
    assert!(String::from_utf8(markdown.to_vec()).unwrap().ends_with(&format!("{NOTE}\n")));
}

/// The folder, after everything that uses it.
fn into_folder(scene: StoredAnswers) -> TempDir {
    let StoredAnswers { folder, .. } = scene;
    folder
}

/// The store of `folder` in the next process.
async fn reopened(folder: TempDir) -> StoredAnswers {
    // The store of the call that wrote is dropped with the call.
    while std::fs::File::open(folder.path().join("0/lock")).unwrap().try_lock().is_err() {
        tokio::task::yield_now().await;
    }
    StoredAnswers::within(folder, FakeDatabase::counting(1, 1), limits()).await
}

#[tokio::test]
async fn an_export_has_the_mark_in_its_preview_and_its_result() {
    let scene = stored_answers(partial(FakeDatabase::counting(2, 100))).await;
    let ann = caller_named("ann");
    let preview = scene.call(&ann, json!({"delivery": "blocks"})).await;
    assert_eq!((preview.lines.last().unwrap().as_str(), &preview.metadata.missing_nodes), (NOTE, &Some(missing())));
    let result = scene.store.get(id_of(&preview.links[0]), &ann).unwrap();
    assert_eq!(result.header().missing_nodes.as_ref(), Some(&*missing()));
}

#[tokio::test]
async fn partial_answers_are_not_reused() {
    for arguments in [json!({}), json!({"delivery": "blocks"})] {
        for rows in [3, 200] {
            let fake = partial(FakeDatabase::counting(1, rows));
            let runs = fake.runs.clone();
            let scene = stored_answers(fake).await;
            let ann = caller_named("ann");
            for _ in 0..2 {
                let got = scene.call(&ann, arguments.clone()).await;
                assert!(!got.metadata.is_cached, "{arguments} {rows}");
                if let Some(uri) = got.links.first() {
                    // Written to its end, when a complete one would be cached.
                    scene.stored(&ann, id_of(uri)).await;
                }
            }
            assert_eq!(runs.load(Ordering::Relaxed), 2, "{arguments} {rows}");
        }
    }
}

#[tokio::test]
async fn manifests_of_earlier_versions_have_no_mark() {
    let scene = stored_answers(FakeDatabase::counting(2, 100)).await;
    let ann = caller_named("ann");
    let first = scene.call(&ann, json!({})).await;
    let id = id_of(&first.links[0]);
    scene.stored(&ann, id).await;
    let path = scene.folder.path().join("0").join(id.to_string()).join("manifest.jsonl");
    assert!(!std::fs::read_to_string(path).unwrap().contains("missing_nodes"), "as an earlier version wrote it");
    let scene = reopened(into_folder(scene)).await;
    let result = scene.store.get(id, &ann).unwrap();
    assert_eq!(result.header().missing_nodes, None);
    assert!(result_manifest(&scene.store, &result, None).get("partial").is_none());
    assert!(result.block(0).await.unwrap().batches().unwrap()[0].num_rows() > 0);
}
