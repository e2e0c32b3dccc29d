//! A small host program, and replies as text.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tidegate_core::{
    AllowedNames, AuthMethod, CallOrigin, CallTarget, Caller, Content, Error, ErrorKind, Grants, Limits, Principal,
    TransportKind,
};
use tidegate_runtime::{
    Answer, Call, Handler, Prompt, Registry, Reply, ReplyNotification, ReplyPart, Resource, SnapshotBuilder, Tool,
    event::{Event, EventDispatcher, Subscriber},
    handler_fn,
};

/// A call over stdio, which has no network.
pub(crate) const LOCAL: CallOrigin = CallOrigin { transport: TransportKind::Stdio, peer: None };

/// A registry and the events that it emitted.
pub(crate) struct Host {
    pub(crate) registry: Arc<Registry>,
    pub(crate) recorder: Arc<Recorder>,
}

impl Host {
    pub(crate) fn new(snapshot: SnapshotBuilder) -> Self {
        Self::with_limits(Limits::default(), snapshot)
    }

    pub(crate) fn with_limits(limits: Limits, snapshot: SnapshotBuilder) -> Self {
        let recorder = Arc::new(Recorder::default());
        let events = EventDispatcher::new([recorder.clone() as Arc<dyn Subscriber>]);
        Self { registry: Registry::new(snapshot.limits(limits).build(), events), recorder }
    }

    /// Starts a call that is admitted.
    pub(crate) fn begin(&self, call: Call) -> Reply {
        self.registry.call(call).unwrap()
    }

    /// The whole answer as text, or the refusal of the call.
    pub(crate) async fn call_to_text(&self, call: Call) -> String {
        match self.registry.call(call) {
            Ok(reply) => reply_text(reply).await,
            Err(error) => format!("refused {}: {error}", error.kind().name()),
        }
    }
}

/// Keeps a line for each event.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    pub(crate) fn lines(&self) -> String {
        self.0.lock().join("\n")
    }
}

impl Subscriber for Recorder {
    fn on_event(&self, event: Event<'_>) {
        let line = match event {
            Event::CallStarted { job } => format!("started {} {}", job.target().kind(), job.target().name()),
            Event::CallEnded { job, outcome } => {
                format!("ended {} {}: {outcome}", job.target().kind(), job.target().name())
            }
            Event::CallRefused { kind, name, outcome, .. } => format!("refused {kind} {name}: {outcome}"),
            Event::LimitReached { level, measure, .. } => format!("limit of {}: {}", level.name(), measure.name()),
            Event::ErrorDetail { id, kind: ErrorKind::Internal, detail, .. } => format!("fault {id}: {detail}"),
            Event::ErrorDetail { id, kind, detail, .. } => format!("detail of {} {id}: {detail}", kind.name()),
            Event::RegistryChanged { version } => format!("registry {version}"),
            // It depends on timing whether a call waits.
            Event::CallWaiting { .. } => return,
            other => format!("{other:?}"),
        };
        self.0.lock().push(line);
    }
}

/// A tool whose handler answers `text`.
pub(crate) fn tool_with_text(name: &str, text: &'static str) -> Tool {
    Tool::new(name, "", text_handler(text))
}

/// A resource whose handler answers `text`.
pub(crate) fn resource_with_text(uri: &str, text: &'static str) -> Resource {
    Resource::new(uri, uri, text_handler(text))
}

/// A prompt whose handler answers `text`.
pub(crate) fn prompt_with_text(name: &str, text: &'static str) -> Prompt {
    Prompt::new(name, "", text_handler(text))
}

pub(crate) fn text_handler(text: &'static str) -> Arc<dyn Handler> {
    handler_fn(move |_| async move { Ok(Answer::text(text)) })
}

/// A handler that ends only when its job is cancelled, and then at once.
pub(crate) fn until_cancelled() -> Arc<dyn Handler> {
    handler_fn(|call| async move {
        call.cancelled().await;
        Ok(Answer::content(vec![]))
    })
}

/// A caller with these access names and all entries.
pub(crate) fn caller_with_access(subject: &str, access: &[&str]) -> Caller {
    caller_with_grants(
        subject,
        Grants { access: AllowedNames::matching(access.iter().copied()), ..Grants::for_anonymous() },
    )
}

/// A caller with exactly these grants.
pub(crate) fn caller_with_grants(subject: &str, grants: Grants) -> Caller {
    Caller::new(Arc::new(Principal::new(subject, AuthMethod::Process, Arc::new(grants))), LOCAL)
}

/// The owner, in front of the machine.
pub(crate) fn process_user() -> Caller {
    Caller::new(Principal::process_user(), LOCAL)
}

pub(crate) fn call(target: CallTarget) -> Call {
    Call::new(target, process_user())
}

pub(crate) fn tool_call(name: &str) -> Call {
    call(CallTarget::Tool(name.to_owned()))
}

pub(crate) fn with_arguments(mut call: Call, arguments: Value) -> Call {
    call.arguments = arguments.as_object().unwrap().clone();
    call
}

pub(crate) fn called_by(caller: &Caller, mut call: Call) -> Call {
    call.caller = caller.clone();
    call
}

/// Runs every other task until all of them wait. Needs paused time, in which a sleep ends only when no task can
/// continue.
pub(crate) async fn run_until_idle() {
    pass_time(Duration::from_millis(1)).await;
}

/// Advances the time by `time`. Needs paused time, so it takes no real time.
pub(crate) async fn pass_time(time: Duration) {
    tokio::time::sleep(time).await;
}

/// The whole reply, one line for each part. Input requests are dropped, as by an adapter that cannot ask.
pub(crate) async fn reply_text(mut reply: Reply) -> String {
    let mut lines = Vec::new();
    while let Some(part) = reply.next().await {
        lines.extend(part_line(part));
    }
    lines.join("\n")
}

fn part_line(part: ReplyPart) -> Option<String> {
    Some(match part {
        ReplyPart::Text(text) => format!("text {text}"),
        ReplyPart::EndOfText => "end of text".to_owned(),
        ReplyPart::Item(content) => format!("block {}", content_text(&content)),
        ReplyPart::PromptMessage(role, content) => format!("{role:?} {}", content_text(&content)),
        ReplyPart::Structured(value) => format!("structured {}", value.get()),
        ReplyPart::Body(head) => format!("body {head:?}"),
        ReplyPart::Bytes(bytes) => format!("bytes {bytes:?}"),
        ReplyPart::Completion(completion) => {
            format!("completion {:?} of {:?}, more: {}", completion.values, completion.total, completion.has_more)
        }
        ReplyPart::Notification(ReplyNotification::Progress { done, total, message }) => {
            format!("progress {done} of {total:?} {message:?}")
        }
        ReplyPart::Notification(ReplyNotification::Log { level, logger, data }) => {
            format!("log {} {logger:?} {data}", level.name())
        }
        ReplyPart::InputRequest(_) => return None,
        ReplyPart::End(Ok(metadata)) => {
            let missing = metadata.missing_nodes.map(|missing| missing.to_json_members()).unwrap_or_default();
            format!("done {}", Value::Object(missing))
        }
        ReplyPart::End(Err(error)) => error_line(&error),
    })
}

fn error_line(error: &Error) -> String {
    let mut text = error.to_string();
    if let Some(id) = error.id() {
        text = text.replace(&id.to_string(), "<id>");
    }
    format!("failed {}: {text}", error.kind().name())
}

fn content_text(content: &Content) -> String {
    match content {
        Content::Text { text, .. } => text.clone(),
        other => format!("{other:?}"),
    }
}
