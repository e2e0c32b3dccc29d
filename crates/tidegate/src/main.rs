//! The `tidegate` command: parses, wires, runs, drains.

mod address;
mod auditing;
mod bearer;
mod bridge;
mod cli;
mod client;
mod commands;
mod config;
mod connecting;
mod demo_data;
mod failure;
mod fetching;
mod following;
mod logging;
mod opened;
mod options;
mod output;
mod quantity;
mod reload;
mod results;
mod serving;
mod shutdown;
mod source;
mod terminal;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use cli::Cli;
use failure::Failure;

/// How long threads may take to end when all work is done.
const THREADS_END_WITHIN: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    logging::start(&cli.options.log, cli.command.log_level_default())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(anyhow::Error::from)?;
    let ended = runtime.block_on(cli.command.run(&cli.options));
    // A thread may still wait for standard input, which nothing can interrupt. All others are waited for: to let go of one that
    // is about to end is a race that glibc can lose (its bug 19951).
    runtime.shutdown_timeout(THREADS_END_WITHIN);
    ended
}
