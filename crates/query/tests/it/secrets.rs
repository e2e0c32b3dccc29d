//! Secrets are masked in every form, rows stand behind a fence, statements are named to the audit log.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use async_trait::async_trait;
use parking_lot::Mutex;
use proptest::prelude::*;
use tidegate_core::{
    AnswerProtection, Budget, CallOrigin, CallTarget, Caller, Error, ErrorKind, Format, Principal, Redactor as _,
    TransportKind,
};
use tidegate_query::{BUILT_IN_RULES, Executor, OutputOptions, QueryRequest, SecretRule, SecretRules};
use tidegate_runtime::{
    AuditReservation, AuditStats, Auditor, Call, Job, Registry, SnapshotBuilder, Tool,
    event::{Event, EventDispatcher, Subscriber},
    handler_fn,
};
use tidegate_sql::{SqlDialect, Statement};

use crate::bodies::read_arrow;
use crate::fake::{AnswerOptions, AnswerRecord, FakeDatabase, batch, request_answer};
use crate::parquet::read_parquet;

const BADGE: &str = "EMP-123456";

fn rules(refuses: bool) -> AnswerProtection {
    let badge = SecretRule { name: "badge".to_owned(), pattern: "EMP-[0-9]{6}".to_owned() };
    let built_in = BUILT_IN_RULES.iter().filter_map(|(name, _)| SecretRule::built_in(name));
    let rules: Vec<SecretRule> = built_in.chain([badge]).collect();
    AnswerProtection { redactor: Some(Arc::new(SecretRules::new(&rules, refuses).unwrap())), fences_data: false }
}

