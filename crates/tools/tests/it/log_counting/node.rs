//! Log tools over one database, with and without a redactor: with one, everything is scanned.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{
    AllowedNames, AnswerProtection, CallOrigin, CallTarget, Caller, Principal, RedactedText, Redactor, TransportKind,
};
use tidegate_query::{Database, Databases, Executor};
use tidegate_runtime::event::EventDispatcher;
use tidegate_runtime::{Call, Chunk, Outcome, Registry, ReplyEvent, SnapshotBuilder};
use tidegate_tools::{LogSource, LogSources, NodeIdentity, ToolContext, register_log_tools};

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
        let registry = |protection: AnswerProtection| {
            let identity = NodeIdentity { name: "t".into(), title: "T".into(), version: "1".into() };
            let executor = Executor::new(EventDispatcher::default());
            let node = ToolContext::new(Databases::new([database.clone()]), executor, identity);
            let source = LogSource {
                name: "app".to_owned(),
                database: database.name().to_owned(),
                table: "events".to_owned(),
                time: Some("time".to_owned()),
                ..LogSource::default()
            };
            let builder = SnapshotBuilder::new().protection(protection);
            let builder = register_log_tools(builder, &node, &LogSources::new([source]), &AllowedNames::Everything);
            let registry = Registry::new(builder.build(), EventDispatcher::default());
            node.attach(&registry);
            registry
        };
        let redactor = AnswerProtection { redactor: Some(Arc::new(IdleRedactor)), fences_data: false };
        Self { counting: registry(AnswerProtection::default()), scanning: registry(redactor) }
    }

    /// The answer of the database's own counts, where it has them.
    pub(crate) async fn ask(&self, arguments: Map<String, Value>) -> Value {
        call(&self.counting, arguments).await
    }

    /// The answer of a scan.
    pub(crate) async fn scan(&self, arguments: Map<String, Value>) -> Value {
        call(&self.scanning, arguments).await
    }
}

async fn call(registry: &Arc<Registry>, arguments: Map<String, Value>) -> Value {
    let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
    let mut call = Call::new(CallTarget::Tool("query_logs".to_owned()), Caller::new(Principal::process_user(), origin));
    call.arguments = arguments.clone();
    let mut reply = registry.call(call).unwrap();
    let mut text = String::new();
    while let Some(event) = reply.next().await {
        match event {
            ReplyEvent::Chunk(Chunk::Text(part)) => text.push_str(&part),
            ReplyEvent::End(Outcome::Failed(error)) => panic!("{error:?}: {arguments:?}"),
            _ => {}
        }
    }
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
