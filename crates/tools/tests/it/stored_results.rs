//! Stored results as resources: manifest, blocks, all rows as one body.

use std::sync::Arc;

use arrow::array::{AsArray, DictionaryArray, Int64Array, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::ipc::reader::StreamReader;
use futures::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_core::{
    CallTarget, Caller, Error, ErrorKind, Format, MissingNode, MissingNodes, Principal, StoredResults as _,
};
use tidegate_query::{Databases, Executor, result_manifest};
use tidegate_results::{NewResult, ResultStore, StoreLimits, StoredColumns, StoredResult};
use tidegate_runtime::{
    Answer, AnswerMeta, BodyMetadata, Call, Job, Registry, ReplyPart, SnapshotBuilder, Tool, event::EventDispatcher,
    handler_fn,
};
use tidegate_tools::{NodeIdentity, ToolServices, register};
use tokio::sync::mpsc::Receiver;

use crate::fake::{collect_answer, owner};

/// A node with a result store, and a job that writes to it.
struct StoredResultFixture {
    registry: Arc<Registry>,
    store: Arc<ResultStore>,
    job: Arc<Job>,
    _folder: TempDir,
}

/// The body of a resource.
struct CollectedBody {
    head: Option<BodyMetadata>,
    bytes: Vec<u8>,
    end: Result<AnswerMeta, Error>,
}

impl StoredResultFixture {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let limits = StoreLimits { free_bytes: 0, block_bytes: 64 * 1024, ..StoreLimits::default() };
        let store = ResultStore::open(folder.path(), limits).await.unwrap();
        let executor = Executor::new(EventDispatcher::default()).with_store(Some(store.clone()));
        let identity = NodeIdentity { name: "tidegate".into(), title: "Tidegate".into(), version: "1.2.3".into() };
        let services = ToolServices::new(Databases::new([]), executor, identity);
        let waiting = handler_fn(|call| async move {
            call.cancelled().await;
            Ok(Answer::content(Vec::new()))
        });
        let builder = SnapshotBuilder::new().tool(Tool::new("wait", "waits", waiting));
        let registry = Registry::new(register(builder, &services).build(), EventDispatcher::default());
        services.attach(&registry);
        let mut reply = registry.call(Call::new(CallTarget::Tool("wait".to_owned()), owner())).unwrap();
        let job = reply.job().clone();
        tokio::spawn(async move { while reply.next().await.is_some() {} });
        Self { registry, store, job, _folder: folder }
    }

    /// Writes `batches`, and then the failure, if there is one.
    async fn write(&self, batches: Vec<RecordBatch>, failure: Option<&'static str>) -> Arc<StoredResult> {
        let new_result = NewResult::new(&self.job, "shop");
        let writer = self.store.begin(new_result, StoredColumns::unchanged(batches[0].schema())).await.unwrap();
        let result = writer.result().clone();
        let failure = failure.map(|failure| Err(Error::new(ErrorKind::Unavailable, failure)));
        let rows = batches.into_iter().map(Ok).chain(failure).collect::<Vec<_>>();
        let _ = writer.write_all(futures::stream::iter(rows).boxed(), 0, &self.job).await;
        result
    }

    /// The version tag of the manifest of `result` for `caller`.
    async fn version_tag(&self, result: &StoredResult, caller: &Caller) -> Option<String> {
        let uri = result.header().id.uri();
        let (watcher, variables) = self.registry.snapshot().watcher(&uri, caller).unwrap();
        watcher.version_tag(&variables, caller).await.unwrap()
    }

    async fn get(&self, uri: &str, format: Format, arguments: Value) -> CollectedBody {
        let mut call = crate::fake::call(CallTarget::Resource(uri.to_owned()), arguments);
        call.format = Some(format);
        let mut reply = match self.registry.call(call) {
            Ok(reply) => reply,
            Err(error) => return CollectedBody { head: None, bytes: Vec::new(), end: Err(error) },
        };
        let (mut head, mut bytes) = (None, Vec::new());
        loop {
            match reply.next().await.unwrap() {
                ReplyPart::Body(begun) => assert!(head.replace(begun).is_none(), "it begins once"),
                ReplyPart::Bytes(piece) => {
                    assert!(head.is_some(), "it has begun");
                    bytes.extend_from_slice(&piece);
                }
                ReplyPart::End(end) => return CollectedBody { head, bytes, end },
                _ => {}
            }
        }
    }
}

