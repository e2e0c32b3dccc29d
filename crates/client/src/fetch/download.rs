//! A complete download: blocks arrive in parallel and are written in order.
//!
//! Two tasks run concurrently and pass one block at a time: one downloads blocks into the folder beside the file, the
//! other one writes them to the file.

use std::path::PathBuf;
use std::pin::pin;

use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use tidegate_core::Format;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::address::ResultAddress;
use super::block_fetcher::BlockFetcher;
use super::client::ResultClient;
use super::destination::Destination;
use super::error::{FetchError, ResumeInfo};
use super::manifest::{ManifestBlock, ResultManifest, ResultStatus};
use super::manifest_follower::{self, ManifestFollower};
use super::partial_download::PartialDownload;
use super::result_file_writer::{OutputMode, ResultFileWriter, VerifiedBlock};
use crate::fetch::FetchOptions;
use crate::fetch::client::ResultCredential;
use crate::fetch::progress::ProgressTracker;
use crate::refusal::sanitize;

/// Maximum number of parallel requests to a server. More of them do not make a download faster.
const PARALLEL_MAX: usize = 32;

/// The file that a download created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of rows.
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Why the result is incomplete, if incomplete results are accepted.
    pub incomplete: Option<String>,
    /// A sentence about the nodes whose rows the result lacks, if it lacks some. The result is not incomplete by that.
    pub missing: Option<String>,
}

/// Downloads the result at `address` to `destination`. Follows the result to its end if it is still being written.
///
/// A download that fails or is stopped keeps its blocks. The next download of the same result to the same file uses
/// them.
///
/// # Errors
/// Fails if the result cannot be fetched or written. The file then does not exist, or is unchanged.
pub async fn fetch(
    address: &ResultAddress,
    destination: &Destination,
    options: FetchOptions,
    stop: &CancellationToken,
) -> Result<FetchedFile, FetchError> {
    let credential = ResultCredential::new(address.link(), options.bearer.as_ref());
    let client = ResultClient::new(address.to_string(), credential, options)?;
    let manifest = run_until_cancelled(stop, manifest_follower::fetch_manifest(&client, address)).await?;
    // An incomplete result is refused before its blocks are fetched.
    refuse_incomplete(&manifest, client.options())?;
    let mode = output_mode(&manifest, destination)?;
    let (target, id) = (destination.clone(), address.id());
    let partial = run_blocking(move || PartialDownload::open(&target, id)).await?;
    let progress = ProgressTracker::new(client.options().listener.clone());
    let download = Download { client: &client, address, destination, mode, partial: &partial, progress: &progress };
    let fetched = download.run(manifest, stop).await;
    partial.wait_for_tasks().await;
    match fetched {
        Ok(fetched) => {
            let removed = tokio::task::spawn_blocking(move || partial.remove()).await;
            removed.map_err(|error| FetchError::from_join_error(&error))?;
            Ok(fetched)
        }
        Err(error) => Err(keep_for_resume(partial, error, &resume_command(address, destination, client.options()))),
    }
}

struct Download<'a> {
    client: &'a ResultClient,
    address: &'a ResultAddress,
    destination: &'a Destination,
    mode: OutputMode,
    partial: &'a PartialDownload,
    progress: &'a ProgressTracker,
}

