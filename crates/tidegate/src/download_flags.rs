//! Answers that become files: the options of the verbs that write them, and a download with its bar.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tidegate_core::AnswerFormat;
use tidegate_fetch::{
    BearerToken, Destination, DownloadEvent, DownloadProgressBar, FetchOptions, ResultAddress, ResultServer,
};

use crate::bearer::{self, SecretArgument};
use crate::command_error::CommandError;
use crate::shutdown::Shutdown;

/// Where the rows go.
#[derive(Debug, Args)]
pub(crate) struct OutputFileFlags {
    /// File to write; it has its name when it is whole, and not before
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// arrow, ndjson, csv, json or parquet [default: what the name of FILE ends with]
    #[arg(long, value_name = "FORMAT", value_parser = tidegate_fetch::parse_format)]
    format: Option<AnswerFormat>,

    /// Overwrite FILE if it exists
    #[arg(long)]
    force: bool,

    /// Show no progress and say nothing at the end
    #[arg(long)]
    quiet: bool,
}

/// How a result is downloaded.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for a download")]
pub(crate) struct DownloadFlags {
    /// Token that proves who calls [env: TIDEGATE_BEARER, which lists of processes do not show]
    #[arg(long, value_name = "TOKEN", conflicts_with = "bearer_file")]
    bearer: Option<SecretArgument>,

    /// File that holds the token
    #[arg(long, value_name = "FILE")]
    bearer_file: Option<PathBuf>,

    /// Blocks that are fetched at once [default: 4]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=32))]
    parallel: Option<u8>,

    /// Take what is there of a result that ended incomplete
    #[arg(long)]
    partial: bool,
}

impl OutputFileFlags {
    /// The file, which can be written.
    pub(crate) fn destination(&self) -> Result<Destination, CommandError> {
        Ok(Destination::new(self.output.clone(), self.format, self.force)?)
    }

    /// The file for a result of which nobody knows yet whether it has rows, or is a file itself.
    pub(crate) fn destination_with_optional_format(&self) -> Result<Destination, CommandError> {
        Ok(Destination::with_optional_format(self.output.clone(), self.format, self.force)?)
    }

    /// Says what was written, to whoever wants to hear it.
    pub(crate) fn print_summary(&self, path: &Path, rows: Option<u64>, bytes: u64) {
        if !self.quiet {
            let rows = rows.map_or_else(String::new, |rows| format!("{rows} rows, "));
            // Without standard error nobody can be told.
            let _ = writeln!(anstream::stderr(), "{}: {rows}{bytes} bytes", path.display());
        }
    }

    /// Downloads the result at `address` into the file.
    pub(crate) async fn download(
        &self,
        address: &ResultAddress,
        destination: &Destination,
        options: FetchOptions,
        shutdown: &Shutdown,
    ) -> Result<(), CommandError> {
        let bar = Arc::new(DownloadProgressBar::new(self.quiet));
        let drawn = bar.clone();
        let heard_by = Arc::new(move |notice: &DownloadEvent| match notice {
            DownloadEvent::Retrying { .. } | DownloadEvent::BlockDamaged { .. } if drawn.is_hidden() => {
                tracing::warn!("{notice}")
            }
            notice => drawn.on_event(notice),
        });
        let options = FetchOptions { listener: heard_by, ..options };
        let fetching = tidegate_fetch::fetch(address, destination, options, &shutdown.graceful);
        let fetched = shutdown.run_until_forced(fetching).await;
        // What is said next stands where the bar was.
        drop(bar);
        let fetched = fetched??;
        if let Some(reason) = &fetched.incomplete {
            tracing::warn!("the result ended incomplete: {reason}");
        }
        self.print_summary(&fetched.path, Some(fetched.rows), fetched.bytes);
        Ok(())
    }
}

impl DownloadFlags {
    /// What a download from `server` needs.
    pub(crate) fn options(&self, server: &ResultServer) -> Result<FetchOptions, CommandError> {
        let bearer = bearer::read_bearer(self.bearer.as_ref(), self.bearer_file.as_deref(), BearerToken::parse)?;
        if server.is_in_the_clear() {
            tracing::warn!(%server, "the rows, and the token if there is one, travel unencrypted; use https");
        }
        let options = FetchOptions { bearer, accept_incomplete: self.partial, ..FetchOptions::default() };
        Ok(FetchOptions { parallel: self.parallel.map_or(options.parallel, usize::from), ..options })
    }

    /// Refuses flags that mean nothing where nothing is downloaded.
    pub(crate) fn reject_if_set(&self) -> Result<(), CommandError> {
        let given = [
            ("--bearer", self.bearer.is_some()),
            ("--bearer-file", self.bearer_file.is_some()),
            ("--parallel", self.parallel.is_some()),
            ("--partial", self.partial),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => {
                Err(CommandError::Usage(format!("{flag} is for a download from a server, which --connect names")))
            }
            None => Ok(()),
        }
    }
}
