//! A registry whose entries execute the steps in their arguments, and resources that tests change.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tidegate_core::{
    Access, Annotations, Budget, Caller, Completion, CompletionRequest, Content, ContentRole, Error, ErrorKind, Format,
    Icon, InputAnswer, InputRequest, LogLevel, Principal, ResourceBody, ResourceContents, ResourceLink,
    TemplateVariables, UriTemplate,
};
use tidegate_mcp::{McpService, ServerDescription};
use tidegate_runtime::event::EventDispatcher;
use tidegate_runtime::{
    Answer, AnswerMeta, BodyMetadata, Completer, Handler, Job, Prompt, PromptArgument, Registry, ReplySender, Resource,
    ResourceLister, ResourceTemplate, ResourceWatcher, RunningCall, Snapshot, SnapshotBuilder, Tool, ToolAnnotations,
    handler_fn,
};
use tokio_util::sync::CancellationToken;

/// The text that the step `flood` repeats: 64 KiB with characters that are escaped.
pub static FLOOD_CHUNK: LazyLock<String> = LazyLock::new(|| "0123456789abcd\"\n".repeat(4_096));

/// A service, and the token that releases the step `wait`.
pub struct Host {
    pub service: Arc<McpService>,
    pub release: CancellationToken,
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    pub fn new() -> Self {
        Self::with_events(EventDispatcher::default())
    }

    pub fn with_events(events: EventDispatcher) -> Self {
        Self::with_entries(events, |entries| entries)
    }

    pub fn with_entries(events: EventDispatcher, more: impl FnOnce(SnapshotBuilder) -> SnapshotBuilder) -> Self {
        let cancellation_token = CancellationToken::new();
        Self { service: service(more(entries(&cancellation_token)), events), release: cancellation_token }
    }

    pub fn from_entries(entries: SnapshotBuilder) -> Self {
        Self { service: service(entries, EventDispatcher::default()), release: CancellationToken::new() }
    }
}

fn service(entries: SnapshotBuilder, events: EventDispatcher) -> Arc<McpService> {
    let description = ServerDescription {
        name: "test".to_owned(),
        title: Some("Test".to_owned()),
        version: "1.2.3".to_owned(),
        instructions: Some("Say \"hello\" first.".to_owned()),
    };
    McpService::new(Registry::new(entries.build(), events), description)
}

