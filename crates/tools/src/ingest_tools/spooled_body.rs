//! Bodies of Parquet: stored in a temporary file first, because Parquet is read from its end.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::{Error, ErrorKind};

use super::row_arguments::BodyPieces;

/// How many bytes are written at once.
const WRITE_BYTES: usize = 1 << 20;
/// When a sender may try again after there was no room for its body.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// Reads the whole body into a file without a name, which disappears when it is closed.
///
/// # Errors
/// Those of the body, and `Unavailable` if the file cannot be written.
pub(super) async fn spool(folder: &Path, pieces: &mut BodyPieces) -> Result<File, Error> {
    let folder = folder.to_owned();
    let mut file = on_blocking_thread(move || tempfile::tempfile_in(folder).map_err(|error| no_room(&error))).await?;
    let mut pending: Vec<Bytes> = Vec::new();
    let mut pending_bytes = 0;
    loop {
        let piece = pieces.next().await?;
        let is_end = piece.is_none();
        pending_bytes += piece.as_ref().map_or(0, Bytes::len);
        pending.extend(piece);
        if pending_bytes >= WRITE_BYTES || is_end {
            let written = std::mem::take(&mut pending);
            pending_bytes = 0;
            file = on_blocking_thread(move || {
                written.iter().try_for_each(|piece| file.write_all(piece)).map_err(|error| no_room(&error))?;
                Ok(file)
            })
            .await?;
        }
        if is_end {
            return Ok(file);
        }
    }
}

/// Runs `work` on a thread that may block.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal(format!("reading a body of rows failed: {error}"))))
}

fn no_room(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the body cannot be stored in a temporary file; nothing was stored")
        .with_detail(format!("spooling a body of rows: {error}"))
        .with_retry_after(RETRY_AFTER)
}
