//! Declared files that are too large for an answer: their beginning inline, all of their bytes in a stored result.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_core::event::Events;
use tidegate_core::{
    Access, AnswerFormat, BodyHead, Budget, CallLimits, Caller, Chunk, Content, Error, ErrorKind, Grants, Metadata,
    Origin, Outcome, Principal, Proof, Registry, Reply, ReplyEvent, SnapshotBuilder, Target, TransportKind,
};
use tidegate_query::{Databases, Executor, ResultStore, StoreLimits};
use tidegate_tools::declared::{DeclaredResource, Prepared, ResourceSource, TextTemplate};
use tidegate_tools::{Identity, NodeView, register};

use crate::fake::call;

const MIB: usize = 1024 * 1024;

/// A node with the files of a folder at `files://{name}`, and a store.
struct Scene {
    registry: Arc<Registry>,
    files: TempDir,
    _spool: TempDir,
}

/// What was answered.
#[derive(Default)]
struct Answered {
    texts: Vec<String>,
    head: Option<BodyHead>,
    bytes: Vec<u8>,
    end: Option<Result<Metadata, Error>>,
}

impl Scene {
    async fn new(limits: StoreLimits, budget: usize) -> Self {
        let (files, spool) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let store = ResultStore::open(spool.path(), StoreLimits { free_bytes: 0, ..limits }).await.unwrap();
        let executor = Executor::new(Events::default()).with_store(Some(store));
        let identity = Identity { name: "tidegate".into(), title: "Tidegate".into(), version: "1.2.3".into() };
        let view = NodeView::new(Databases::new([]), executor, identity);
        let resource = DeclaredResource {
            uri: "files://{name}".to_owned(),
            name: "files".to_owned(),
            title: None,
            description: None,
            mime_type: None,
            source: ResourceSource::File {
                folder: files.path().to_owned(),
                path: TextTemplate::parse("{{name}}").unwrap(),
                inputs: Vec::new(),
            },
            access: Access::default(),
            limits: CallLimits { inline: Some(Budget { rows: None, bytes: Some(budget) }), ..CallLimits::default() },
            cache: None,
        };
        let Ok((Prepared::Template(template), None)) = resource.prepare(&view).await else { panic!("a template") };
        let entries = register(SnapshotBuilder::new(), &view).template(*template);
        let registry = Registry::new(entries.build(), Events::default());
        view.attach(&registry);
        Self { registry, files, _spool: spool }
    }

