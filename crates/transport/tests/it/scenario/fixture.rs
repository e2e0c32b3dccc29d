//! The server of a replay, its users and their access.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tidegate_core::{
    Access, Acl, AllowedNames, AuthMethod, AuthenticationError, Authenticator, Budget, CallLimits, Content,
    Credentials, Error, ErrorKind, Grants, IpNetwork, LevelLimits, Limits, Principal, Toolset, TransportKind,
    Violation,
};
use tidegate_runtime::{
    Answer, AnswerMeta, Handler, Prompt, Resource, Snapshot, SnapshotBuilder, Tool,
    event::{EventDispatcher, Subscriber},
    handler_fn,
};
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;
use tokio_util::sync::CancellationToken;

use crate::http::Server;
use tidegate_testkit::host::{Host, entries};

/// The maximum size of messages and bodies in bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 20_000;
/// The budget of the tool `vast`, more than most transports support.
const VAST_BYTES: usize = 100_000_000;
/// The time limit of the tool `hasty`.
const SHORT_TIMEOUT: Duration = Duration::from_millis(300);
/// The maximum number of open calls: of all users, and of one network user.
const OPEN_MAX: usize = 4;
const OPEN_OF_ONE_MAX: usize = 2;

/// All users with a key. `ann` may use everything but the secrets, `bob` little, `cat` also the secrets.
pub(super) const PEOPLE: [&str; 4] = ["ann", "bob", "cat", "eve"];
/// Every resource, for every caller.
pub(super) const URIS: [&str; 5] =
    ["test://plain", "test://decorated", "test://secret", "fruit://apple", "fruit://banana"];

/// A server of one replay.
pub(super) struct TestServer {
    pub(super) server: Server,
    people: Arc<People>,
    /// The number of calls of endless tools that have sent their output.
    pub(super) hanging: Arc<AtomicUsize>,
}

impl TestServer {
    pub(super) async fn start() -> Self {
        let metrics = Arc::new(Metrics::new());
        let hanging = Arc::new(AtomicUsize::new(0));
        let events = EventDispatcher::new([metrics.clone() as Arc<dyn Subscriber>]);
        let host = Host::with_entries(events, |builder| more(builder, None, &hanging));
        let people = Arc::new(People::default());
        let options =
            HttpOptions { authenticator: people.clone(), body_bytes_max: MESSAGE_BYTES_MAX, ..HttpOptions::default() };
        Self { server: Server::of(host, metrics, options).await, people, hanging }
    }

    /// The current snapshot of the registry.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.server.host.service.registry().snapshot()
    }

    /// The authenticator of a process that `person` started.
    pub(super) fn process_of(&self, person: &str) -> Arc<Process> {
        Arc::new(Process { people: self.people.clone(), user: person.to_owned() })
    }

    /// Revokes the key of `person`.
    pub(super) fn revoke(&self, person: &str) {
        self.people.revoked.lock().insert(person.to_owned());
    }

    /// Sets whether the authenticator has a newer configuration than the registry.
    pub(super) fn set_changing(&self, is_changing: bool) {
        self.people.generation.store(u64::from(is_changing), Ordering::SeqCst);
    }

    /// Removes the tool `tool`.
    pub(super) fn remove(&self, tool: &str) {
        let entries = more(entries(&CancellationToken::new()), Some(tool), &self.hanging);
        self.server.host.service.registry().swap(entries.build());
    }

    /// Ends all calls that are open.
    pub(super) fn end_calls(&self) {
        self.server.host.service.registry().jobs().cancel_all();
    }
}

/// The authenticator: the revoked keys, and its configuration generation.
#[derive(Default)]
struct People {
    revoked: Mutex<HashSet<String>>,
    generation: AtomicU64,
}

/// The key of a person.
pub(super) fn key(person: &str) -> String {
    format!("key-of-{person}")
}

/// The bearer token of a person.
pub(super) fn bearer(person: &str) -> String {
    format!("Bearer {}", key(person))
}

impl People {
    fn principal(&self, person: &str, proof: AuthMethod) -> Arc<Principal> {
        let principal = Principal::new(person, proof, Arc::new(grants(person)));
        Arc::new(Principal { generation: self.generation.load(Ordering::SeqCst), ..principal })
    }
}

