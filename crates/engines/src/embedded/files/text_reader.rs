//! Reads the bytes of a text file: decompressed, without a byte order mark, and with a limit.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;

use super::encoding::{TextEncoding, skip_lines};
use super::file_kind::Compression;

const BUFFER_BYTES: usize = 64 * 1_024;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The conversion from the bytes of a text file to its rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct TextDecoding {
    pub(crate) encoding: TextEncoding,
    /// Number of lines to skip at the beginning.
    pub(crate) skip_lines: usize,
}

/// The number of bytes of a text file that may be read until the budget is reset.
///
/// An unclosed quote makes the rest of the file one row. Without a limit, the whole row would be buffered.
#[derive(Debug, Clone)]
pub(crate) struct ReadBudget {
    bytes_max: usize,
    bytes_left: Arc<AtomicUsize>,
}

impl ReadBudget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes_left: Arc::new(AtomicUsize::new(bytes_max)) }
    }

    pub(crate) fn reset(&self) {
        self.bytes_left.store(self.bytes_max, Ordering::Relaxed);
    }

    /// The error is of the kind `FileTooLarge`.
    fn spend(&self, bytes: usize) -> io::Result<()> {
        let left = self.bytes_left.load(Ordering::Relaxed);
        self.bytes_left.store(left.saturating_sub(bytes), Ordering::Relaxed);
        if bytes <= left {
            return Ok(());
        }
        let mebibytes = self.bytes_max >> 20;
        let message = format!("a row is longer than {mebibytes} MiB; check for an unclosed quote or bracket");
        Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
    }
}

pub(crate) fn open_text(
    file: File,
    compression: Compression,
    decoding: TextDecoding,
    budget: ReadBudget,
) -> Result<BufReader<Box<dyn Read + Send>>, String> {
    let decoded = decoding.encoding.decode(BudgetedReader { inner: open_decompressed(file, compression)?, budget });
    let mut text = BufReader::with_capacity(BUFFER_BYTES, decoded);
    match skip_byte_order_mark(&mut text).and_then(|()| skip_lines(&mut text, decoding.skip_lines)) {
        Ok(()) => Ok(text),
        Err(error) => Err(read_error_reason(&error, compression)),
    }
}

pub(crate) fn read_beginning(file: File, compression: Compression, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = open_decompressed(file, compression)?.take(bytes_max).read_to_end(&mut bytes);
    read.map_err(|error| read_error_reason(&error, compression))?;
    Ok(bytes)
}

pub(crate) fn open_decompressed(file: File, compression: Compression) -> Result<Box<dyn Read + Send>, String> {
    FileCompressionType::from(compression).convert_read(file).map_err(|error| error.strip_backtrace().to_string())
}

pub(crate) fn read_error_reason(error: &io::Error, compression: Compression) -> String {
    let text = super::path_sandbox::io_error_reason(error);
    match compression {
        Compression::UNCOMPRESSED => text,
        _ => format!("the compressed file is damaged or cut off: {text}"),
    }
}

fn skip_byte_order_mark(text: &mut impl BufRead) -> io::Result<()> {
    if text.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        text.consume(BYTE_ORDER_MARK.len());
    }
    Ok(())
}

struct BudgetedReader<R> {
    inner: R,
    budget: ReadBudget,
}

impl<R: Read> Read for BudgetedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.budget.spend(read)?;
        Ok(read)
    }
}
