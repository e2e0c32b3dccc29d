//! The row groups of a Parquet file as the library reads them, with a check of each page after its decompression.
//!
//! Some encodings begin with a number of values of their own, for which the library makes room at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::parquet_footer::CompactReader;
use crate::parquet_pages::fixed_bytes;

/// All row groups of a file.
pub(crate) struct CheckedGroups<R> {
    pub(crate) file: Arc<R>,
    pub(crate) metadata: Arc<ParquetMetaData>,
    pub(crate) budget: Arc<PageBudget>,
}

/// Bounds the pages that are read for one batch: a list can be longer than a page, and is read as a whole.
#[derive(Debug)]
pub(crate) struct PageBudget {
    bytes_max: u64,
    /// Since the last batch.
    read_bytes: AtomicU64,
}

/// The pages of one column, row group after row group.
struct CheckedChunks<R> {
    file: Arc<R>,
    metadata: Arc<ParquetMetaData>,
    budget: Arc<PageBudget>,
    column: usize,
    next_group: usize,
}

struct CheckedPages<R: ChunkReader> {
    pages: SerializedPageReader<R>,
    budget: Arc<PageBudget>,
    max_definition_level: i16,
    max_repetition_level: i16,
    /// The bytes of a value when it is read.
    value_bytes: u64,
}

impl PageBudget {
    pub(crate) fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self { bytes_max, read_bytes: AtomicU64::new(0) })
    }

    /// What the pages of a batch take at most.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Begins the next batch.
    pub(crate) fn reset(&self) {
        self.read_bytes.store(0, Ordering::Relaxed);
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.read_bytes.load(Ordering::Relaxed) > self.bytes_max
    }

    fn take(&self, bytes: u64) -> Result<()> {
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        match self.is_exceeded() {
            true => Err(ParquetError::General("a few rows have more pages than a batch may have".to_owned())),
            false => Ok(()),
        }
    }
}

impl<R: ChunkReader + 'static> RowGroups for CheckedGroups<R> {
    fn num_rows(&self) -> usize {
        usize::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let (file, metadata, budget) = (self.file.clone(), self.metadata.clone(), self.budget.clone());
        Ok(Box::new(CheckedChunks { file, metadata, budget, column, next_group: 0 }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

impl<R: ChunkReader + 'static> Iterator for CheckedChunks<R> {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.metadata.row_groups().get(self.next_group)?;
        self.next_group += 1;
        let column = group.columns().get(self.column)?;
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let pages = SerializedPageReader::new(self.file.clone(), column, rows, None);
        let description = column.column_descr();
        let (max_definition_level, max_repetition_level) = (description.max_def_level(), description.max_rep_level());
        let (budget, value_bytes) = (self.budget.clone(), fixed_bytes(column));
        Some(pages.map(|pages| {
            Box::new(CheckedPages { pages, budget, max_definition_level, max_repetition_level, value_bytes }) as _
        }))
    }
}

impl<R: ChunkReader + 'static> PageIterator for CheckedChunks<R> {}

impl<R: ChunkReader> CheckedPages<R> {
    /// What the page takes, with the values of lists, which are written out.
    fn size(&self, page: &Page) -> u64 {
        let bytes = page.buffer().len() as u64;
        match self.max_repetition_level > 0 && page.is_data_page() {
            true => bytes.max(u64::from(page.num_values()).saturating_mul(self.value_bytes)),
            false => bytes,
        }
    }

    fn check(&self, page: &Page) -> Result<()> {
        let (bytes, values, encoding, levels) = match page {
            Page::DictionaryPage { .. } => return Ok(()),
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. } => {
                let repetition = (self.max_repetition_level, *rep_level_encoding);
                let definition = (self.max_definition_level, *def_level_encoding);
                let levels = [repetition, definition].into_iter().try_fold(0, |start, (max, encoding)| {
                    Some(start + levels_bytes(buf.get(start..)?, max, encoding, *num_values)?)
                });
                (buf, *num_values, *encoding, levels)
            }
            Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let levels = def_levels_byte_len.checked_add(*rep_levels_byte_len).map(|levels| levels as usize);
                (buf, *num_values, *encoding, levels)
            }
        };
        let lists = match encoding {
            Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => return Ok(()),
        };
        let rest = levels.and_then(|levels| bytes.get(levels..));
        let are_right = rest.and_then(|rest| {
            let mut rest = rest;
            (0..lists).try_for_each(|_| {
                rest = after_packed(rest, u64::from(values))?;
                Some(())
            })
        });
        are_right.ok_or_else(|| ParquetError::General("a page has other values than its header says".to_owned()))
    }
}

/// The bytes of the levels at the beginning of a page of the first version.
fn levels_bytes(page: &[u8], max: i16, encoding: Encoding, values: u32) -> Option<usize> {
    if max == 0 {
        return Some(0);
    }
    if encoding == Encoding::RLE {
        let length = page.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))?;
        return usize::try_from(length).ok()?.checked_add(4);
    }
    let bits = usize::try_from(16 - max.leading_zeros()).ok()?;
    Some((values as usize).checked_mul(bits)?.div_ceil(8))
}

/// What follows a list of numbers that are packed as differences, if it has no more than `values_max` of them.
///
/// [Delta encoding](https://github.com/apache/parquet-format/blob/master/Encodings.md#delta-encoding-delta_binary_packed--5)
fn after_packed(bytes: &[u8], values_max: u64) -> Option<&[u8]> {
    let mut reader = CompactReader::new(bytes);
    let (block, parts, values) = (reader.variable()?, reader.variable()?, reader.variable()?);
    // The first value.
    reader.variable()?;
    if values > values_max || parts == 0 || block % parts != 0 || block > values_max.max(1 << 16) {
        return None;
    }
    let part = block / parts;
    // The first value is in the header.
    let mut left = values.saturating_sub(1);
    while left > 0 {
        // The smallest difference.
        reader.variable()?;
        let widths: Vec<u8> = (0..parts).map(|_| reader.byte()).collect::<Option<_>>()?;
        for width in widths {
            if left == 0 {
                break;
            }
            // The last part is whole, or ends with its last value.
            let bytes = part.checked_mul(width.into())?.div_ceil(8);
            let present = (reader.rest().len() as u64).min(bytes);
            reader.advance(present)?;
            left = left.saturating_sub(part.max(1));
        }
    }
    Some(reader.rest())
}

impl<R: ChunkReader> Iterator for CheckedPages<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<R: ChunkReader> PageReader for CheckedPages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
            self.budget.take(self.size(page))?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}
