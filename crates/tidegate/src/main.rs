//! The `tidegate` command: parses the command line and runs one subcommand.

mod audit_log;
mod bearer;
mod bridge;
mod cli;
mod client;
mod command_error;
mod commands;
mod config;
mod demo_data;
mod download_flags;
mod handler_updates;
mod listen_address;
mod logging;
mod open_node;
mod options;
mod output;
mod quantity;
mod reload;
mod renamed_flags;
mod result_store;
mod shutdown;
mod source;
mod startup_checks;
mod startup_help;
mod terminal;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use cli::Cli;
use command_error::CommandError;

/// How long threads may take to end when all work is done.
const THREAD_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let (arguments, warnings) = renamed_flags::with_new_names(std::env::args_os().collect());
    match run(Cli::parse_from(arguments), &warnings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: Cli, warnings: &[String]) -> Result<(), CommandError> {
    logging::start(&cli.options.log, cli.command.log_level_default())?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(anyhow::Error::from)?;
    let ended = runtime.block_on(cli.command.run(&cli.options));
    // A thread may still wait for standard input, which nothing can interrupt. All others are awaited: a process that
    // ends while a thread ends is a race that glibc can lose (its bug 19951).
    runtime.shutdown_timeout(THREAD_SHUTDOWN_TIMEOUT);
    ended
}
