//! The same tool as `peers/rmcp-hello`, served by our core, protocol and transport, with the log and
//! the metrics of a real node listening. Prints its address; with `--ask` it asks callers for a key, which it
//! prints before.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_auth::{AuthenticatorOptions, CredentialAuthenticator, KeyFile, Role};
use tidegate_core::{Error, ErrorKind, Grants};
use tidegate_mcp::{McpService, ServerDescription};
use tidegate_runtime::{
    Answer, Registry, SnapshotBuilder, Tool,
    event::{EventDispatcher, LogSubscriber, Subscriber},
    handler_fn,
};
use tidegate_transport::Metrics;
use tidegate_transport::http::{HttpOptions, serve};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let metrics = Arc::new(Metrics::new());
    let subscribers: [Arc<dyn Subscriber>; 2] = [Arc::new(LogSubscriber), metrics.clone()];
    let snapshot = SnapshotBuilder::new().tool(hello()?).build();
    let registry = Registry::new(snapshot, EventDispatcher::new(subscribers));
    let about = ServerDescription {
        name: "tidegate-hello".to_owned(),
        title: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: None,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let service = McpService::new(registry, about);
    let mut options = HttpOptions::default();
    if std::env::args().any(|argument| argument == "--ask") {
        options.authenticator = Arc::new(authenticator()?);
    }
    let server = serve(listener, service, metrics, options, CancellationToken::new())?;
    tidegate_bench::print_line(&server.address().to_string())?;
    server.wait().await;
    Ok(())
}

/// An authenticator with one key, which is printed.
fn authenticator() -> anyhow::Result<CredentialAuthenticator> {
    let folder = tempfile::tempdir()?;
    let keys = KeyFile::new(folder.path().join("keys.json"));
    let role = Role { name: "caller".to_owned(), grants: Grants::everything(), claims: Map::new() };
    let added = keys.add("bench", std::slice::from_ref(&role.name), None)?;
    tidegate_bench::print_line(added.key.expose())?;
    Ok(CredentialAuthenticator::new(AuthenticatorOptions {
        keys: Some(keys),
        roles: vec![role],
        ..AuthenticatorOptions::default()
    })?)
}

fn hello() -> anyhow::Result<Tool> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let handler = handler_fn(|call| async move {
        let name = call.arguments().get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| Error::new(ErrorKind::InvalidArguments, "name must be a string"))?;
        Ok(Answer::text(format!("hello, {name}")))
    });
    Ok(Tool::new("hello", "Greets somebody by name.", handler).with_input_schema(schema)?)
}
