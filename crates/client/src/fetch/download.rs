//! A complete download: blocks arrive in parallel and are written in order.
//!
//! Two tasks run concurrently and pass one block at a time: one downloads blocks into the folder beside the file, the
//! other one writes them to the file. The hash of each block is verified. After a lost connection, the next attempt
//! requests only the missing bytes. If those were bytes of something else, the hash would not match.
//!
//! The content of the folder is not trusted: a block that a run finds there is used only if its hash matches. Therefore
//! blocks can be written without sync, and may be torn.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE};
use reqwest::{Response, StatusCode};
use tidegate_core::Format;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::address::ResultAddress;
use super::client::{RequestFailure, ResultClient, ResultCredential, RetryState, run_until_cancelled};
use super::manifest::{self, ManifestBlock, ManifestFollower, ResultManifest, ResultStatus, sha256};
use super::output_file::{OutputFile, OutputMode, ResultFileWriter, UNFINISHED_SUFFIX, VerifiedBlock};
use super::{DownloadEvent, FetchError, FetchOptions, ProgressTracker, ResumeInfo};
use crate::server::sanitize;

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

/// Downloads the result at `address` to `output_file`. Follows the result to its end if it is still being written.
///
/// A download that fails or is stopped keeps its blocks. The next download of the same result to the same file uses
/// them.
///
/// # Errors
/// Fails if the result cannot be fetched or written. The file then does not exist, or is unchanged.
pub async fn fetch(
    address: &ResultAddress,
    output_file: &OutputFile,
    options: FetchOptions,
    stop: &CancellationToken,
) -> Result<FetchedFile, FetchError> {
    let credential = ResultCredential::new(address.link(), options.bearer.as_ref());
    let client = ResultClient::new(address.to_string(), credential, options)?;
    let manifest = run_until_cancelled(stop, manifest::fetch_manifest(&client, address)).await?;
    // An incomplete result is refused before its blocks are fetched.
    refuse_incomplete(&manifest, client.options())?;
    let mode = output_mode(&manifest, output_file)?;
    let (target, id) = (output_file.clone(), address.id());
    let partial = run_blocking(move || PartialDownload::open(&target, id)).await?;
    let progress = ProgressTracker::new(client.options().listener.clone());
    let download = Download { client: &client, address, output_file, mode, partial: &partial, progress: &progress };
    let fetched = download.run(manifest, stop).await;
    partial.wait_for_tasks().await;
    match fetched {
        Ok(fetched) => {
            let removed = tokio::task::spawn_blocking(move || partial.remove()).await;
            removed.map_err(|error| FetchError::from_join_error(&error))?;
            Ok(fetched)
        }
        Err(error) => Err(keep_for_resume(partial, error, &resume_command(address, output_file, client.options()))),
    }
}

struct Download<'a> {
    client: &'a ResultClient,
    address: &'a ResultAddress,
    output_file: &'a OutputFile,
    mode: OutputMode,
    partial: &'a PartialDownload,
    progress: &'a ProgressTracker,
}

