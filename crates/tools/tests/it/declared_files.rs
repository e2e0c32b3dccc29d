//! Declared files that are too large for an answer: their beginning inline, the whole file in a stored result.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_core::{
    Access, AnswerProtection, AuthMethod, Budget, CallLimits, CallOrigin, CallTarget, Caller, Content, Error,
    ErrorKind, Format, Grants, Principal, TransportKind,
};
use tidegate_query::{Databases, Executor, SecretRule, SecretRules};
use tidegate_results::{FILE_PIECE_BYTES, ResultStore, StoreLimits};
use tidegate_runtime::{AnswerMeta, BodyMetadata, Registry, Reply, ReplyPart, SnapshotBuilder, event::EventDispatcher};
use tidegate_tools::declared::{DeclaredResource, PreparedResource, ResourceContent, TextTemplate};
use tidegate_tools::{NodeIdentity, ToolServices, register};

use crate::fake::call;

const MIB: usize = 1024 * 1024;

/// A node with the files of a folder at `files://{name}`, and a store.
struct FileFixture {
    registry: Arc<Registry>,
    files: TempDir,
    _spool: TempDir,
}

/// The answer.
#[derive(Default)]
struct CollectedReply {
    texts: Vec<String>,
    head: Option<BodyMetadata>,
    bytes: Vec<u8>,
    end: Option<Result<AnswerMeta, Error>>,
}

impl FileFixture {
    async fn new(limits: StoreLimits, budget: usize) -> Self {
        let (files, spool) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let store = ResultStore::open(spool.path(), StoreLimits { free_bytes: 0, ..limits }).await.unwrap();
        let executor = Executor::new(EventDispatcher::default()).with_store(Some(store));
        let identity = NodeIdentity { name: "tidegate".into(), title: "Tidegate".into(), version: "1.2.3".into() };
        let services = ToolServices::new(Databases::new([]), executor, identity);
        let resource = DeclaredResource {
            uri: "files://{name}".to_owned(),
            name: "files".to_owned(),
            title: None,
            description: None,
            mime_type: None,
            source: ResourceContent::File {
                folder: files.path().to_owned(),
                path: TextTemplate::parse("{{name}}").unwrap(),
                inputs: Vec::new(),
            },
            access: Access::default(),
            limits: CallLimits { inline: Some(Budget { rows: None, bytes: Some(budget) }), ..CallLimits::default() },
            cache: None,
        };
        let Ok((PreparedResource::Template(template), None)) = resource.prepare(&services).await else {
            panic!("a template")
        };
        let rule = SecretRule { name: "badge".to_owned(), pattern: "EMP-[0-9]{6}".to_owned() };
        let redactor = SecretRules::new(&[rule, SecretRule::built_in("private_key").unwrap()], false).unwrap();
        let protection = AnswerProtection { redactor: Some(Arc::new(redactor)), ..AnswerProtection::default() };
        let entries = register(SnapshotBuilder::new(), &services).template(*template).protection(protection);
        let registry = Registry::new(entries.build(), EventDispatcher::default());
        services.attach(&registry);
        Self { registry, files, _spool: spool }
    }