fn grants(person: &str) -> Grants {
    let sales = AllowedNames::matching(["sales"]);
    let grants = match person {
        "bob" => Grants { entries: AllowedNames::matching(["script", "strict", "plain"]), ..Grants::for_anonymous() },
        "cat" => Grants { access: AllowedNames::matching(["secrets"]), ..Grants::for_anonymous() },
        _ => Grants::for_anonymous(),
    };
    Grants { toolsets: sales, ..grants }
}

#[async_trait]
impl Authenticator for People {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        let visible = credentials.bearer.ok_or(AuthenticationError::Missing)?;
        let is_known = |person: &&str| key(person) == visible && !self.revoked.lock().contains(*person);
        let person = PEOPLE.into_iter().find(is_known).ok_or(AuthenticationError::Invalid)?;
        Ok(self.principal(person, AuthMethod::Key))
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn enforces_authentication(&self) -> bool {
        true
    }
}

/// The authenticator of a process that a person started.
pub(super) struct Process {
    people: Arc<People>,
    user: String,
}

#[async_trait]
impl Authenticator for Process {
    async fn authenticate(&self, _: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        Err(AuthenticationError::Missing)
    }

    fn local_principal(&self) -> Arc<Principal> {
        self.people.principal(&self.user, AuthMethod::Process)
    }

    fn enforces_authentication(&self) -> bool {
        true
    }
}

/// The entries of the scenario in addition to those of the host, except for `removed`.
fn more(builder: SnapshotBuilder, removed: Option<&str>, hanging: &Arc<AtomicUsize>) -> SnapshotBuilder {
    let limits = Limits {
        open_calls_max: OPEN_MAX,
        per_principal: LevelLimits {
            running_calls_max: Some(OPEN_OF_ONE_MAX),
            waiting_calls_max: Some(0),
            ..LevelLimits::default()
        },
        ..Limits::default()
    };
    let tools = answering().into_iter().chain(guarded()).chain(bounded(hanging));
    let tools = tools.filter(|tool| removed != Some(tool.name.as_str()));
    let builder = tools.fold(builder.limits(limits), SnapshotBuilder::tool);
    let (hidden, secrets) = (received("you see it"), demanding("secrets"));
    let mut resource = Resource::new("test://secret", "secret", hidden.clone());
    let mut prompt = Prompt::new("confession", "Says a secret.", hidden);
    (resource.access, prompt.access) = (secrets.clone(), secrets);
    let toolset = |name: &str, entries: &[&str]| Toolset {
        name: name.to_owned(),
        entries: AllowedNames::matching(entries.iter().copied()),
    };
    builder
        .resource(resource)
        .prompt(prompt)
        .toolset(toolset("sales", &["script", "9999", "plain"]))
        .toolset(toolset("vault", &["script"]))
}

fn received(text: &'static str) -> Arc<dyn Handler> {
    handler_fn(move |_| async move { Ok(Answer::text(text)) })
}

fn demanding(name: &str) -> Access {
    Access { names: vec![name.to_owned()], ..Access::default() }
}

/// Tools with special answers and refusals.
fn answering() -> [Tool; 5] {
    let echo =
        handler_fn(|call| async move { Ok(Answer::text(serde_json::to_string(call.arguments()).unwrap_or_default())) });
    let adviser = handler_fn(|_| async {
        let violation = |path: &str, message: &str| Violation { path: path.to_owned(), message: message.to_owned() };
        let violations = vec![violation("order_by[0]", "there is no column \"nam\""), violation("", "it is too much")];
        let error = Error::invalid_arguments("the question is wrong:", violations);
        Err(error.with_choices(["name".to_owned(), "names".to_owned()]).with_hint("Ask get_schema."))
    });
    let contents = handler_fn(|_| async {
        Ok(Answer::written(|reply| async move {
            reply.send_text("one").await?;
            reply.end_text().await?;
            reply.send_text("two, in ").await?;
            reply.send_text("pieces: \u{fc}\u{1f30a}\"\\\n\u{1}").await?;
            reply.send_item(Content::text("three")).await?;
            Ok(AnswerMeta::default())
        }))
    });
    [
        Tool::new("strict", "Says its arguments.", echo).with_input_schema(strict()).unwrap(),
        Tool::new("adviser", "Is never content.", adviser),
        Tool::new("blocks", "Says much.", contents),
        Tool::new("fleeting", "Goes away.", received("still here")),
        Tool::new("a/b \"c\" \u{fc}", "Has a name of all sorts.", received("found")),
    ]
}

