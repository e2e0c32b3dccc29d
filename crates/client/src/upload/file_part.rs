//! A part of a file that becomes the body of one request.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use futures::Stream;

/// So many bytes are read at once.
const PIECE_BYTES: usize = 256 << 10;

/// A part of a file. Its digest is known, so that the bytes that are sent are those that its key stands for.
#[derive(Debug, Clone)]
pub struct FilePart {
    file: Arc<File>,
    /// Sent before the bytes of the file: the header of CSV, in all parts but the first.
    head: Bytes,
    start: u64,
    end: u64,
    digest: [u8; 32],
    lines_before: u64,
    lines: u64,
}

impl FilePart {
    /// The bytes from `start` to `end` of `file`, after `head`. Reads them to compute their digest.
    ///
    /// # Errors
    /// When the file cannot be read, or is shorter.
    pub(super) fn read(file: Arc<File>, head: Bytes, (start, end): (u64, u64), lines_before: u64) -> io::Result<Self> {
        let mut context = Context::new(&SHA256);
        let (mut position, mut lines) = (start, 0);
        while position < end {
            let piece = read_piece(&file, position, end)?;
            context.update(&piece);
            lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
            position += piece.len() as u64;
        }
        Ok(Self { file, head, start, end, digest: finish(context), lines_before, lines })
    }

    /// The position in the file.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The bytes of the file that it has.
    pub fn file_bytes(&self) -> u64 {
        self.end - self.start
    }

    /// The length of the body.
    pub fn body_bytes(&self) -> u64 {
        self.file_bytes() + self.head.len() as u64
    }

    /// A key for its rows from `scope`, its position and its bytes. Parts with the same key have the same rows.
    pub fn key(&self, scope: &str) -> String {
        let mut context = Context::new(&SHA256);
        for length in [scope.len() as u64, self.start, self.end, self.head.len() as u64] {
            context.update(&length.to_le_bytes());
        }
        context.update(scope.as_bytes());
        context.update(&self.head);
        context.update(&self.digest);
        hex::encode(finish(context))
    }

    /// The line of the file that is line `line` of the body. The first line is 1.
    pub fn file_line(&self, line: u64) -> u64 {
        let head_lines = self.head.iter().filter(|byte| **byte == b'\n').count() as u64;
        (line + self.lines_before).saturating_sub(head_lines)
    }

    /// The line breaks up to its end.
    pub fn lines_to_end(&self) -> u64 {
        self.lines_before + self.lines
    }

    /// The body. `on_bytes` receives how many bytes of the file were read. An error replaces the last bytes if the file
    /// was changed, so that nothing is stored.
    pub fn stream(
        &self,
        on_bytes: impl Fn(u64) + Send + Sync + 'static,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let listener = Arc::new(on_bytes);
        let reader = PartReader {
            head: Some(self.head.clone()).filter(|head| !head.is_empty()),
            position: self.start,
            context: Context::new(&SHA256),
            part: self.clone(),
        };
        futures::stream::unfold(Some(reader), move |reader| {
            let read = reader.map(|reader| reader.next());
            let listener = listener.clone();
            async move {
                let (piece, reader) = read?.await?;
                if let Ok((_, file_bytes)) = &piece {
                    listener(*file_bytes);
                }
                Some((piece.map(|(bytes, _)| bytes), reader))
            }
        })
    }

    /// The first bytes, at most `max`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn beginning(&self, max: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.head.to_vec();
        let end = self.end.min(self.start.saturating_add(max as u64));
        let mut position = self.start;
        while position < end {
            let piece = read_piece(&self.file, position, end)?;
            position += piece.len() as u64;
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

struct PartReader {
    head: Option<Bytes>,
    position: u64,
    context: Context,
    part: FilePart,
}

/// Bytes of the body, and how many of them are the file's.
type Piece = (Bytes, u64);

impl PartReader {
    /// The next bytes, with the reader of those after them. Nothing at the end.
    async fn next(mut self) -> Option<(io::Result<Piece>, Option<Self>)> {
        if let Some(head) = self.head.take() {
            return Some((Ok((head, 0)), Some(self)));
        }
        if self.position >= self.part.end {
            return None;
        }
        let step = move || {
            let read = self.read();
            (read, self)
        };
        match tokio::task::spawn_blocking(step).await {
            Ok((Ok(bytes), reader)) => {
                let length = bytes.len() as u64;
                Some((Ok((bytes, length)), Some(reader)))
            }
            Ok((Err(error), _)) => Some((Err(error), None)),
            Err(error) => Some((Err(io::Error::other(error)), None)),
        }
    }

    fn read(&mut self) -> io::Result<Bytes> {
        let piece = read_piece(&self.part.file, self.position, self.part.end)?;
        self.position += piece.len() as u64;
        self.context.update(&piece);
        if self.position >= self.part.end && finish(self.context.clone()) != self.part.digest {
            return Err(changed());
        }
        Ok(piece.into())
    }
}

fn read_piece(file: &File, position: u64, end: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(end - position).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
    let mut piece = vec![0; length];
    loop {
        match file.read_at(&mut piece, position) {
            Ok(0) => return Err(changed()),
            Ok(count) => {
                piece.truncate(count);
                return Ok(piece);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file was changed while it was sent")
}

fn finish(context: Context) -> [u8; 32] {
    let mut digest = [0; 32];
    digest.iter_mut().zip(context.finish().as_ref()).for_each(|(to, from)| *to = *from);
    digest
}