/// Rows of a number, and of words in a dictionary of their batch.
fn rows(from: i64, rows: i64) -> RecordBatch {
    let words: DictionaryArray<Int32Type> = (from..from + rows)
        .map(|row| (row % 11 != 0).then(|| format!("word {}", row / 3)))
        .collect::<Vec<_>>()
        .iter()
        .map(Option::as_deref)
        .collect();
    let numbers = Int64Array::from_iter_values(from..from + rows);
    RecordBatch::try_from_iter_with_nullable([
        ("n", Arc::new(numbers) as _, true),
        ("word", Arc::new(words) as _, true),
    ])
    .unwrap()
}

fn many_batches() -> Vec<RecordBatch> {
    (0..20).map(|batch| rows(batch * 1000, 1000)).collect()
}

fn read(stream: Vec<u8>) -> Vec<(i64, Option<String>)> {
    let reader = StreamReader::try_new(std::io::Cursor::new(stream), None).unwrap();
    let mut all = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let words = batch.column(1).as_dictionary::<Int32Type>();
        let words = words.downcast_dict::<arrow::array::StringArray>().unwrap();
        let numbers = batch.column(0).as_primitive::<Int64Type>().values().iter();
        all.extend(numbers.copied().zip(words.into_iter().map(|word| word.map(str::to_owned))));
    }
    all
}

#[tokio::test]
async fn data_concatenates_blocks_as_one_arrow_stream() {
    let scene = StoredResultFixture::new().await;
    let result = scene.write(many_batches(), None).await;
    assert!(result.progress().blocks.len() > 2);
    let uri = format!("{}/data", result.header().id.uri());
    let body = scene.get(&uri, Format::Arrow, json!({})).await;
    let metadata = body.end.unwrap();
    assert_eq!((metadata.rows, metadata.is_truncated), (Some(20_000), Some(false)));
    let body_version = body.head.unwrap().version.unwrap();
    assert_eq!(body_version.bytes, Some(body.bytes.len() as u64));
    let collected_body = scene.get(&uri, Format::Arrow, json!({})).await;
    assert_eq!(
        (collected_body.head.unwrap().version.unwrap(), &collected_body.bytes),
        (body_version.clone(), &body.bytes)
    );
    let expected = (0..20_000).map(|row| (row, (row % 11 != 0).then(|| format!("word {}", row / 3))));
    assert!(read(body.bytes).into_iter().eq(expected));
    // Another format of the same rows has another tag.
    let csv = scene.get(&uri, Format::Csv, json!({})).await;
    assert_eq!(String::from_utf8(csv.bytes).unwrap().lines().count(), 20_001);
    assert_ne!(csv.head.unwrap().version.unwrap().tag, body_version.tag);
}

#[tokio::test]
async fn block_matches_manifest() {
    let scene = StoredResultFixture::new().await;
    let result = scene.write(many_batches(), None).await;
    let manifest = result_manifest(&scene.store, &result, None);
    let blocks = manifest["blocks"].as_array().unwrap();
    let mut seen = Vec::new();
    // Backwards, then in the order in which the next block is read ahead.
    for (number, block) in blocks.iter().rev().chain(blocks).enumerate() {
        let uri = format!("{}/blocks/{}", result.header().id.uri(), block["index"]);
        let body = scene.get(&uri, Format::Arrow, json!({})).await;
        let body_version = body.head.unwrap().version.unwrap();
        assert_eq!(
            (json!(body_version.tag), json!(body_version.bytes)),
            (block["sha256"].clone(), block["bytes"].clone())
        );
        assert_eq!(json!(body.bytes.len()), block["bytes"]);
        if number >= blocks.len() {
            assert_eq!(json!(seen.len()), block["first_row"]);
            seen.extend(read(body.bytes));
        }
    }
    assert_eq!(seen.len(), 20_000);
    let stats = scene.store.stats();
    let bytes: u64 = blocks.iter().map(|block| block["bytes"].as_u64().unwrap()).sum();
    assert_eq!((stats.blocks_read, stats.block_bytes_read), (2 * blocks.len() as u64, 2 * bytes));
}

