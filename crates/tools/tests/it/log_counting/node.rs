//! Log tools over one database, with and without a redactor: with one, everything is scanned.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{
    AllowedNames, AnswerProtection, CallOrigin, CallTarget, Caller, Content, Error, Principal, RedactedText, Redactor,
    TransportKind,
};
use tidegate_query::{Database, Databases, Executor};
use tidegate_runtime::event::EventDispatcher;
use tidegate_runtime::{Call, Registry, ReplyPart, SnapshotBuilder};
use tidegate_tools::{LogSource, LogSources, NodeIdentity, ToolServices, register_log_tools};

/// Finds no secrets.
#[derive(Debug)]
struct IdleRedactor;

impl Redactor for IdleRedactor {
    fn redact(&self, _text: &str) -> Option<RedactedText> {
        None
    }

    fn rejects_secrets(&self) -> bool {
        false
    }

    fn rules_id(&self) -> &str {
        "idle"
    }
}

/// The log tools over the table `events` of one database.
pub(crate) struct LogNode {
    counting: Arc<Registry>,
    scanning: Arc<Registry>,
}

impl LogNode {
    pub(crate) fn new(database: Arc<dyn Database>) -> Self {
        let source = LogSource {
            name: "app".to_owned(),
            database: database.name().to_owned(),
            table: "events".to_owned(),
            time: Some("time".to_owned()),
            ..LogSource::default()
        };
        Self::with_sources(&[database], &[source])
    }

    pub(crate) fn with_sources(databases: &[Arc<dyn Database>], sources: &[LogSource]) -> Self {
        let registry = |protection: AnswerProtection| {
            let identity = NodeIdentity { name: "t".into(), title: "T".into(), version: "1".into() };
            let executor = Executor::new(EventDispatcher::default());
            let services = ToolServices::new(Databases::new(databases.iter().cloned()), executor, identity);
            let builder = SnapshotBuilder::new().protection(protection);
            let sources = LogSources::new(sources.iter().cloned());
            let builder = register_log_tools(builder, &services, &sources, &AllowedNames::Everything);
            let registry = Registry::new(builder.build(), EventDispatcher::default());
            services.attach(&registry);
            registry
        };
        let redactor = AnswerProtection { redactor: Some(Arc::new(IdleRedactor)), fences_data: false };
        Self { counting: registry(AnswerProtection::default()), scanning: registry(redactor) }
    }

    /// The answer of the database's own counts, where it has them.
    pub(crate) async fn ask(&self, arguments: Map<String, Value>) -> Value {
        call(&self.counting, arguments).await
    }

    /// The answer of any of the log tools.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        self.try_call(tool, arguments).await.map_err(|error| error.to_string())
    }

    /// The same with all of an error.
    pub(crate) async fn try_call(&self, tool: &str, arguments: Value) -> Result<Value, Error> {
        let mut call = Call::new(CallTarget::Tool(tool.to_owned()), owner());
        if let Value::Object(arguments) = arguments {
            call.arguments = arguments;
        }
        send(&self.counting, call).await
    }

    /// The version tag of the source as a resource.
    pub(crate) async fn version_tag(&self) -> Option<String> {
        let caller = owner();
        let (watcher, variables) = self.counting.snapshot().watcher("tidegate://logs/app", &caller).unwrap();
        watcher.version_tag(&variables, &caller).await.unwrap()
    }

    /// The resource of a source.
    pub(crate) async fn read(&self, uri: &str) -> Result<Value, String> {
        let call = Call::new(CallTarget::Resource(uri.to_owned()), owner());
        send(&self.counting, call).await.map_err(|error| error.to_string())
    }

    /// The answer of a scan.
    pub(crate) async fn scan(&self, arguments: Map<String, Value>) -> Value {
        call(&self.scanning, arguments).await
    }
}

fn owner() -> Caller {
    Caller::new(Principal::process_user(), CallOrigin { transport: TransportKind::CommandLine, peer: None })
}

async fn call(registry: &Arc<Registry>, arguments: Map<String, Value>) -> Value {
    let mut call = Call::new(CallTarget::Tool("query_logs".to_owned()), owner());
    call.arguments = arguments.clone();
    send(registry, call).await.unwrap_or_else(|error| panic!("{error}: {arguments:?}"))
}

async fn send(registry: &Arc<Registry>, call: Call) -> Result<Value, Error> {
    let mut reply = registry.call(call)?;
    let mut text = String::new();
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::Text(part) | ReplyPart::Item(Content::Text { text: part, .. }) => text.push_str(&part),
            ReplyPart::End(Err(error)) => return Err(error),
            _ => {}
        }
    }
    Ok(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}
