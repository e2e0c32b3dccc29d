//! What a server says when it listens: where, and how a client is connected to it.

use std::io::Write as _;
use std::net::SocketAddr;

use serde_json::json;

use crate::commands::serve::Help;
use crate::opened::Opened;
use crate::source::{Source, sources_or_here};

/// Questions for the demo, one for each kind of join.
const DEMO_QUESTIONS: [&str; 3] = [
    "Which airlines had the longest departure delays from JFK, by month?",
    "Does bad weather explain the delays in June and July?",
    "How old are the planes of each airline, and does age matter for delays?",
];

/// Says on standard error where the server listens and, with `help`, what to do with that.
pub(crate) fn announce(scheme: &str, address: SocketAddr, help: Help) {
    let url = format!("{scheme}://{address}/mcp");
    let mut text = format!("listening on {url}\n");
    if help != Help::None {
        text.push_str(&instructions(&url));
    }
    if help == Help::ConnectingAndAsking {
        text.push_str("\nThen ask, for example:\n");
        for question in DEMO_QUESTIONS {
            text.push_str(&format!("  - {question}\n"));
        }
    }
    // Without standard error there is nobody to tell; the server serves all the same.
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Says to somebody who started `tidegate stdio` by hand that a client is meant to do that.
pub(crate) fn announce_stdio(sources: &[Source], opened: &Opened) {
    let mut arguments = vec!["stdio".to_owned()];
    if opened.has_file {
        arguments.extend(["--config".to_owned(), opened.loaded.path().display().to_string()]);
        arguments.extend(sources.iter().map(Source::absolute_argument));
    } else {
        arguments.extend(sources_or_here(sources).iter().map(Source::absolute_argument));
    }
    let program = std::env::current_exe().unwrap_or_else(|_| "tidegate".into());
    let servers = json!({"mcpServers": {"tidegate": {"command": program, "args": arguments}}});
    let text =
        format!("waiting for an MCP client on standard input; clients start this themselves with\n\n{servers:#}\n");
    let _ = anstream::stderr().write_all(text.as_bytes());
}

fn instructions(url: &str) -> String {
    format!(
        "\nAn MCP client that keeps its servers in a JSON file connects with this:\n\n\
         {{\n  \"mcpServers\": {{\n    \"tidegate\": {{ \"type\": \"http\", \"url\": \"{url}\" }}\n  }}\n}}\n\n\
         One that asks for a server's transport and address: streamable HTTP, {url}\n"
    )
}