#[tokio::test]
async fn manifest_blocks_and_rows_name_missing_nodes() {
    let scene = StoredResultFixture::new().await;
    let node = MissingNode { name: "oslo".to_owned(), reason: "is away".to_owned(), rows: None };
    scene.job.record_missing_nodes(&MissingNodes { nodes: vec![node], rows_total: None }).unwrap();
    let uri = scene.write(vec![rows(0, 3)], None).await.header().id.uri();
    for path in ["", "/blocks/0", "/data"] {
        for format in [Format::Json, Format::Arrow, Format::Csv] {
            let metadata = scene.get(&format!("{uri}{path}"), format, json!({})).await.end.unwrap();
            assert_eq!(metadata.missing_nodes.unwrap().names(), "oslo", "{path} {format:?}");
        }
    }
    let texts = async |path: &str| {
        let call = crate::fake::call(CallTarget::Resource(format!("{uri}{path}")), json!({}));
        collect_answer(scene.registry.call(call).unwrap()).await.unwrap().texts
    };
    let manifest: Value = serde_json::from_str(&texts("").await.join("")).expect("one JSON object");
    assert_eq!((&manifest["partial"], &manifest["missing_nodes"][0]["reason"]), (&json!(true), &json!("is away")));
    assert!(texts("/blocks/0").await.is_empty(), "a block is its bytes");
    assert_eq!(texts("/data").await[1..], ["This answer is partial: it lacks the rows of 1 node: oslo (is away)."]);
}

#[tokio::test]
async fn download_follows_a_running_result() {
    let scene = StoredResultFixture::new().await;
    for (failure, format) in [None, Some("the database went away")]
        .into_iter()
        .flat_map(|failure| [Format::Arrow, Format::Ndjson].map(|format| (failure, format)))
    {
        let new_result = NewResult::new(&scene.job, "shop");
        let writer = scene.store.begin(new_result, StoredColumns::unchanged(rows(0, 1).schema())).await.unwrap();
        let uri = format!("{}/data", writer.result().header().id.uri());
        let failing = failure.map(|failure| Err(Error::new(ErrorKind::Unavailable, failure)));
        let batches: Vec<_> = many_batches().into_iter().map(Ok).chain(failing).collect();
        let slowly = futures::stream::iter(batches).then(|batch| async {
            tokio::task::yield_now().await;
            batch
        });
        let (_, body) =
            tokio::join!(writer.write_all(slowly.boxed(), 0, &scene.job), scene.get(&uri, format, json!({})));
        assert_eq!(body.end.is_ok(), failure.is_none());
        assert!(body.head.unwrap().version.is_none(), "the end of a growing result is unknown");
        match format {
            Format::Arrow => {
                let is_ended = body.bytes.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
                assert_eq!(is_ended, failure.is_none());
                assert!(!is_ended || read(body.bytes).len() == 20_000);
            }
            _ => assert!(body.bytes.iter().filter(|byte| **byte == b'\n').count() <= 20_001),
        }
    }
}

