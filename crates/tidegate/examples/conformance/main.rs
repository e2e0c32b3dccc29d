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

use clap::Parser;
use tidegate::Node;
use tidegate::core::SnapshotBuilder;
use tidegate::tools::Identity;
use tidegate::transport::http::{self, HttpOptions};
use tokio::net::TcpListener;
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
    let node = node()?;
    let listener = TcpListener::bind(&arguments.listen).await?;
    let shutdown = CancellationToken::new();
    let (service, metrics) = (node.service().clone(), node.metrics().clone());
    let server = http::serve(listener, service, metrics, HttpOptions::default(), shutdown.clone())?;
    writeln!(std::io::stderr(), "listening on http://{}/mcp", server.address())?;
    tokio::signal::ctrl_c().await?;
    shutdown.cancel();
    server.ended().await;
    Ok(())
}

/// The node: entries of ours alone, no databases and none of the built-in tools.
fn node() -> anyhow::Result<Node> {
    let tools = tools::all()?;
    let templates = resources::templates()?;
    let identity = Identity {
        name: "tidegate-conformance".to_owned(),
        title: "Tidegate under test".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let node = Node::builder()
        .identity(identity)
        .instructions("Every entry answers with the fixed text that the conformance suite expects.")
        .without_built_in_tools()
        .entries(|entries| tools.into_iter().fold(entries, SnapshotBuilder::tool))
        .entries(|entries| prompts::all().into_iter().fold(entries, SnapshotBuilder::prompt))
        .entries(|entries| resources::all().into_iter().fold(entries, SnapshotBuilder::resource))
        .entries(|entries| templates.into_iter().fold(entries, SnapshotBuilder::template));
    Ok(node.build())
}
