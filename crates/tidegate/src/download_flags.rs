//! Flags of the commands that write an answer to a file, and the download with its progress bar.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tidegate_client::TrustedAuthorities;
use tidegate_client::fetch::{
    DownloadEvent, DownloadProgressBar, FetchOptions, OutputFile, ResultAddress, ResultServer,
};
use tidegate_core::Format;

use crate::bearer::{self, SecretArgument};
use crate::command_error::CommandError;
use crate::output;
use crate::shutdown::Shutdown;

/// Flags of the output file.
#[derive(Debug, Args)]
pub(crate) struct OutputFileFlags {
    /// File to write; it appears under its name only when it is complete. The ending .gz or .zst compresses it
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[arg(long, value_name = "FORMAT", value_parser = tidegate_client::fetch::parse_format, help = format_help())]
    format: Option<Format>,

    /// Overwrite FILE if it exists
    #[arg(long)]
    force: bool,

    /// Print no progress and no final line
    #[arg(long)]
    quiet: bool,
}

fn format_help() -> String {
    format!("{} [default: by the ending of FILE]", tidegate_client::fetch::format_names())
}

/// Flags of the download of a result.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for a download")]
pub(crate) struct DownloadFlags {
    /// Bearer token [env: TIDEGATE_BEARER, which is not visible in process lists]
    #[arg(long, value_name = "TOKEN", conflicts_with = "bearer_file")]
    bearer: Option<SecretArgument>,

    /// File that contains the bearer token
    #[arg(long, value_name = "FILE")]
    bearer_file: Option<PathBuf>,

    /// File with the certificate of the server's authority, or its own [default: those of the system]
    #[arg(long, value_name = "FILE", value_parser = bearer::parse_authorities)]
    ca: Option<TrustedAuthorities>,

    /// Blocks that are fetched at the same time [default: 4]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=32))]
    parallel: Option<u8>,

    /// Accept the rows of an incomplete result
    #[arg(long)]
    partial: bool,
}

impl OutputFileFlags {
    pub(crate) fn output_file(&self) -> Result<OutputFile, CommandError> {
        Ok(OutputFile::new(self.output.clone(), self.format, self.force)?)
    }

    /// The output file of a result that may have rows or may be a file itself. The format is optional then.
    pub(crate) fn output_file_with_optional_format(&self) -> Result<OutputFile, CommandError> {
        Ok(OutputFile::with_optional_format(self.output.clone(), self.format, self.force)?)
    }

    /// Prints what was written, unless `--quiet` is set.
    pub(crate) fn print_summary(&self, path: &Path, rows: Option<u64>, bytes: u64) {
        if !self.quiet {
            let rows = rows.map_or_else(String::new, |rows| format!("{rows} rows, "));
            output::print_note(format_args!("{}: {rows}{bytes} bytes\n", path.display()));
        }
    }

    pub(crate) async fn download(
        &self,
        address: &ResultAddress,
        output_file: &OutputFile,
        options: FetchOptions,
        shutdown: &Shutdown,
    ) -> Result<(), CommandError> {
        let bar = Arc::new(DownloadProgressBar::new(self.quiet));
        let progress_bar = bar.clone();
        let listener = Arc::new(move |notice: &DownloadEvent| match notice {
            DownloadEvent::Retrying { .. } | DownloadEvent::BlockDamaged { .. } if progress_bar.is_hidden() => {
                tracing::warn!("{notice}")
            }
            notice => progress_bar.on_event(notice),
        });
        let options = FetchOptions { listener, ..options };
        let fetching = tidegate_client::fetch::fetch(address, output_file, options, &shutdown.graceful);
        let fetched = shutdown.run_until_forced(fetching).await;
        // The next output replaces the progress bar.
        drop(bar);
        let fetched = fetched??;
        if let Some(reason) = &fetched.incomplete {
            tracing::warn!("the result is incomplete: {reason}");
        }
        if let Some(missing) = &fetched.missing {
            tracing::warn!("{missing}");
        }
        self.print_summary(&fetched.path, Some(fetched.rows), fetched.bytes);
        Ok(())
    }
}

impl DownloadFlags {
    pub(crate) fn options(&self, server: &ResultServer) -> Result<FetchOptions, CommandError> {
        let bearer = bearer::read_bearer(self.bearer.as_ref(), self.bearer_file.as_deref())?;
        if server.is_sent_unencrypted() {
            tracing::warn!(%server, "rows and token are sent unencrypted; use https");
        }
        let options = FetchOptions { bearer, accept_incomplete: self.partial, ..FetchOptions::default() };
        let options = FetchOptions { authorities: self.ca.clone(), ..options };
        Ok(FetchOptions { parallel: self.parallel.map_or(options.parallel, usize::from), ..options })
    }

    pub(crate) fn reject_if_set(&self) -> Result<(), CommandError> {
        let flags = [
            ("--bearer", self.bearer.is_some()),
            ("--bearer-file", self.bearer_file.is_some()),
            ("--ca", self.ca.is_some()),
            ("--parallel", self.parallel.is_some()),
            ("--partial", self.partial),
        ];
        match flags.into_iter().find(|(_, is_set)| *is_set) {
            Some((flag, _)) => Err(CommandError::Usage(format!("{flag} requires --connect"))),
            None => Ok(()),
        }
    }
}
