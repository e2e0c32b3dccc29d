//! The `tidegate` command: parses the command line, runs one subcommand and waits for its threads.

use std::process::ExitCode;
use std::time::Duration;

use tidegate::command_line::{Cli, CommandError};

const THREAD_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    run().map_or_else(CommandError::report, |()| ExitCode::SUCCESS)
}

fn run() -> Result<(), CommandError> {
    tidegate_process_memory::limit_heaps();
    if Cli::complete_line()? {
        return Ok(());
    }
    let cli = Cli::parse_arguments(std::env::args_os())?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = cli.runtime_threads() {
        runtime.worker_threads(threads);
    }
    let runtime = runtime.enable_all().build().map_err(anyhow::Error::from)?;
    let ended = runtime.block_on(cli.run());
    // A thread may still wait for standard input, which nothing can interrupt. All others are awaited: a process that
    // ends while a thread ends is a race that glibc can lose (its bug 19951).
    runtime.shutdown_timeout(THREAD_SHUTDOWN_TIMEOUT);
    ended
}