    /// A file that was last changed long ago.
    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.files.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        backdate_file(&path);
    }

    async fn read(&self, uri: &str) -> CollectedReply {
        self.read_as(uri, None, Value::Null, None).await
    }

    async fn read_as(
        &self,
        uri: &str,
        format: Option<Format>,
        arguments: Value,
        caller: Option<Caller>,
    ) -> CollectedReply {
        let mut call = call(CallTarget::Resource(uri.to_owned()), arguments);
        call.format = format;
        if let Some(caller) = caller {
            call.caller = caller;
        }
        match self.registry.call(call) {
            Ok(reply) => collect_reply(reply).await,
            Err(error) => CollectedReply { end: Some(Err(error)), ..CollectedReply::default() },
        }
    }

    /// The file of a result, as it is downloaded.
    async fn data(&self, uri: &str) -> CollectedReply {
        self.read_as(&format!("{uri}/data"), Some(Format::Arrow), Value::Null, None).await
    }

    async fn manifest(&self, uri: &str) -> Value {
        let answered = self.read(uri).await;
        serde_json::from_str(&answered.texts.concat()).unwrap()
    }

    /// The manifest of a result that has ended.
    async fn final_manifest(&self, uri: &str) -> Value {
        loop {
            let manifest = self.manifest(uri).await;
            if manifest["status"] != "running" {
                return manifest;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl CollectedReply {
    /// The stored result that holds the rest.
    fn result(&self) -> String {
        let metadata = self.end.as_ref().unwrap().as_ref().unwrap();
        assert_eq!(metadata.is_truncated, Some(true));
        metadata.result_uri.clone().unwrap()
    }

    fn error(&self) -> &Error {
        self.end.as_ref().unwrap().as_ref().unwrap_err()
    }
}

async fn collect_reply(mut reply: Reply) -> CollectedReply {
    let mut answered = CollectedReply::default();
    let mut is_open = false;
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::Text(text) if is_open => answered.texts.last_mut().unwrap().push_str(&text),
            ReplyPart::Text(text) => {
                answered.texts.push(text);
                is_open = true;
            }
            ReplyPart::EndOfText => is_open = false,
            ReplyPart::Item(Content::Text { text, .. }) => answered.texts.push(text),
            ReplyPart::Body(head) => answered.head = Some(head),
            ReplyPart::Bytes(bytes) => answered.bytes.extend_from_slice(&bytes),
            ReplyPart::End(end) => answered.end = Some(end),
            _ => {}
        }
    }
    answered
}

fn backdate_file(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
}

/// Text of so many bytes, with distinct lines.
fn text_bytes(bytes: usize) -> Vec<u8> {
    let mut text: Vec<u8> = (0..).flat_map(|line| format!("line {line}: größer\n").into_bytes()).take(bytes).collect();
    while std::str::from_utf8(&text).is_err() {
        *text.last_mut().unwrap() = b'.';
    }
    text
}

/// Bytes that are not text and do not compress.
fn binary_bytes(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::once(0xff).chain((1..bytes).map(next)).collect()
}

#[tokio::test]
async fn large_text_is_truncated_inline_and_stored() {
    let scene = FileFixture::new(StoreLimits::default(), 1000).await;
    let bytes = text_bytes(20 * MIB);
    scene.write("big.txt", &bytes);
    let answered = scene.read("files://big.txt").await;
    assert_eq!(answered.texts[0].as_bytes(), &bytes[..answered.texts[0].len()]);
    assert!((997..=1000).contains(&answered.texts[0].len()));
    let uri = answered.result();
    let visible = answered.texts[0].len();
    let line = format!("Shown: the first {visible} of the file's 20971520 bytes. All of it is stored at {uri}.");
    assert_eq!(answered.texts[1], line);
    // A download follows the file that is still being written.
    let body = scene.data(&uri).await;
    assert!(body.bytes == bytes, "byte for byte");
    assert_eq!(body.head.unwrap().file.unwrap().media_type.as_deref(), Some("text/plain"));
    let manifest = scene.final_manifest(&uri).await;
    assert_eq!((&manifest["status"], &manifest["resource"]), (&json!("complete"), &json!("files://big.txt")));
    assert_eq!(manifest["file"], json!({"name": "big.txt", "bytes": 20 * MIB, "media_type": "text/plain"}));
    assert_eq!(manifest["columns"], json!([{"name": "bytes", "type": "bytea", "nullable": false}]));
    assert_eq!(manifest["rows"], 320);
    let body_version = scene.data(&uri).await.head.unwrap().version.unwrap();
    assert_eq!(body_version.bytes, Some(20 * MIB as u64));
    // The same file gives the same result; a changed file gives another one.
    assert_eq!(scene.read("files://big.txt").await.result(), uri);
    scene.write("big.txt", &bytes[..19 * MIB]);
    assert_ne!(scene.read("files://big.txt").await.result(), uri);
}

#[tokio::test]
async fn large_binary_file_is_described_and_stored() {
    let scene = FileFixture::new(StoreLimits::default(), 1000).await;
    let bytes = binary_bytes(20 * MIB);
    scene.write("photo.png", &bytes);
    let answered = scene.read("files://photo.png").await;
    let uri = answered.result();
    let message = answered.texts.concat().replace(&uri, "URI");
    insta::assert_snapshot!(message, @"photo.png (image/png) has 20971520 bytes and is not text; its content is not shown. All of it is stored at URI.");
    assert!(scene.data(&uri).await.bytes == bytes, "byte for byte");
    let named = |format: Format| json!({ "format": format.name() });
    let data = format!("{uri}/data");
    let refused = scene.read_as(&data, Some(Format::Csv), named(Format::Csv), None).await;
    insta::assert_snapshot!(refused.error().to_string(), @"
    the stored result is a file, which cannot be read as csv
    /results/{id}/data without a format returns the file; format=arrow returns its blocks.
    ");
    let arrow = scene.read_as(&data, Some(Format::Arrow), named(Format::Arrow), None).await;
    let media_type = arrow.head.unwrap().media_type;
    assert_eq!(media_type, Format::Arrow.media_type());
    let rows = arrow::ipc::reader::StreamReader::try_new(arrow.bytes.as_slice(), None).unwrap();
    assert_eq!(rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 320);
    let block = format!("{uri}/blocks/0");
    let refused = scene.read_as(&block, Some(Format::Json), Value::Null, None).await;
    assert_eq!(refused.error().kind(), ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn stored_file_is_private_to_its_caller() {
    let scene = FileFixture::new(StoreLimits::default(), 1000).await;
    scene.write("big.txt", &text_bytes(MIB));
    let uri = scene.read("files://big.txt").await.result();
    let origin = CallOrigin { transport: TransportKind::Rest, peer: None };
    let bea = || Caller::new(Arc::new(Principal::new("bea", AuthMethod::Key, Arc::new(Grants::everything()))), origin);
    for uri in [uri.clone(), format!("{uri}/data"), format!("{uri}/blocks/0")] {
        let refused = scene.read_as(&uri, Some(Format::Arrow), Value::Null, Some(bea())).await;
        assert_eq!(refused.error().kind(), ErrorKind::NotFound);
    }
    let own = scene.read_as("files://big.txt", None, Value::Null, Some(bea())).await.result();
    assert_ne!(own, uri);
}

#[tokio::test]
async fn file_changed_while_read_is_incomplete() {
    let scene = FileFixture::new(StoreLimits::default(), 1000).await;
    let path = scene.files.path().join("log.txt");
    for (change, subject) in [("cut", "cut off"), ("more", "written to")] {
        std::fs::write(&path, text_bytes(8 * MIB)).unwrap();
        backdate_file(&path);
        let mut call = call(CallTarget::Resource("files://log.txt".to_owned()), Value::Null);
        call.format = None;
        let mut reply = scene.registry.call(call).unwrap();
        // The beginning is sent, and the slow reader delays the rest.
        assert!(matches!(reply.next().await.unwrap(), ReplyPart::Text(_)));
        match change {
            "cut" => File::options().write(true).open(&path).unwrap().set_len(MIB as u64).unwrap(),
            _ => OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more").unwrap(),
        }
        let uri = collect_reply(reply).await.result();
        let manifest = scene.final_manifest(&uri).await;
        assert_eq!((&manifest["status"], subject), (&json!("incomplete"), subject));
        assert_eq!(manifest["reason"], "the file changed while it was read");
        let refused = scene.data(&uri).await;
        assert_eq!(refused.error().kind(), ErrorKind::Unavailable);
        assert!(refused.error().to_string().contains("its 8388608 bytes were stored"), "{}", refused.error());
    }
}

#[tokio::test]
async fn inline_budget_ends_at_a_character_boundary() {
    for (budget, visible) in [(4, "ab€"), (5, "ab€"), (6, "ab€"), (7, "ab€"), (8, "ab€€")] {
        let scene = FileFixture::new(StoreLimits::default(), budget).await;
        scene.write("euro.txt", "ab€€€€".as_bytes());
        let answered = scene.read("files://euro.txt").await;
        let expected = if budget == 4 { "ab" } else { visible };
        assert_eq!(answered.texts[0], expected, "{budget}");
        assert_eq!(scene.data(&answered.result()).await.bytes, "ab€€€€".as_bytes());
    }
    let scene = FileFixture::new(StoreLimits::default(), 1000).await;
    // A file that fits is not stored, even if it ends within a character.
    scene.write("cut.txt", b"ab\xe2\x82");
    let answered = scene.read("files://cut.txt").await;
    assert_eq!(answered.texts.concat(), "ab\u{fffd}");
    assert_eq!(answered.end.unwrap().unwrap(), AnswerMeta::default());
}

#[tokio::test]
async fn a_secret_is_masked_where_a_file_is_divided_or_cut() {
    let scene = FileFixture::new(StoreLimits::default(), MIB).await;
    let line = "x".repeat(FILE_PIECE_BYTES - 5);
    scene.write("divided.txt", format!("{line}EMP-123456\nend\n").as_bytes());
    let answered = scene.read("files://divided.txt").await;
    assert!(answered.texts.concat() == format!("{line}[secret: badge]\nend\n"), "a chunk ends within the secret");
    let line = "x".repeat(FILE_PIECE_BYTES - 40);
    let key = "-----BEGIN PRIVATE KEY-----\nMIIBVgIBADANBgkqhkiG\n9w0BAQEFAASCAUAwggE8\n-----END PRIVATE KEY-----";
    scene.write("key.pem", format!("{line}\n{key}").as_bytes());
    let answered = scene.read("files://key.pem").await;
    assert!(answered.texts.concat() == format!("{line}\n[secret: private_key]"), "a chunk ends within the key");
    let scene = FileFixture::new(StoreLimits::default(), 12).await;
    scene.write("cut.txt", b"badge EMP-123456 of ann\n");
    let answered = scene.read("files://cut.txt").await;
    assert_eq!(answered.texts[0], "badge [secre", "the budget ends within the secret");
    let scene = FileFixture::new(StoreLimits::default(), 20).await;
    scene.write("masked.txt", b"EMP-123456 EMP-1234\n");
    let answered = scene.read("files://masked.txt").await;
    assert!(answered.texts[1].starts_with("Shown: the first 15 of the file's 20 bytes."), "{:?}", answered.texts);
}

#[tokio::test]
async fn without_storage_room_only_the_preview_is_sent() {
    let scene = FileFixture::new(StoreLimits { bytes_per_principal: MIB as u64, ..StoreLimits::default() }, 1000).await;
    scene.write("noise", &binary_bytes(5 * MIB));
    let uri = scene.read("files://noise").await.result();
    let manifest = scene.final_manifest(&uri).await;
    assert_eq!(manifest["status"], "incomplete");
    assert_eq!(manifest["reason"], "your stored results have reached their storage limit");
    let scene = FileFixture::new(StoreLimits { writers: 0, ..StoreLimits::default() }, 1000).await;
    scene.write("big.txt", &text_bytes(MIB));
    scene.write("noise", &binary_bytes(5 * MIB));
    let answered = scene.read("files://big.txt").await;
    assert!(answered.texts[1].starts_with("Shown: the first "), "{:?}", answered.texts[1]);
    let metadata = answered.end.unwrap().unwrap();
    assert_eq!((metadata.is_truncated, metadata.result_uri), (Some(true), None));
    assert_eq!(scene.read("files://noise").await.error().kind(), ErrorKind::RateLimited);
}