impl Download<'_> {
    async fn run(&self, manifest: ResultManifest, stop: &CancellationToken) -> Result<FetchedFile, FetchError> {
        self.progress.update_from_manifest(&manifest);
        let (target, folder) = (self.destination.clone(), self.partial.folder().to_owned());
        let file = run_blocking(move || target.create_file_in(&folder)).await?;
        let manifest = Mutex::new(manifest);
        let stop = stop.child_token();
        let (sender, receiver) = mpsc::channel(1);
        let fetching = run_until_cancelled(&stop, self.fetch_blocks(&manifest, sender));
        let writing = async {
            let written = write_blocks(ResultFileWriter::new(file, self.mode), receiver).await;
            if written.is_err() {
                stop.cancel();
            }
            written
        };
        // Both tasks run to their end: work on another thread cannot be interrupted.
        let (fetched, written) = tokio::join!(fetching, writing);
        let writer = written?;
        fetched?;
        let manifest = manifest.into_inner();
        refuse_incomplete(&manifest, self.client.options())?;
        let rows = writer.rows;
        let incomplete = (manifest.status == ResultStatus::Incomplete).then(|| incomplete_reason(&manifest));
        let is_part = incomplete.is_some();
        let length =
            manifest.file.as_ref().filter(|_| self.mode == OutputMode::File && !is_part).map(|file| file.bytes);
        let bytes = run_blocking(move || writer.finish(is_part, length)).await?;
        let missing = manifest.missing_note();
        Ok(FetchedFile { path: self.destination.path().to_owned(), rows, bytes, incomplete, missing })
    }

    /// Sends the blocks in order to the writer; several are fetched at the same time.
    async fn fetch_blocks(
        &self,
        manifest: &Mutex<ResultManifest>,
        sender: mpsc::Sender<VerifiedBlock>,
    ) -> Result<(), FetchError> {
        let follower = ManifestFollower::new(self.client, self.address, self.progress, manifest);
        let blocks = stream::unfold(follower, |mut follower| async move {
            let next = follower.next().await.transpose()?;
            Some((next, follower))
        });
        let parallel = self.client.options().parallel.clamp(1, PARALLEL_MAX);
        let mut verified = pin!(blocks.map(|block| async move { self.ensure_block(block?).await }).buffered(parallel));
        while let Some(block) = verified.next().await {
            if sender.send(block?).await.is_err() {
                // The writer has failed and reports its own error.
                return Ok(());
            }
        }
        if manifest.lock().blocks.is_empty() {
            let bytes = self.block_fetcher().fetch_empty().await?;
            self.partial.store_block(0, bytes).await?;
            // A failed writer reports its own error.
            let _ = sender.send(VerifiedBlock { index: 0, rows: 0, path: self.partial.block_path(0) }).await;
        }
        Ok(())
    }

    /// Fetches `block`, unless the folder has it.
    async fn ensure_block(&self, block: ManifestBlock) -> Result<VerifiedBlock, FetchError> {
        if self.partial.has_block(&block).await? {
            self.progress.add_bytes(block.bytes);
        } else {
            let bytes = self.block_fetcher().fetch(&block).await?;
            self.partial.store_block(block.index, bytes).await?;
        }
        self.progress.add_verified_rows(block.rows);
        Ok(VerifiedBlock { index: block.index, rows: block.rows, path: self.partial.block_path(block.index) })
    }

    fn block_fetcher(&self) -> BlockFetcher<'_> {
        BlockFetcher { client: self.client, address: self.address, progress: self.progress }
    }
}

async fn write_blocks(
    mut writer: ResultFileWriter,
    mut blocks: mpsc::Receiver<VerifiedBlock>,
) -> Result<ResultFileWriter, FetchError> {
    while let Some(block) = blocks.recv().await {
        writer = run_blocking(move || writer.append_block(&block).map(|()| writer)).await?;
    }
    Ok(writer)
}

/// The file that the result holds, or rows. An explicit Arrow format writes the blocks of a file result.
fn output_mode(manifest: &ResultManifest, destination: &Destination) -> Result<OutputMode, FetchError> {
    match (&manifest.file, destination.explicit_format()) {
        (None, _) => destination.row_format().map(OutputMode::Rows),
        (Some(_), None) => Ok(OutputMode::File),
        (Some(_), Some(format @ (Format::Arrow | Format::ArrowFile))) => Ok(OutputMode::Rows(format)),
        (Some(_), Some(format)) => Err(FetchError::ResultIsFile { format }),
    }
}

fn refuse_incomplete(manifest: &ResultManifest, options: &FetchOptions) -> Result<(), FetchError> {
    match manifest.status {
        ResultStatus::Incomplete if !options.accept_incomplete => {
            Err(FetchError::Incomplete { rows: manifest.rows, reason: incomplete_reason(manifest) })
        }
        _ => Ok(()),
    }
}

fn incomplete_reason(manifest: &ResultManifest) -> String {
    manifest.reason.as_deref().map_or_else(|| "the server gives no reason".to_owned(), sanitize)
}

/// The result of `work`, or [`FetchError::Interrupted`] if `stop` is cancelled first.
pub(crate) async fn run_until_cancelled<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, FetchError>>,
) -> Result<T, FetchError> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(FetchError::Interrupted),
        done = work => done,
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| FetchError::from_join_error(&error))?
}

/// Keeps the blocks for the next run and adds the command that continues to `error`.
fn keep_for_resume(partial: PartialDownload, error: FetchError, command: &str) -> FetchError {
    let blocks = partial.count_blocks();
    if blocks == 0 {
        partial.remove();
        return error;
    }
    let kept = ResumeInfo { blocks, folder: partial.folder().to_owned(), command: command.to_owned() };
    FetchError::Resumable { error: Box::new(error), kept }
}

/// The command that continues this download. It contains no secret, so the token of a link is left out.
fn resume_command(address: &ResultAddress, destination: &Destination, options: &FetchOptions) -> String {
    let link = if address.link().is_some() { "?link=…" } else { "" };
    let path = destination.path().display().to_string().replace('\'', r"'\''");
    let mut command = format!("tidegate fetch '{address}{link}' -o '{path}'");
    if let Some(format) = destination.explicit_format().filter(|_| destination.needs_format_flag()) {
        command.push_str(" --format ");
        command.push_str(format.name());
    }
    if options.accept_incomplete {
        command.push_str(" --partial");
    }
    command
}
