//! A program of your own that offers a tool over MCP, beside its other routes.
//!
//! `cargo run --example embed`, then connect a client to `http://127.0.0.1:7070/mcp`.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use serde_json::json;
use tidegate::Node;
use tidegate::engines::{EmbeddedDatabase, Engine, EngineOptions};
use tidegate::runtime::{Answer, Tool, handler_fn};
use tidegate::transport::http::{HttpOptions, router};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let engine = Engine::start(EngineOptions::default())?;
    let flights = EmbeddedDatabase::open("flights", vec!["data/demo".into()], &engine)?;
    let greet = handler_fn(|call| async move {
        let name = call.text_argument("name").unwrap_or("stranger");
        Ok(Answer::text(format!("Welcome aboard, {name}.")))
    });
    let greet = Tool::new("greet", "Greets a passenger by name.", greet)
        .with_input_schema(json!({"type": "object", "properties": {"name": {"type": "string"}}}))?;
    let node = Node::builder().database(Arc::new(flights)).entries(|entries| entries.tool(greet)).build();

    let mcp = router(node.service().clone(), node.metrics().clone(), HttpOptions::default());
    let app = Router::new().route("/", get(|| async { "an ordinary page\n" })).merge(mcp);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:7070").await?;
    Ok(axum::serve(listener, app).await?)
}