    /// A file that was last changed a while ago.
    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.files.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        settle(&path);
    }

    async fn read(&self, uri: &str) -> Answered {
        self.read_as(uri, None, Value::Null, None).await
    }

    async fn read_as(
        &self,
        uri: &str,
        format: Option<AnswerFormat>,
        arguments: Value,
        who: Option<Caller>,
    ) -> Answered {
        let mut call = call(Target::Resource(uri.to_owned()), arguments);
        call.format = format;
        if let Some(who) = who {
            call.caller = who;
        }
        match self.registry.call(call) {
            Ok(reply) => gather(reply).await,
            Err(error) => Answered { end: Some(Err(error)), ..Answered::default() },
        }
    }

    /// The file of a result, as it is downloaded.
    async fn data(&self, uri: &str) -> Answered {
        self.read_as(&format!("{uri}/data"), Some(AnswerFormat::Arrow), Value::Null, None).await
    }

    async fn manifest(&self, uri: &str) -> Value {
        let answered = self.read(uri).await;
        serde_json::from_str(&answered.texts.concat()).unwrap()
    }

    /// The manifest of a result that has ended.
    async fn ended(&self, uri: &str) -> Value {
        loop {
            let manifest = self.manifest(uri).await;
            if manifest["status"] != "running" {
                return manifest;
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Answered {
    /// The stored result that holds the rest.
    fn result(&self) -> String {
        let metadata = self.end.as_ref().unwrap().as_ref().unwrap();
        assert_eq!(metadata["dev.tidegate/truncated"], true);
        metadata["dev.tidegate/result"].as_str().unwrap().to_owned()
    }

    fn error(&self) -> &Error {
        self.end.as_ref().unwrap().as_ref().unwrap_err()
    }
}

async fn gather(mut reply: Reply) -> Answered {
    let mut answered = Answered::default();
    let mut is_open = false;
    while let Some(event) = reply.next().await {
        match event {
            ReplyEvent::Chunk(Chunk::Text(text)) if is_open => answered.texts.last_mut().unwrap().push_str(&text),
            ReplyEvent::Chunk(Chunk::Text(text)) => {
                answered.texts.push(text);
                is_open = true;
            }
            ReplyEvent::Chunk(Chunk::EndOfText) => is_open = false,
            ReplyEvent::Chunk(Chunk::Block(Content::Text { text, .. })) => answered.texts.push(text),
            ReplyEvent::Chunk(Chunk::Body(head)) => answered.head = Some(head),
            ReplyEvent::Chunk(Chunk::Bytes(bytes)) => answered.bytes.extend_from_slice(&bytes),
            ReplyEvent::Chunk(_) => {}
            ReplyEvent::End(Outcome::Done(metadata)) => answered.end = Some(Ok(metadata)),
            ReplyEvent::End(Outcome::Failed(error)) => answered.end = Some(Err(error)),
        }
    }
    answered
}

fn settle(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
}

/// Text of so many bytes, no line of which is like another.
fn text(bytes: usize) -> Vec<u8> {
    let mut text: Vec<u8> = (0..).flat_map(|line| format!("line {line}: größer\n").into_bytes()).take(bytes).collect();
    while std::str::from_utf8(&text).is_err() {
        *text.last_mut().unwrap() = b'.';
    }
    text
}

/// Bytes that are no text and do not compress.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::once(0xff).chain((1..bytes).map(next)).collect()
}

#[tokio::test]
async fn a_large_text_is_begun_inline_and_kept_whole() {
    let scene = Scene::new(StoreLimits::default(), 1000).await;
    let bytes = text(20 * MIB);
    scene.write("big.txt", &bytes);
    let answered = scene.read("files://big.txt").await;
    assert_eq!(answered.texts[0].as_bytes(), &bytes[..answered.texts[0].len()]);
    assert!((997..=1000).contains(&answered.texts[0].len()));
    let uri = answered.result();
    let shown = answered.texts[0].len();
    let line = format!("Shown: the first {shown} of the file's 20971520 bytes. All of it is kept at {uri}.");
    assert_eq!(answered.texts[1], line);
    // Whoever downloads follows what is still being written.
    let body = scene.data(&uri).await;
    assert!(body.bytes == bytes, "byte for byte");
    assert_eq!(body.head.unwrap().file.unwrap().media_type.as_deref(), Some("text/plain"));
    let manifest = scene.ended(&uri).await;
    assert_eq!((&manifest["status"], &manifest["resource"]), (&json!("complete"), &json!("files://big.txt")));
    assert_eq!(manifest["file"], json!({"name": "big.txt", "bytes": 20 * MIB, "media_type": "text/plain"}));
    assert_eq!(manifest["columns"], json!([{"name": "bytes", "type": "bytea", "nullable": false}]));
    assert_eq!(manifest["rows"], 320);
    let lasting = scene.data(&uri).await.head.unwrap().lasting.unwrap();
    assert_eq!(lasting.bytes, Some(20 * MIB as u64));
    // The same file is the same result, another state of it another one.
    assert_eq!(scene.read("files://big.txt").await.result(), uri);
    scene.write("big.txt", &bytes[..19 * MIB]);
    assert_ne!(scene.read("files://big.txt").await.result(), uri);
}

#[tokio::test]
async fn of_a_large_file_that_is_no_text_the_facts_are_told() {
    let scene = Scene::new(StoreLimits::default(), 1000).await;
    let bytes = noise(20 * MIB);
    scene.write("photo.png", &bytes);
    let answered = scene.read("files://photo.png").await;
    let uri = answered.result();
    let told = answered.texts.concat().replace(&uri, "URI");
    insta::assert_snapshot!(told, @"photo.png (image/png) has 20971520 bytes, which are not text: none of them is shown. All of it is kept at URI.");
    assert!(scene.data(&uri).await.bytes == bytes, "byte for byte");
    let named = |format: AnswerFormat| json!({ "format": format.name() });
    let data = format!("{uri}/data");
    let refused = scene.read_as(&data, Some(AnswerFormat::Csv), named(AnswerFormat::Csv), None).await;
    insta::assert_snapshot!(refused.error().to_string(), @"
    the stored result holds a file, which is no table to be had as csv
    /results/{id}/data without a format gives the file itself; format=arrow gives its blocks.
    ");
    let arrow = scene.read_as(&data, Some(AnswerFormat::Arrow), named(AnswerFormat::Arrow), None).await;
    let media_type = arrow.head.unwrap().media_type;
    assert_eq!(media_type, AnswerFormat::Arrow.media_type());
    let rows = arrow::ipc::reader::StreamReader::try_new(arrow.bytes.as_slice(), None).unwrap();
    assert_eq!(rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 320);
    let block = format!("{uri}/blocks/0");
    let refused = scene.read_as(&block, Some(AnswerFormat::Json), Value::Null, None).await;
    assert_eq!(refused.error().kind(), ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn nobody_else_reads_what_is_kept_of_a_file() {
    let scene = Scene::new(StoreLimits::default(), 1000).await;
    scene.write("big.txt", &text(MIB));
    let uri = scene.read("files://big.txt").await.result();
    let origin = Origin { transport: TransportKind::Rest, peer: None };
    let bea = || Caller::new(Arc::new(Principal::new("bea", Proof::Key, Arc::new(Grants::everything()))), origin);
    for uri in [uri.clone(), format!("{uri}/data"), format!("{uri}/blocks/0")] {
        let refused = scene.read_as(&uri, Some(AnswerFormat::Arrow), Value::Null, Some(bea())).await;
        assert_eq!(refused.error().kind(), ErrorKind::NotFound);
    }
    let own = scene.read_as("files://big.txt", None, Value::Null, Some(bea())).await.result();
    assert_ne!(own, uri);
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_not_whole() {
    let scene = Scene::new(StoreLimits::default(), 1000).await;
    let path = scene.files.path().join("log.txt");
    for (change, what) in [("cut", "cut off"), ("more", "written to")] {
        std::fs::write(&path, text(8 * MIB)).unwrap();
        settle(&path);
        let mut call = call(Target::Resource("files://log.txt".to_owned()), Value::Null);
        call.format = None;
        let mut reply = scene.registry.call(call).unwrap();
        // The beginning is here, and its reader keeps the rest waiting.
        assert!(matches!(reply.next().await.unwrap(), ReplyEvent::Chunk(Chunk::Text(_))));
        match change {
            "cut" => File::options().write(true).open(&path).unwrap().set_len(MIB as u64).unwrap(),
            _ => OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more").unwrap(),
        }
        let uri = gather(reply).await.result();
        let manifest = scene.ended(&uri).await;
        assert_eq!((&manifest["status"], what), (&json!("incomplete"), what));
        assert_eq!(manifest["reason"], "the file changed while it was read");
        let refused = scene.data(&uri).await;
        assert_eq!(refused.error().kind(), ErrorKind::Unavailable);
        assert!(refused.error().to_string().contains("its 8388608 bytes were kept"), "{}", refused.error());
    }
}

#[tokio::test]
async fn the_budget_ends_before_a_character_that_does_not_fit() {
    for (budget, shown) in [(4, "ab€"), (5, "ab€"), (6, "ab€"), (7, "ab€"), (8, "ab€€")] {
        let scene = Scene::new(StoreLimits::default(), budget).await;
        scene.write("euro.txt", "ab€€€€".as_bytes());
        let answered = scene.read("files://euro.txt").await;
        let wanted = if budget == 4 { "ab" } else { shown };
        assert_eq!(answered.texts[0], wanted, "{budget}");
        assert_eq!(scene.data(&answered.result()).await.bytes, "ab€€€€".as_bytes());
    }
    let scene = Scene::new(StoreLimits::default(), 1000).await;
    // A file that fits, even one that ends within a character, is not kept.
    scene.write("cut.txt", b"ab\xe2\x82");
    let answered = scene.read("files://cut.txt").await;
    assert_eq!(answered.texts.concat(), "ab\u{fffd}");
    assert!(answered.end.unwrap().unwrap().is_empty());
}

#[tokio::test]
async fn where_there_is_no_room_the_beginning_is_answered_and_nothing_else() {
    let scene = Scene::new(StoreLimits { bytes_of_one: MIB as u64, ..StoreLimits::default() }, 1000).await;
    scene.write("noise", &noise(5 * MIB));
    let uri = scene.read("files://noise").await.result();
    let manifest = scene.ended(&uri).await;
    assert_eq!(manifest["status"], "incomplete");
    assert_eq!(manifest["reason"], "your stored results take as much room as they may");
    let scene = Scene::new(StoreLimits { running: 0, ..StoreLimits::default() }, 1000).await;
    scene.write("big.txt", &text(MIB));
    scene.write("noise", &noise(5 * MIB));
    let answered = scene.read("files://big.txt").await;
    assert!(answered.texts[1].starts_with("Shown: the first "), "{:?}", answered.texts[1]);
    let metadata = answered.end.unwrap().unwrap();
    assert_eq!(metadata["dev.tidegate/truncated"], true);
    assert!(!metadata.contains_key("dev.tidegate/result"));
    assert_eq!(scene.read("files://noise").await.error().kind(), ErrorKind::RateLimited);
}