#[tokio::test]
async fn incomplete_result_needs_partial_argument() {
    let scene = StoredResultFixture::new().await;
    let result = scene.write(many_batches(), Some("the database went away")).await;
    let uri = format!("{}/data", result.header().id.uri());
    let mut table = String::new();
    for format in [Format::Arrow, Format::Csv] {
        let refused = scene.get(&uri, format, json!({})).await;
        assert!(refused.head.is_none() && refused.bytes.is_empty());
        let error = refused.end.unwrap_err();
        table.push_str(&format!("{}: {}: {error}\n", format.name(), error.kind().name()));
        let part = scene.get(&uri, format, json!({"partial": true})).await;
        let metadata = part.end.unwrap();
        assert_eq!((metadata.rows, metadata.is_truncated), (Some(20_000), Some(true)));
        assert!(part.head.unwrap().version.is_none());
        if format == Format::Arrow {
            assert_eq!(read(part.bytes).len(), 20_000);
        }
    }
    // An empty result has no partial content.
    let nothing = scene.write(vec![rows(0, 0)], Some("the database went away")).await;
    for path in ["", "/data", "/blocks/0"] {
        let uri = format!("{}{path}", nothing.header().id.uri());
        let error = scene.get(&uri, Format::Arrow, json!({"partial": true})).await.end.unwrap_err();
        let text = error.to_string().replace(&nothing.header().id.to_string(), "ID");
        table.push_str(&format!("nothing{path}: {}: {text}\n", error.kind().name()));
    }
    for path in ["blocks/99", "blocks/007", "blocks/-1", "blocks/x"] {
        let uri = format!("{}/{path}", result.header().id.uri());
        let error = scene.get(&uri, Format::Arrow, json!({})).await.end.unwrap_err();
        let text = error.to_string().replace(&result.header().id.to_string(), "ID");
        table.push_str(&format!("{path}: {}: {text}\n", error.kind().name()));
    }
    insta::assert_snapshot!(table, @r#"
    arrow: unavailable: the stored result is incomplete: 20000 rows were stored before it ended: the database went away
    ?partial=true returns what is stored.
    csv: unavailable: the stored result is incomplete: 20000 rows were stored before it ended: the database went away
    ?partial=true returns what is stored.
    nothing: not_found: there is no stored result ID
    nothing/data: not_found: there is no stored result ID
    nothing/blocks/0: not_found: there is no stored result ID
    blocks/99: not_found: the stored result ID has no block 99: it has 5, counted from 0
    blocks/007: not_found: the stored result ID has no block 007; blocks are counted from 0
    blocks/-1: not_found: the stored result ID has no block -1; blocks are counted from 0
    blocks/x: not_found: the stored result ID has no block x; blocks are counted from 0
    "#);
}

#[tokio::test]
async fn manifest_version_tag_changes_with_each_block() {
    let scene = StoredResultFixture::new().await;
    let new_result = NewResult::new(&scene.job, "shop");
    let first = rows(0, 60_000);
    let writer = scene.store.begin(new_result, StoredColumns::unchanged(first.schema())).await.unwrap();
    let result = writer.result().clone();
    let me = owner();
    let begun = scene.version_tag(&result, &me).await;
    assert!(begun.is_some());
    let stranger = Caller { principal: Principal::anonymous(), ..me.clone() };
    assert_eq!(scene.version_tag(&result, &stranger).await, None);
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let next = |mut receiver: Receiver<Result<RecordBatch, Error>>| async { Some((receiver.recv().await?, receiver)) };
    let coming = futures::stream::unfold(receiver, next);
    let job = scene.job.clone();
    let writing = tokio::spawn(async move { writer.write_all(coming.boxed(), 0, &job).await.map(drop) });
    sender.send(Ok(first)).await.unwrap();
    sender.send(Ok(rows(60_000, 60_000))).await.unwrap();
    result.next_block(0).await.unwrap();
    let grown = scene.version_tag(&result, &me).await;
    assert!(grown.is_some() && grown != begun);
    drop(sender);
    writing.await.unwrap().unwrap();
    let ended = scene.version_tag(&result, &me).await;
    assert!(ended.is_some() && ended != grown);
    assert_eq!(scene.version_tag(&result, &me).await, ended);
}
