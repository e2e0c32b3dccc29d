//! The address that a server prints when it listens, and how to connect a client.

use std::borrow::Cow;

use serde_json::json;

use crate::application::Application;
use crate::argument_secrets::mask_secrets;
use crate::database_argument::{self, DatabaseArgument};
use crate::output;

/// One for each kind of join, and one for the logs.
const DEMO_QUESTIONS: [&str; 4] = [
    "Which airlines had the longest departure delays from JFK, by month?",
    "Does bad weather explain the delays in June and July?",
    "How old are the planes of each airline, and does age matter for delays?",
    "Why did checkouts of the web shop fail on 14 March 2026, at three in the afternoon?",
];

const LIVE_QUESTIONS: [&str; 3] = [
    "How many readings has the database live now? Ask again after a few seconds.",
    "What was the average temperature of each station in the last minute?",
    "Which airport of the flights had the most departures, and what temperature has it now?",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartupHelp {
    None,
    ConnectionHelp,
    ConnectionAndExampleQuestions,
    ConnectionAndLiveQuestions,
}

/// Prints the address, and how to join the databases of `application`. The address of the console is part of the help.
pub(crate) fn print_address(url: &str, console: Option<&str>, help: StartupHelp, application: Option<&Application>) {
    let mut text = format!("listening on {url}\n{}", application.map(explain_join).unwrap_or_default());
    if help != StartupHelp::None {
        if let Some(console) = console {
            text.push_str(&format!("\nThe console, for a browser: {console}\n"));
        }
        text.push_str(&connection_instructions(url));
    }
    let questions = match help {
        StartupHelp::ConnectionAndExampleQuestions => &DEMO_QUESTIONS[..],
        StartupHelp::ConnectionAndLiveQuestions => &LIVE_QUESTIONS[..],
        StartupHelp::None | StartupHelp::ConnectionHelp => &[],
    };
    if !questions.is_empty() {
        text.push_str("\nThen ask, for example:\n");
        for question in questions {
            text.push_str(&format!("  - {question}\n"));
        }
    }
    if help == StartupHelp::ConnectionAndExampleQuestions {
        text.push_str("\n`tidegate demo --live` also has a table whose rows arrive each second.\n");
    }
    output::print_note(text);
}

pub(crate) fn print_stdio_help(sources: &[DatabaseArgument], application: &Application) {
    let file = application.has_file.then(|| application.loaded_config.path());
    let arguments = database_argument::stdio_arguments(file, sources);
    let program = std::env::current_exe().unwrap_or_else(|_| "tidegate".into());
    let servers = json!({"mcpServers": {"tidegate": {"command": program, "args": arguments}}});
    let servers = format!("{servers:#}");
    let servers = mask_secrets(&servers);
    let password = match &servers {
        Cow::Borrowed(_) => "",
        Cow::Owned(_) => {
            "leave the password (***) out of args: put it into PGPASSWORD in env of the entry, or into .pgpass\n"
        }
    };
    output::print_note(format_args!(
        "waiting for an MCP client on standard input; clients start this themselves with\n\n{servers}\n{password}{}",
        explain_join(application)
    ));
}

/// How to join the databases of the command line, if there are several.
fn explain_join(application: &Application) -> String {
    let [first, second, ..] = application.joined_databases.as_slice() else { return String::new() };
    let all = database_argument::JOINED_DATABASE_NAME;
    format!(
        "the database {all:?} joins tables of the others by their full names: FROM {first:?}.TABLE JOIN {second:?}.TABLE\n"
    )
}

fn connection_instructions(url: &str) -> String {
    format!(
        "\nAn MCP client that keeps its servers in a JSON file connects with this:\n\n\
         {{\n  \"mcpServers\": {{\n    \"tidegate\": {{ \"type\": \"http\", \"url\": \"{url}\" }}\n  }}\n}}\n\n\
         One that asks for a server's transport and address: streamable HTTP, {url}\n"
    )
}