impl Download<'_> {
    async fn run(&self, manifest: ResultManifest, stop: &CancellationToken) -> Result<FetchedFile, FetchError> {
        self.progress.update_from_manifest(&manifest);
        let (target, folder) = (self.output_file.clone(), self.partial.folder().to_owned());
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
        Ok(FetchedFile { path: self.output_file.path().to_owned(), rows, bytes, incomplete, missing })
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
fn output_mode(manifest: &ResultManifest, output_file: &OutputFile) -> Result<OutputMode, FetchError> {
    match (&manifest.file, output_file.explicit_format()) {
        (None, _) => output_file.row_format().map(OutputMode::Rows),
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
fn resume_command(address: &ResultAddress, output_file: &OutputFile, options: &FetchOptions) -> String {
    let link = if address.link().is_some() { "?link=…" } else { "" };
    let path = output_file.path().display().to_string().replace('\'', r"'\''");
    let mut command = format!("tidegate fetch '{address}{link}' -o '{path}'");
    if let Some(format) = output_file.explicit_format().filter(|_| output_file.needs_format_flag()) {
        command.push_str(" --format ");
        command.push_str(format.name());
    }
    if options.accept_incomplete {
        command.push_str(" --partial");
    }
    command
}

const FETCHES_MAX: u32 = 2;
const EMPTY_BYTES_MAX: usize = 16 * 1024 * 1024;

struct BlockFetcher<'a> {
    pub(crate) client: &'a ResultClient,
    pub(crate) address: &'a ResultAddress,
    pub(crate) progress: &'a ProgressTracker,
}

#[derive(Default)]
struct PartialBlock {
    bytes: Vec<u8>,
    etag: Option<HeaderValue>,
}

impl BlockFetcher<'_> {
    pub(crate) async fn fetch(&self, block: &ManifestBlock) -> Result<Vec<u8>, FetchError> {
        let mut fetches = 0;
        loop {
            let bytes = self.fetch_unverified(block).await?;
            fetches += 1;
            if sha256(&bytes) == block.sha256 {
                return Ok(bytes);
            }
            self.progress.remove_bytes(bytes.len() as u64);
            if fetches == FETCHES_MAX {
                let what = format!("its bytes did not match the hash of the manifest, {FETCHES_MAX} times");
                return Err(FetchError::Damaged { block: block.index, what });
            }
            self.client.options().notify(&DownloadEvent::BlockDamaged { block: block.index });
        }
    }

    /// The bytes of a result without blocks: a stream that contains only the schema.
    async fn fetch_empty(&self) -> Result<Vec<u8>, FetchError> {
        let attempt = async || {
            let response = self.client.get(self.address.data_url(), accept_arrow()).await?;
            self.client.read_body(response, EMPTY_BYTES_MAX).await
        };
        self.client.retry(attempt).await
    }

    async fn fetch_unverified(&self, block: &ManifestBlock) -> Result<Vec<u8>, FetchError> {
        let mut retry_state = RetryState::new(self.client);
        let mut arrived = PartialBlock::default();
        let mut most = 0;
        loop {
            let Err(failure) = self.fetch_remaining(block, &mut arrived).await else { return Ok(arrived.bytes) };
            if arrived.bytes.len() > most {
                most = arrived.bytes.len();
                retry_state.reset();
            }
            let waited = retry_state.wait_after_failure(failure).await;
            if waited.is_err() {
                self.discard(&mut arrived);
            }
            waited?;
        }
    }

    async fn fetch_remaining(&self, block: &ManifestBlock, arrived: &mut PartialBlock) -> Result<(), RequestFailure> {
        if !arrived.bytes.is_empty() && arrived.bytes.len() as u64 == block.bytes {
            // All bytes arrived; only the end of the response was lost.
            return Ok(());
        }
        let mut headers = accept_arrow();
        if let (false, Some(tag)) = (arrived.bytes.is_empty(), &arrived.etag) {
            headers.insert(IF_RANGE, tag.clone());
            let range = HeaderValue::try_from(format!("bytes={}-", arrived.bytes.len()));
            headers.extend(range.ok().map(|range| (RANGE, range)));
        }
        let mut response = self.client.get(self.address.block_url(block.index), headers).await?;
        if !is_continuation(&response, arrived.bytes.len()) {
            self.discard(arrived);
        }
        arrived.etag = response.headers().get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/")).cloned();
        while let Some(chunk) = self.client.next_chunk(&mut response).await? {
            self.progress.add_bytes(chunk.len() as u64);
            arrived.bytes.extend_from_slice(&chunk);
            if arrived.bytes.len() as u64 > block.bytes {
                // The block is too long, so its hash is wrong whatever follows.
                return Ok(());
            }
        }
        Ok(())
    }

    fn discard(&self, arrived: &mut PartialBlock) {
        self.progress.remove_bytes(arrived.bytes.len() as u64);
        arrived.bytes.clear();
    }
}

fn is_continuation(response: &Response, bytes: usize) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    let first = range.and_then(|range| range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok());
    response.status() == StatusCode::PARTIAL_CONTENT && first == Some(bytes)
}

fn accept_arrow() -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(Format::Arrow.media_type()))])
}

const RESULT_ID_FILE: &str = "result";
/// File that the current run keeps locked.
const LOCK_FILE: &str = "lock";
const BLOCK_EXTENSION: &str = ".arrow";

/// The folder of the blocks, used by one run at a time.
struct PartialDownload {
    folder: Arc<Path>,
    lock: File,
    tasks: TaskTracker,
}