/// The badge in every sort of column that can hold text.
fn badges() -> FakeDatabase {
    let text = format!("of {BADGE}.");
    let texts = || StringArray::from(vec![Some(text.as_str()), None, Some("plain")]);
    let field = |data_type| Arc::new(Field::new("item", data_type, true));
    let mut list = ListBuilder::new(StringBuilder::new());
    list.append_value([Some(BADGE), None]);
    list.append_null();
    list.append_value([Some("plain")]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    map.keys().append_value(BADGE);
    map.values().append_value(&text);
    map.append(true).unwrap();
    map.append(true).unwrap();
    map.append(false).unwrap();
    let members: StructArray = vec![(field(DataType::Utf8), Arc::new(texts()) as ArrayRef)].into();
    let words = DictionaryArray::<Int32Type>::from_iter([Some(BADGE), Some("plain"), Some(BADGE)]);
    let columns: [(&str, ArrayRef); 8] = [
        ("n", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("text", Arc::new(texts())),
        ("long", Arc::new(LargeStringArray::from(vec![Some(BADGE), Some(""), None]))),
        ("view", Arc::new(StringViewArray::from(vec![Some("a long text before EMP-123456"), None, Some("b")]))),
        ("list", Arc::new(list.finish())),
        ("map", Arc::new(map.finish())),
        ("members", Arc::new(members)),
        ("words", Arc::new(words)),
    ];
    let whole = batch(&columns);
    // Parts of arrays count as they are seen, and not as they lie in memory.
    FakeDatabase::new(vec![whole.slice(0, 1), whole.slice(1, 2)])
}

/// Everything that left, as text.
fn sent_text(seen: &AnswerRecord) -> String {
    let is = |form: Format| seen.head.as_ref().is_some_and(|head| head.media_type == form.media_type());
    let batches = if is(Format::Arrow) {
        read_arrow(&seen.body)
    } else if is(Format::Parquet) {
        read_parquet(&seen.body)
    } else {
        return format!("{:?}{}", seen.blocks, String::from_utf8_lossy(&seen.body));
    };
    format!("{batches:?}")
}

#[tokio::test]
async fn secrets_are_masked_in_every_form() {
    let forms = Format::FOR_REST.into_iter().map(|form| AnswerOptions { body: Some(form), ..AnswerOptions::default() });
    let formats =
        Format::FOR_MODELS.into_iter().map(|format| AnswerOptions { format: Some(format), ..AnswerOptions::default() });
    let mut seen_forms = 0;
    for wishes in forms.chain(formats) {
        let open = sent_text(&request_answer(&badges(), &wishes).await);
        assert!(open.contains(BADGE), "{wishes:?}");
        let seen = request_answer(&badges(), &AnswerOptions { guard: rules(false), ..wishes.clone() }).await;
        let text = sent_text(&seen);
        assert!(seen.failure.is_none() && !text.contains("EMP-") && text.contains("[secret: badge]"), "{text}");
        assert!(text.contains("plain"), "{text}");
        assert!(seen.secrets >= 9, "{}", seen.secrets);
        seen_forms += 1;
    }
    assert!(seen_forms >= 13);
}

#[tokio::test]
async fn an_answer_with_a_secret_is_refused_if_configured() {
    for body in Format::FOR_REST.into_iter().map(Some).chain([None]) {
        let seen =
            request_answer(&badges(), &AnswerOptions { guard: rules(true), body, ..AnswerOptions::default() }).await;
        assert_eq!(seen.failure.as_ref().map(Error::kind), Some(ErrorKind::Forbidden), "{body:?}");
        assert!(!sent_bytes(&seen).contains("EMP-"));
        assert!(seen.failure.unwrap().message().contains("(badge)"));
    }
    let seen = request_answer(
        &FakeDatabase::counting(2, 2),
        &AnswerOptions { guard: rules(true), ..AnswerOptions::default() },
    )
    .await;
    assert!(seen.failure.is_none() && seen.secrets == 0);
}

fn sent_bytes(seen: &AnswerRecord) -> String {
    format!("{:?}{}", seen.blocks, String::from_utf8_lossy(&seen.body))
}

#[tokio::test]
async fn unique_values_are_those_of_masked_rows() {
    let wishes = AnswerOptions { extract: Some("text".to_owned()), guard: rules(false), ..AnswerOptions::default() };
    let seen = request_answer(&badges(), &wishes).await;
    assert!(seen.blocks[0].contains("of [secret: badge]."), "{:?}", seen.blocks);
}

#[test]
fn each_built_in_rule_finds_its_secret_and_nothing_else() {
    let screen = rules(false).redactor.unwrap();
    let key = |letter: &str, length: usize| letter.repeat(length);
    let found = [
        format!("aws AKIA{} key", key("A1", 8)),
        format!(
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{}\n-----END RSA PRIVATE KEY-----",
            key("aB3/", 99)
        ),
        format!("{{\"k\": \"-----BEGIN PRIVATE KEY-----\\n{}\\n\"}}", key("aB3+", 9)),
        format!("ghp_{}", key("a1", 18)),
        format!("eyJ{}.eyJ{}.{}", key("a", 20), key("b", 20), key("c", 43)),
        format!("key=sk-{}", key("a1", 12)),
        format!("sk_live_{}", key("a1", 12)),
        format!("tg_{}_{}", key("a", 8), key("b", 32)),
    ];
    let masked: Vec<String> = found.iter().map(|text| screen.redact(text).unwrap().text).collect();
    insta::assert_snapshot!(masked.join("\n"), @r#"
    aws [secret: aws_access_key] key
    [secret: private_key]
    {"k": "[secret: private_key]"}
    [secret: github_token]
    [secret: jwt]
    key=[secret: api_key]
    [secret: api_key]
    [secret: tidegate_key]
    "#);
    let plain =
        ["task-management-of-many-things-at-once", "AKIA and more", "-----BEGIN CERTIFICATE-----", "eyJ.eyJ.x", ""];
    assert!(plain.iter().all(|text| screen.redact(text).is_none()));
}

#[test]
fn explains_invalid_rules() {
    let wrong = |name: &str, pattern: &str| {
        let rule = SecretRule { name: name.to_owned(), pattern: pattern.to_owned() };
        SecretRules::new(&[rule], false).unwrap_err().to_string().lines().last().unwrap().to_owned()
    };
    let message = [
        wrong("a b", "x"),
        wrong("a", "x*"),
        wrong("a", "("),
        wrong("a", &"x".repeat(1_001)),
        wrong("a", "(?:x{1000}){1000}"),
    ];
    insta::assert_snapshot!(message.join("\n"), @r"
    a rule's name is 1 to 64 of letters, digits, _ and -
    the pattern matches the empty string, and so every text
    error: unclosed group
    the pattern is longer than 1000 bytes
    Compiled regex exceeds size limit of 1048576 bytes.
    ");
    let one = |pattern: &str| {
        SecretRules::new(&[SecretRule { name: "a".to_owned(), pattern: pattern.to_owned() }], false).unwrap()
    };
    assert_ne!(one("x").rules_id(), one("y").rules_id());
}

fn fenced() -> AnswerOptions {
    AnswerOptions { guard: AnswerProtection { redactor: None, fences_data: true }, ..AnswerOptions::default() }
}

/// The text within the fence.
fn within(text: &str) -> &str {
    let (opening, rest) = text.split_once('\n').unwrap();
    let mark = opening.strip_prefix("[data ").unwrap().split_once(':').unwrap().0;
    let end = format!("[end {mark}]");
    let rest = rest.strip_suffix(&end).unwrap();
    assert!(!rest.contains(mark));
    rest
}

#[tokio::test]
async fn fences_content_but_not_bodies() {
    for format in Format::FOR_MODELS {
        let wishes = AnswerOptions { format: Some(format), ..AnswerOptions::default() };
        let open = request_answer(&FakeDatabase::counting(2, 2), &wishes).await;
        let seen =
            request_answer(&FakeDatabase::counting(2, 2), &AnswerOptions { format: Some(format), ..fenced() }).await;
        let (inner, plain) = (within(&seen.blocks[0]).trim_end_matches('\n'), open.blocks[0].trim_end_matches('\n'));
        if format != Format::Json {
            assert_eq!(inner, plain, "{format:?}");
        }
        assert_eq!(seen.metadata.bytes, Some(seen.blocks[0].len() as u64));
    }
    let seen =
        request_answer(&FakeDatabase::counting(1, 2), &AnswerOptions { body: Some(Format::Csv), ..fenced() }).await;
    assert!(!String::from_utf8_lossy(&seen.body).contains("[data"));
}

#[tokio::test]
async fn the_fence_is_closed_when_a_query_fails() {
    let failure: fn() -> Error = || Error::new(ErrorKind::Unavailable, "gone");
    let seen =
        request_answer(&FakeDatabase { failure: Some(failure), ..FakeDatabase::counting(5, 1_000) }, &fenced()).await;
    assert!(seen.failure.is_some());
    within(&seen.blocks[0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn fence_counts_toward_budget(bytes in 300_usize..4_000, rows in 1_usize..60) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let seen = runtime.block_on(async {
            let budget = Budget { rows: None, bytes: Some(bytes) };
            request_answer(&FakeDatabase::counting(3, rows), &AnswerOptions { budget, ..fenced() }).await
        });
        prop_assert!(seen.blocks[0].len() <= bytes, "{} of {bytes}", seen.blocks[0].len());
        within(&seen.blocks[0]);
    }
}

/// Keeps what was asked.
#[derive(Default, Clone)]
struct AuditRecorder(Arc<Mutex<Vec<String>>>);

impl Subscriber for AuditRecorder {
    fn on_event(&self, _: Event<'_>) {}
}

#[async_trait]
impl Auditor for AuditRecorder {
    async fn reserve(&self) -> Result<Box<dyn AuditReservation>, Error> {
        Ok(Box::new(self.clone()))
    }

    fn record_unreserved(&self, _: &Job, _: &'static str) {}

    fn stats(&self) -> AuditStats {
        AuditStats::default()
    }
}

impl AuditReservation for AuditRecorder {
    fn write(self: Box<Self>, job: &Job, _: &'static str) {
        let message = job.take_statements().into_iter().map(|audited_statement| {
            let (database, tables) = (audited_statement.database, audited_statement.tables.join("+"));
            format!("{database} {tables} {}", (audited_statement.fingerprint)())
        });
        self.0.lock().extend(message);
    }
}

#[tokio::test]
async fn records_statements_in_audit_log() {
    let notes = AuditRecorder::default();
    let events = EventDispatcher::default().with_auditor(Arc::new(notes.clone()));
    let executor = Executor::new(events.clone());
    let long = format!("SELECT * FROM flights WHERE carrier IN ('{}', 'b')", "x".repeat(10_000));
    for sql in
        ["SELECT * FROM flights, airlines WHERE distance > 7", "select * from flights where carrier in ('a')", &long]
    {
        let (executor, statement) = (executor.clone(), Statement::parse(sql, SqlDialect::DataFusion).unwrap());
        let handler = handler_fn(move |_call| {
            let question = QueryRequest {
                database: Arc::new(FakeDatabase::counting(1, 1)),
                statement: statement.clone(),
                output: OutputOptions::default(),
            };
            std::future::ready(Ok(executor.answer(question)))
        });
        let registry =
            Registry::new(SnapshotBuilder::new().tool(Tool::new("ask", "", handler)).build(), events.clone());
        let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
        let call = Call::new(CallTarget::Tool("ask".to_owned()), Caller::new(Principal::process_user(), origin));
        let mut reply = registry.call(call).unwrap();
        while reply.next().await.is_some() {}
    }
    let message = notes.0.lock().clone();
    assert_eq!(message.len(), 3);
    assert!(
        message[0].starts_with("demo flights+airlines ") && message[0].len() == "demo flights+airlines ".len() + 16
    );
    assert_eq!(message[1], message[2], "values do not count");
}