/// Every kind of entry, once with the minimum and once with everything that an entry can have.
pub fn entries(cancellation_token: &CancellationToken) -> SnapshotBuilder {
    let script: Arc<dyn Handler> = Arc::new(Script(cancellation_token.clone()));
    let steps = json!({"type": "object", "properties": {"steps": {"type": "array"}}, "additionalProperties": false});
    let rows = json!({"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]});
    let tool =
        |name: &str| Tool::new(name, "Does its steps.", script.clone()).with_input_schema(steps.clone()).unwrap();
    SnapshotBuilder::new()
        .tool(tool("script"))
        .tool(decorated(tool("decorated")).with_output_schema(rows).unwrap())
        .tool(tool("listing").with_output_schema(json!({"type": "array", "items": {"type": "integer"}})).unwrap())
        .resource(Resource::new("test://plain", "plain", script.clone()))
        .resource(decorated_resource(&script))
        .template(scripted_template(&script))
        .template(listed_template(&script))
        .prompt(Prompt::new("plain", "Says what its steps are.", script.clone()))
        .prompt(decorated_prompt(&script))
}

fn icon() -> Icon {
    Icon {
        src: "data:image/png;base64,AA==".to_owned(),
        mime_type: Some("image/png".to_owned()),
        sizes: vec!["48x48".to_owned()],
    }
}

fn decorated(mut tool: Tool) -> Tool {
    tool.icons = vec![icon()];
    tool.meta.insert("dev.tidegate/test".to_owned(), json!(1));
    tool.with_title("Decorated").with_annotations(ToolAnnotations {
        read_only: Some(true),
        destructive: Some(false),
        idempotent: Some(true),
        open_world: Some(false),
    })
}

fn decorated_resource(script: &Arc<dyn Handler>) -> Resource {
    let mut resource = Resource::new("test://decorated", "decorated", script.clone());
    resource.title = Some("Decorated".to_owned());
    resource.description = Some("With everything.".to_owned());
    resource.mime_type = Some("text/plain".to_owned());
    resource.size_bytes = Some(12);
    resource.icons = vec![icon()];
    resource.annotations = Some(Annotations {
        audience: vec![ContentRole::User, ContentRole::Assistant],
        priority: Some(0.5),
        last_modified: Some("2026-07-28T00:00:00Z".to_owned()),
    });
    resource
}

/// `script://` and the steps as JSON, percent-encoded.
fn scripted_template(script: &Arc<dyn Handler>) -> ResourceTemplate {
    let uri = UriTemplate::parse("script://{steps}").unwrap();
    let mut template = ResourceTemplate::new(uri, "script", script.clone());
    template.mime_type = Some("application/json".to_owned());
    template
}

fn listed_template(script: &Arc<dyn Handler>) -> ResourceTemplate {
    let mut template = ResourceTemplate::new(UriTemplate::parse("fruit://{fruit}").unwrap(), "fruit", script.clone());
    template.title = Some("Fruit".to_owned());
    template.icons = vec![icon()];
    template.completer = Some(Arc::new(Fruits));
    template.lister = Some(Arc::new(FruitLister(script.clone())));
    template
}

fn decorated_prompt(script: &Arc<dyn Handler>) -> Prompt {
    let mut prompt = Prompt::new("decorated", "Takes a step.", script.clone());
    prompt.title = Some("Decorated".to_owned());
    prompt.icons = vec![icon()];
    prompt.completer = Some(Arc::new(Fruits));
    prompt.arguments = vec![
        PromptArgument {
            name: "steps".to_owned(),
            title: Some("Steps".to_owned()),
            description: Some("As JSON.".to_owned()),
            required: true,
        },
        PromptArgument { name: "mood".to_owned(), ..PromptArgument::default() },
    ];
    prompt
}

/// Completes from a list; `many` has more values than one answer may hold.
struct Fruits;

#[async_trait]
impl Completer for Fruits {
    async fn complete(&self, request: &CompletionRequest, _: Arc<Job>) -> Result<Completion, Error> {
        if request.argument == "many" {
            return Ok(Completion::matching((0..250).map(|n| n.to_string()), &request.value));
        }
        let basket = request.context.get("basket").map_or("apple", String::as_str);
        Ok(Completion::matching([basket, "apricot", "banana"].map(str::to_owned), &request.value))
    }
}

struct FruitLister(Arc<dyn Handler>);

#[async_trait]
impl ResourceLister for FruitLister {
    async fn list(&self, _: &Principal) -> Result<Vec<Resource>, Error> {
        Ok(["banana", "apple"].map(|name| Resource::new(format!("fruit://{name}"), name, self.0.clone())).into())
    }
}

/// Executes its steps, which are an argument, a variable, or JSON text in an argument of a prompt.
struct Script(CancellationToken);

#[async_trait]
impl Handler for Script {
    async fn handle(&self, _: RunningCall) -> Result<Answer, Error> {
        let release = self.0.clone();
        Ok(Answer::written(move |reply| execute_steps(reply, release)))
    }
}

async fn execute_steps(reply: ReplySender, release: CancellationToken) -> Result<AnswerMeta, Error> {
    let job = reply.job();
    let steps = match (job.arguments().get("steps"), job.variable("steps")) {
        (Some(Value::String(text)), _) => serde_json::from_str(text).unwrap(),
        (Some(steps), _) => steps.clone(),
        (None, Some(text)) => serde_json::from_str(text).unwrap(),
        (None, None) => json!([["text", "nothing to do"]]),
    };
    let mut metadata = AnswerMeta::default();
    // Sent after the last input request: an answer that has begun cannot request input.
    let mut answers = String::new();
    for step in steps.as_array().unwrap() {
        if step[0] != "ask" && step[0] != "progress" && !answers.is_empty() {
            reply.send_text(std::mem::take(&mut answers)).await?;
        }
        match (step[0].as_str().unwrap(), &step[1]) {
            ("wait", _) => release.cancelled().await,
            ("cancelled", _) => job.cancelled().await,
            ("fail", message) => return Err(Error::new(kind(step[2].as_str()), message.as_str().unwrap())),
            ("panic", _) => panic!("as asked"),
            ("meta", members) => metadata.other.extend(members.as_object().unwrap().clone()),
            ("rows", rows) => metadata.rows = rows.as_u64(),
            ("truncated", is_truncated) => metadata.is_truncated = is_truncated.as_bool(),
            ("ask", expected) => answers.push_str(&ask(expected, reply.call()).await?),
            ("body", bounds) => reply.begin_body(head(job, bounds)).await?,
            (verb, value) => send(verb, value, step, &reply).await?,
        }
    }
    if !answers.is_empty() {
        reply.send_text(answers).await?;
    }
    Ok(metadata)
}

/// Requests the inputs in `expected` by key, and returns the answers as one line of JSON.
async fn ask(expected: &Value, call: &RunningCall) -> Result<String, Error> {
    let requests = expected.as_object().unwrap().iter().map(|(key, expected)| (key.as_str(), input_request(expected)));
    let answers = call.ask_all(requests).await?;
    let message = answers.into_iter().map(|(key, answer)| match answer {
        InputAnswer::Accepted(content) => (key, Value::Object(content)),
        InputAnswer::Declined => (key, json!("declined")),
        InputAnswer::Cancelled => (key, json!("cancelled")),
        InputAnswer::Sampled(result) => (key, result["content"]["text"].clone()),
        InputAnswer::Roots(roots) => (key, json!(roots)),
    });
    Ok(Value::Object(message.collect()).to_string())
}

/// `{"form": message}` requests a name, `{"lax": message}` accepts an unsolicited one; `{"url": address}`,
/// `{"sampling": prompt}`, `"roots"`.
fn input_request(expected: &Value) -> InputRequest {
    let form = |message: &Value| {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        InputRequest::form(message.as_str().unwrap(), schema)
    };
    match expected.as_object().and_then(|expected| expected.iter().next()) {
        Some((kind, message)) if kind == "form" => form(message),
        Some((kind, message)) if kind == "lax" => form(message).allow_unsolicited(),
        Some((kind, url)) if kind == "url" => InputRequest::url("Please go there.", url.as_str().unwrap()),
        Some((_, prompt)) => {
            let content = json!({"type": "text", "text": prompt});
            let params = json!({"messages": [{"role": "user", "content": content}], "maxTokens": 100});
            InputRequest::sampling(params.as_object().unwrap().clone())
        }
        None => InputRequest::roots(),
    }
}

/// A body in the format of the call, truncated after `rows_max` rows.
fn head(job: &Job, rows_max: &Value) -> BodyMetadata {
    let media_type = job.format().map_or("text/plain", Format::media_type);
    BodyMetadata { media_type, budget: Budget { rows: rows_max.as_u64(), bytes: None }, version: None, file: None }
}

fn kind(name: Option<&str>) -> ErrorKind {
    ErrorKind::ALL.iter().copied().find(|kind| Some(kind.name()) == name).unwrap_or(ErrorKind::Unavailable)
}

async fn send(verb: &str, value: &Value, step: &Value, reply: &ReplySender) -> Result<(), Error> {
    let data = Bytes::from_static(b"\x00\x01\xff");
    let text = || value.as_str().unwrap().to_owned();
    let mime_type = text_or(value, "application/octet-stream");
    match verb {
        "text" => reply.send_text(text()).await,
        "flood" => {
            for _ in 0..value.as_u64().unwrap() / FLOOD_CHUNK.len() as u64 {
                reply.send_text(&*FLOOD_CHUNK).await?;
            }
            Ok(())
        }
        "bytes" => reply.send_bytes(text().into()).await,
        "torrent" => {
            for _ in 0..value.as_u64().unwrap() / FLOOD_CHUNK.len() as u64 {
                reply.send_bytes(Bytes::from_static(FLOOD_CHUNK.as_bytes())).await?;
            }
            Ok(())
        }
        "end" => reply.end_text().await,
        "block" => reply.send_item(Content::text(text())).await,
        "image" => reply.send_item(Content::Image { data, mime_type }).await,
        "audio" => reply.send_item(Content::Audio { data, mime_type }).await,
        "link" => reply.send_item(Content::Link(link(text()))).await,
        "resource" => {
            reply.send_item(Content::Resource(contents(text(), ResourceBody::Text("inside".to_owned())))).await
        }
        "blob" => reply.send_item(Content::Resource(contents(text(), ResourceBody::Blob(data)))).await,
        "say" => reply.send_prompt_message(ContentRole::Assistant, Content::text(text())).await,
        "structured" => reply.send_structured(value).await,
        "progress" => {
            reply.call().progress(value.as_f64().unwrap(), step[2].as_f64(), step[3].as_str().map(str::to_owned)).await
        }
        "log" => reply.call().log(LogLevel::parse(&text()).unwrap(), Some("script".to_owned()), step[2].clone()).await,
        other => panic!("there is no step {other}"),
    }
}

fn text_or(value: &Value, default: &str) -> String {
    value.as_str().unwrap_or(default).to_owned()
}

fn link(uri: String) -> ResourceLink {
    ResourceLink {
        uri,
        name: "link".to_owned(),
        title: Some("Link".to_owned()),
        description: None,
        mime_type: Some("text/plain".to_owned()),
        size_bytes: Some(3),
    }
}

fn contents(uri: String, body: ResourceBody) -> ResourceContents {
    ResourceContents { uri, mime_type: Some("text/plain".to_owned()), body }
}

/// Resources `watched://NAME` with a version each, which tests increment.
#[derive(Debug, Default)]
pub struct WatchedResources {
    versions: Mutex<BTreeMap<String, u64>>,
}

impl WatchedResources {
    /// A host with these resources.
    pub fn with_host() -> (Host, Arc<Self>) {
        let resources = Arc::new(Self::default());
        let host =
            Host::with_entries(EventDispatcher::default(), |entries| resources.added_to(entries, Access::default()));
        (host, resources)
    }

    /// Changes the resource `name`.
    pub fn change(&self, name: &str) {
        *self.versions.lock().entry(name.to_owned()).or_default() += 1;
    }

    /// A snapshot with the entries of the host, and these resources for callers with `access`.
    pub fn snapshot(self: &Arc<Self>, access: Access) -> Snapshot {
        self.added_to(entries(&CancellationToken::new()), access).build()
    }

    fn added_to(self: &Arc<Self>, entries: SnapshotBuilder, access: Access) -> SnapshotBuilder {
        let uri = UriTemplate::parse("watched://{name}").unwrap();
        let mut template = ResourceTemplate::new(uri, "watched", handler_fn(|_| async { Ok(Answer::content(vec![])) }));
        template.watcher = Some(self.clone());
        template.access = access;
        entries.template(template)
    }
}

#[async_trait]
impl ResourceWatcher for WatchedResources {
    async fn version_tag(&self, variables: &TemplateVariables, _: &Caller) -> Result<Option<String>, Error> {
        Ok(Some(self.versions.lock().get(&variables["name"]).copied().unwrap_or_default().to_string()))
    }
}