impl PartialDownload {
    /// Opens the folder, unless another run uses it, and removes blocks of other results than `id`.
    pub(crate) fn open(output_file: &OutputFile, id: Uuid) -> Result<Self, FetchError> {
        let folder = output_file.partial_folder();
        let failed = |doing| FetchError::disk_error(&folder, doing);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed("created")(error)),
            _ => {}
        }
        let lock = File::create(folder.join(LOCK_FILE)).map_err(failed("written to"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(FetchError::DestinationBusy { path: output_file.path().to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(failed("locked")(error)),
        }
        let is_same = fs::read_to_string(folder.join(RESULT_ID_FILE)).is_ok_and(|named| named.trim() == id.to_string());
        for path in owned_files(&folder) {
            if !is_same || !is_block_file(&path) {
                fs::remove_file(&path).map_err(failed("cleared"))?;
            }
        }
        fs::write(folder.join(RESULT_ID_FILE), format!("{id}\n")).map_err(failed("written to"))?;
        Ok(Self { folder: folder.into(), lock, tasks: TaskTracker::new() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn block_path(&self, index: u64) -> PathBuf {
        self.folder.join(format!("{index}{BLOCK_EXTENSION}"))
    }

    async fn has_block(&self, block: &ManifestBlock) -> Result<bool, FetchError> {
        let (path, bytes, hash) = (self.block_path(block.index), block.bytes, block.sha256.clone());
        self.run_blocking(move || {
            let is_candidate = path.metadata().is_ok_and(|metadata| metadata.len() == bytes);
            Ok(is_candidate && fs::read(&path).is_ok_and(|stored| sha256(&stored) == hash))
        })
        .await
    }

    async fn store_block(&self, index: u64, bytes: Vec<u8>) -> Result<(), FetchError> {
        let path = self.block_path(index);
        self.run_blocking(move || {
            let written = File::create(&path).and_then(|mut file| file.write_all(&bytes));
            written.map_err(FetchError::disk_error(&path, "written"))
        })
        .await
    }

    fn count_blocks(&self) -> usize {
        owned_files(&self.folder).filter(|path| is_block_file(path)).count()
    }

    async fn wait_for_tasks(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Removes the folder, unless it contains files of others.
    pub(crate) fn remove(self) {
        let Self { folder, lock, .. } = self;
        drop(lock);
        // A file that cannot be removed is harmless, and the download has succeeded.
        for path in owned_files(&folder) {
            let _ = fs::remove_file(path);
        }
        let _ = fs::remove_file(folder.join(LOCK_FILE));
        let _ = fs::remove_dir(&folder);
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
    ) -> Result<T, FetchError> {
        self.tasks.spawn_blocking(work).await.map_err(|error| FetchError::from_join_error(&error))?
    }
}

/// The files of earlier runs in `folder`, without the lock.
fn owned_files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == RESULT_ID_FILE || name.ends_with(UNFINISHED_SUFFIX) || is_block_file(path)
    })
}

fn is_block_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(BLOCK_EXTENSION).is_some_and(|index| index.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: &[u8] = b"a block";

    fn block(index: u64) -> ManifestBlock {
        ManifestBlock { index, rows: 1, bytes: BYTES.len() as u64, sha256: sha256(BYTES) }
    }

    #[tokio::test]
    async fn blocks_are_reused_by_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let output_file = OutputFile::new(folder.path().join("out.csv"), None, false).unwrap();
        let open = |id| PartialDownload::open(&output_file, Uuid::from_u128(id));
        let partial = open(1).unwrap();
        for index in [0, 3] {
            partial.store_block(index, BYTES.to_vec()).await.unwrap();
        }
        fs::write(partial.block_path(3), "b block").unwrap();
        fs::write(partial.folder().join("a stranger's"), "x").unwrap();
        fs::write(partial.folder().join(".out.csv.x.tmp"), "x").unwrap();
        assert!(matches!(open(1), Err(FetchError::DestinationBusy { .. })));
        partial.wait_for_tasks().await;
        drop(partial);

        let partial = open(1).unwrap();
        assert_eq!(partial.count_blocks(), 2);
        assert!(partial.has_block(&block(0)).await.unwrap());
        assert!(!partial.has_block(&block(1)).await.unwrap());
        assert!(!partial.has_block(&block(3)).await.unwrap(), "its bytes are others");
        drop(partial);

        let partial = open(2).unwrap();
        assert_eq!(partial.count_blocks(), 0, "blocks of another result");
        let names = fs::read_dir(partial.folder()).unwrap().count();
        assert_eq!(names, 3, "lock, result and the stranger's");
        fs::remove_file(partial.folder().join("a stranger's")).unwrap();
        partial.remove();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
