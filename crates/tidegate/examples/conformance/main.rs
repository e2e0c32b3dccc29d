//! A host program: its own tools, prompts and resources in Rust, served by Tidegate over Streamable HTTP.
//!
//!     cargo run --example conformance -- --listen 127.0.0.1:0
//!
//! It registers what the official conformance suite looks for, by the suite's names and with the suite's texts, so that the
//! suite can be run against the same code that serves data. Each module shows one kind of entry.

mod media;
mod prompts;
mod resources;
mod tools;

use std::io::Write as _;
use std::sync::Arc;

use clap::Parser;
use tidegate::Node;
use tidegate::core::AllowedNames;
use tidegate::query::Databases;
use tidegate::runtime::SnapshotBuilder;
use tidegate::tools::NodeIdentity;
use tidegate::transport::http::{self, HttpOptions};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Serve what the MCP conformance suite looks for
#[derive(Debug, Parser)]
struct Arguments {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    listen: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let (node, changes) = (node(), Arc::new(Notify::new()));
    enter_entries(&node, &changes)?;
    let listener = TcpListener::bind(&arguments.listen).await?;
    let shutdown = CancellationToken::new();
    let (service, metrics) = (node.service().clone(), node.metrics().clone());
    let server = http::serve(listener, service, metrics, HttpOptions::default(), shutdown.clone())?;
    writeln!(std::io::stderr(), "listening on http://{}/mcp", server.address())?;
    loop {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => break interrupted?,
            () = changes.notified() => enter_entries(&node, &changes)?,
        }
    }
    shutdown.cancel();
    server.wait().await;
    Ok(())
}

/// The node, with no databases and none of the built-in tools.
fn node() -> Node {
    let identity = NodeIdentity {
        name: "tidegate-conformance".to_owned(),
        title: "Tidegate under test".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let instructions = "Every entry answers with the fixed text that the conformance suite expects.";
    Node::builder().identity(identity).instructions(instructions).without_built_in_tools().build()
}

/// Replaces the entries as a whole; listeners are notified that the lists have changed.
fn enter_entries(node: &Node, changes: &Arc<Notify>) -> anyhow::Result<()> {
    let (tools, templates) = (tools::all(changes)?, resources::templates()?);
    let state = node
        .new_state(Databases::new([]), &AllowedNames::NOTHING)
        .entries(|entries| tools.into_iter().fold(entries, SnapshotBuilder::tool))
        .entries(|entries| prompts::all().into_iter().fold(entries, SnapshotBuilder::prompt))
        .entries(|entries| resources::all().into_iter().fold(entries, SnapshotBuilder::resource))
        .entries(|entries| templates.into_iter().fold(entries, SnapshotBuilder::template));
    node.enter_state(state);
    Ok(())
}