fn strict() -> Value {
    json!({
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 1, "maximum": 10},
            "mode": {"enum": ["fast", "slow"]},
            "name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]*$"},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        },
        "required": ["count"],
        "additionalProperties": false,
    })
}

/// Tools with restricted access. Their names are digits, so that none is suggested for another.
fn guarded() -> Vec<Tool> {
    let of = |name: &str, acl: Acl| {
        Tool::new(name, "Is guarded.", received("let in")).with_access(Access { acl, ..Access::default() })
    };
    let over = |name: &str, transport| of(name, Acl { transports: Some(vec![transport]), networks: None });
    let networks = IpNetwork::parse("203.0.113.0/24").into_iter().collect();
    let indoors = Access { toolset: Some("sales".to_owned()), ..Access::default() };
    vec![
        over("1111", TransportKind::Stdio),
        over("2222", TransportKind::StreamableHttp),
        over("3333", TransportKind::Sse),
        over("4444", TransportKind::WebSocket),
        over("5555", TransportKind::Rest),
        over("6666", TransportKind::CommandLine),
        of("7777", Acl { transports: None, networks: Some(networks) }),
        Tool::new("8888", "Is secret.", received("gold")).with_access(demanding("secrets")),
        Tool::new("9999", "Is behind a door.", received("warm")).with_access(indoors),
    ]
}

/// Tools with limits.
fn bounded(hanging: &Arc<AtomicUsize>) -> [Tool; 8] {
    let budget = handler_fn(|call| async move {
        let Budget { rows, bytes } = call.limits().inline;
        let structured = to_raw_value(&json!({"bytes": bytes, "rows": rows})).unwrap();
        Ok(Answer::content(Vec::new()).with_structured(structured))
    });
    let filler = handler_fn(|_| async {
        Ok(Answer::written(|reply| async move {
            let rows = reply.job().limits().inline.rows.unwrap_or(100);
            for row in 0..rows {
                reply.send_text(format!("{row}\n")).await?;
            }
            Ok(AnswerMeta { is_truncated: Some(true), ..AnswerMeta::default() })
        }))
    });
    let hanging = |before: &'static str| {
        let hanging = hanging.clone();
        handler_fn(move |_| {
            let hanging = hanging.clone();
            async move {
                Ok(Answer::written(move |reply| async move {
                    if !before.is_empty() {
                        reply.send_text(before).await?;
                    }
                    hanging.fetch_add(1, Ordering::SeqCst);
                    reply.job().cancelled().await;
                    Err(Error::new(ErrorKind::Cancelled, "nobody wants it any more"))
                }))
            }
        })
    };
    let inline = |rows, bytes| CallLimits { inline: Some(Budget { rows, bytes }), ..CallLimits::default() };
    let hasty = CallLimits { timeout: Some(SHORT_TIMEOUT), ..CallLimits::default() };
    [
        Tool::new("modest", "Says its budget.", budget.clone()).with_limits(inline(Some(7), Some(1_000))),
        Tool::new("vast", "Says its budget.", budget.clone()).with_limits(inline(None, Some(VAST_BYTES))),
        Tool::new("boundless", "Says its budget.", budget),
        Tool::new("page", "Fills its budget.", filler).with_limits(inline(Some(3), None)),
        Tool::new("hasty", "Takes too long.", hanging("")).with_limits(hasty),
        Tool::new("chatty", "Takes too long, and says so.", hanging("well ")).with_limits(hasty),
        Tool::new("endless", "Never ends.", hanging("")),
        Tool::new("babbling", "Never ends, and says so.", hanging("well ")),
    ]
}
