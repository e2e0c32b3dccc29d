//! The pages of a Parquet file, checked before the library reads one.
//!
//! The library makes as many bytes as the header of a page claims, or as its compressed bytes give. So all headers are
//! read first, and pages whose codec has no bound are decompressed once to count their bytes.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use parquet::basic::{Compression, Encoding, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::ChunkReader;

use crate::convert::check_expansion;
use crate::error::BodyError;
use crate::options::BodyLimits;
use crate::parquet_footer::{CompactReader, CompactType, SKIP_DEPTH_MAX};

/// How many bytes are read for the header of a page: at first, and at most. Its statistics have values, which may be long.
const HEADER_BYTES: usize = 1 << 10;
const HEADER_BYTES_MAX: usize = 1 << 20;
/// The most values of a page. Of columns with lists, whose values are all read for one row, and of encodings that begin
/// with the lengths of all values, there may be fewer.
const VALUES_MAX: i64 = 1 << 26;
const VALUES_AT_ONCE_MAX: i64 = 1 << 22;
/// The bytes of the pages that are read at the same time: of each column one with values and one with the dictionary.
const OPEN_PAGES_BYTES_MAX: u64 = 512 << 20;
/// The buffer of a decoder.
const BUFFER_BYTES: usize = 16 << 10;

/// The header of a page.
#[derive(Debug, Default)]
struct PageHeader {
    uncompressed: i64,
    compressed: i64,
    values: i64,
    /// The bytes of the levels, which are not compressed in the second version of pages.
    levels: i64,
    encoding: i64,
    is_dictionary: bool,
    is_stored: bool,
}

/// What the pages of a file take when they are read.
#[derive(Debug, Default)]
pub(crate) struct PageSizes {
    /// The most bytes of a row: of values that are written out, and of the pages that have its texts.
    pub(crate) row_bytes: u64,
    /// The most bytes of pages that are open at once.
    pub(crate) open_bytes: u64,
    /// The bytes of all pages.
    pub(crate) total_bytes: u64,
    /// Whether a column has lists, which may be longer than a page.
    pub(crate) has_lists: bool,
}

/// Checks the pages of all columns, in a file of this length.
pub(crate) fn check_pages<R: ChunkReader>(
    file: &R,
    metadata: &ParquetMetaData,
    length: u64,
    limits: &BodyLimits,
) -> Result<PageSizes, BodyError> {
    let mut sizes = PageSizes::default();
    for group in metadata.row_groups() {
        let group_rows = u64::try_from(group.num_rows()).unwrap_or(0);
        let mut open = 0_u64;
        let mut row = 0_u64;
        for column in group.columns() {
            let pages = check_chunk(file, column, limits)?;
            sizes.total_bytes = sizes.total_bytes.saturating_add(pages.total);
            check_expansion(sizes.total_bytes, length, limits)?;
            open = open.saturating_add(pages.largest).saturating_add(pages.dictionary);
            // A batch may have rows of several groups, each with a dictionary.
            let dictionary = pages.dictionary.div_ceil(group_rows.max(1));
            row = row.saturating_add(pages.row_bytes).saturating_add(dictionary);
            sizes.has_lists |= column.column_descr().max_rep_level() > 0;
        }
        if open > OPEN_PAGES_BYTES_MAX {
            return Err(BodyError::TooLarge(format!(
                "the columns of a row group have pages of {open} bytes together; at most {OPEN_PAGES_BYTES_MAX} are \
                 allowed; write smaller pages"
            )));
        }
        sizes.row_bytes = sizes.row_bytes.max(row);
        sizes.open_bytes = sizes.open_bytes.max(open);
    }
    Ok(sizes)
}

/// The sizes of the pages of a column in one row group.
#[derive(Debug, Default)]
struct ChunkPages {
    total: u64,
    largest: u64,
    dictionary: u64,
    row_bytes: u64,
}

fn check_chunk<R: ChunkReader>(
    file: &R,
    column: &ColumnChunkMetaData,
    limits: &BodyLimits,
) -> Result<ChunkPages, BodyError> {
    let name = || column.column_path().string();
    if column.compression() == Compression::LZ4 {
        let reason = "is compressed with the outdated LZ4; write LZ4_RAW, ZSTD or SNAPPY";
        return Err(BodyError::Columns(format!("column \"{}\" {reason}", name())));
    }
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let (Ok(mut position), Ok(bytes)) = (u64::try_from(start), u64::try_from(column.compressed_size())) else {
        return Err(malformed("a column has a negative position or length"));
    };
    let end = position.checked_add(bytes).filter(|end| *end <= file.len());
    let end = end.ok_or_else(|| malformed("a column is outside of the file"))?;
    let fixed = fixed_bytes(column);
    let mut pages = ChunkPages { row_bytes: fixed, ..ChunkPages::default() };
    while position < end {
        let (header, header_bytes) = read_header(file, position, end)?;
        check_header(&header, column, limits).map_err(|problem| in_column(problem, &name()))?;
        position += header_bytes;
        check_stored_bytes(file, &header, column.compression(), (position, end))?;
        position += header.compressed.unsigned_abs();
        let page = header.uncompressed.unsigned_abs();
        let mut size = page;
        if !header.is_dictionary {
            let values = header.values.unsigned_abs();
            let row = if column.column_descr().max_rep_level() > 0 {
                // A row may have all values of a page, however few bytes they take there, and is read at once.
                size = page.max(values.saturating_mul(fixed));
                size
            } else {
                let of_page = page.div_ceil(values.max(1));
                match column.column_type() {
                    // The texts of a batch are views of all pages that its rows are in.
                    PhysicalType::BYTE_ARRAY => of_page.saturating_add(fixed),
                    _ => of_page.max(fixed),
                }
            };
            pages.row_bytes = pages.row_bytes.max(row);
        }
        pages.total = pages.total.saturating_add(size);
        match header.is_dictionary {
            true => pages.dictionary = pages.dictionary.max(page),
            false => pages.largest = pages.largest.max(page),
        }
        // A value repeats the beginning of the one before it.
        if header.encoding == code(Encoding::DELTA_BYTE_ARRAY) {
            pages.row_bytes = pages.row_bytes.max(page);
        }
    }
    Ok(pages)
}

/// The bytes that the library makes at once of the pages in `bytes`, as their headers claim: of the largest with values, and of
/// the largest dictionary. Stored pages are read where they are. What follows a damaged header is not counted.
#[must_use]
pub fn decompressed_parquet_bytes(bytes: &[u8]) -> u64 {
    let (mut rest, mut largest, mut dictionary) = (bytes, 0, 0);
    while !rest.is_empty() {
        let mut reader = CompactReader::new(rest);
        let Some(header) = PageHeader::read(&mut reader) else { break };
        let is_decompressed = header.uncompressed > header.compressed;
        let bytes = if is_decompressed { header.uncompressed.unsigned_abs() } else { 0 };
        let most = if header.is_dictionary { &mut dictionary } else { &mut largest };
        *most = bytes.max(*most);
        if reader.advance(header.compressed.unsigned_abs()).is_none() {
            break;
        }
        rest = reader.rest();
    }
    largest + dictionary
}

/// The bytes of a value when it is read. Texts are read as views of their page.
pub(crate) fn fixed_bytes(column: &ColumnChunkMetaData) -> u64 {
    match column.column_type() {
        PhysicalType::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.column_descr().type_length()).unwrap_or(0),
        PhysicalType::BOOLEAN => 1,
        PhysicalType::INT32 | PhysicalType::FLOAT => 4,
        PhysicalType::INT64 | PhysicalType::DOUBLE => 8,
        PhysicalType::INT96 | PhysicalType::BYTE_ARRAY => 16,
    }
}

/// The number of an encoding in the format.
fn code(encoding: Encoding) -> i64 {
    match encoding {
        Encoding::DELTA_BINARY_PACKED => 5,
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 6,
        Encoding::DELTA_BYTE_ARRAY => 7,
        _ => -1,
    }
}

fn read_header<R: ChunkReader>(file: &R, position: u64, end: u64) -> Result<(PageHeader, u64), BodyError> {
    let mut window = HEADER_BYTES;
    loop {
        let length = usize::try_from(end - position).unwrap_or(usize::MAX).min(window);
        let bytes = file.get_bytes(position, length).map_err(|error| spool(&error))?;
        let mut reader = CompactReader::new(&bytes);
        if let Some(header) = PageHeader::read(&mut reader) {
            return Ok((header, (bytes.len() - reader.rest().len()) as u64));
        }
        if length < window || window >= HEADER_BYTES_MAX {
            return Err(malformed("the header of a page is malformed"));
        }
        window *= 16;
    }
}

impl PageHeader {
    /// [Page headers](https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift)
    fn read(reader: &mut CompactReader<'_>) -> Option<Self> {
        let (mut header, mut field) = (Self::default(), 0);
        loop {
            match (reader.field(&mut field)?, field) {
                (CompactType::Stop, _) => return Some(header),
                (CompactType::Integer, 2) => header.uncompressed = reader.integer()?,
                (CompactType::Integer, 3) => header.compressed = reader.integer()?,
                (CompactType::Struct, 5) => header.read_data(reader, 2)?,
                (CompactType::Struct, 7) => {
                    header.is_dictionary = true;
                    header.read_data(reader, 0)?;
                }
                (CompactType::Struct, 8) => header.read_data(reader, 4)?,
                // The library does not look at the type of a field.
                (_, 2 | 3 | 5 | 7 | 8) => return None,
                (kind, _) => reader.skip(kind, SKIP_DEPTH_MAX)?,
            }
        }
    }

    /// The header of one kind of page, in which a field has the encoding.
    fn read_data(&mut self, reader: &mut CompactReader<'_>, encoding_field: i64) -> Option<()> {
        let is_second_version = encoding_field == 4;
        let mut field = 0;
        loop {
            match (reader.field(&mut field)?, field) {
                (CompactType::Stop, _) => return Some(()),
                (CompactType::Integer, 1) => self.values = reader.integer()?,
                (CompactType::Integer, _) if field == encoding_field => self.encoding = reader.integer()?,
                (CompactType::Integer, 5 | 6) if is_second_version => {
                    self.levels = self.levels.checked_add(reader.integer()?)?;
                }
                (CompactType::Boolean(is_compressed), 7) if is_second_version => self.is_stored = !is_compressed,
                (_, 1) => return None,
                (_, 5..=7) if is_second_version => return None,
                (_, _) if field == encoding_field => return None,
                (kind, _) => reader.skip(kind, SKIP_DEPTH_MAX)?,
            }
        }
    }
}

fn check_header(header: &PageHeader, column: &ColumnChunkMetaData, limits: &BodyLimits) -> Result<(), BodyError> {
    let sizes = [header.uncompressed, header.compressed, header.values, header.levels];
    if sizes.iter().any(|size| *size < 0) || header.levels > header.uncompressed.min(header.compressed) {
        return Err(malformed("the header of a page contradicts itself"));
    }
    let max = limits.message_bytes_max as u64;
    if header.uncompressed.unsigned_abs() > max {
        let bytes = header.uncompressed;
        return Err(BodyError::TooLarge(format!(
            "a page has {bytes} bytes after decompression; at most {max} are allowed; write smaller pages"
        )));
    }
    let has_lists = column.column_descr().max_rep_level() > 0;
    let has_lengths =
        [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY].map(code).contains(&header.encoding);
    let max = if has_lists || has_lengths { VALUES_AT_ONCE_MAX } else { VALUES_MAX };
    if header.values > max {
        let values = header.values;
        return Err(BodyError::TooLarge(format!(
            "a page has {values} values; at most {max} are allowed; write smaller pages"
        )));
    }
    Ok(())
}

/// Counts what the bytes of a page become, where the codec of the library has no bound.
fn check_stored_bytes<R: ChunkReader>(
    file: &R,
    header: &PageHeader,
    compression: Compression,
    (position, end): (u64, u64),
) -> Result<(), BodyError> {
    let stored = header.compressed.unsigned_abs();
    if position.checked_add(stored).is_none_or(|page_end| page_end > end) {
        return Err(malformed("a page is outside of its column"));
    }
    let levels = header.levels.unsigned_abs();
    let expected = header.uncompressed.unsigned_abs() - levels;
    if header.is_stored || expected == 0 {
        return Ok(());
    }
    let bytes = || -> Result<_, BodyError> {
        Ok(file.get_read(position + levels).map_err(|error| spool(&error))?.take(stored - levels))
    };
    let counted = match compression {
        Compression::GZIP(_) => count(MultiGzDecoder::new(bytes()?), expected),
        Compression::BROTLI(_) => count(brotli::Decompressor::new(bytes()?, BUFFER_BYTES), expected),
        _ => return Ok(()),
    };
    match counted {
        Ok(counted) if counted <= expected => Ok(()),
        Ok(_) => Err(malformed("a page has more bytes than its header says")),
        Err(error) => Err(malformed(&format!("a page cannot be decompressed: {error}"))),
    }
}

/// How many bytes there are to read, or one more than expected.
fn count(reader: impl Read, expected: u64) -> io::Result<u64> {
    io::copy(&mut reader.take(expected + 1), &mut io::sink())
}

fn in_column(error: BodyError, name: &str) -> BodyError {
    match error {
        BodyError::TooLarge(reason) => BodyError::TooLarge(format!("column \"{name}\": {reason}")),
        other => other,
    }
}

fn spool(error: &ParquetError) -> BodyError {
    BodyError::Spool(error.to_string())
}

fn malformed(reason: &str) -> BodyError {
    BodyError::Malformed(format!("the body is no valid Parquet file: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<i64> {
        PageHeader::read(&mut CompactReader::new(bytes)).map(|header| header.uncompressed)
    }

    #[test]
    fn pages_are_counted_until_a_damaged_one() {
        // Of 8 bytes from 2, and of 4 stored bytes.
        let (page, stored): (&[u8], &[u8]) = (&[0x15, 0, 0x15, 16, 0x15, 4, 0, 1, 2], &[0x15, 0, 0x15, 8, 0x15, 8, 0]);
        assert_eq!(decompressed_parquet_bytes(page), 8);
        assert_eq!(decompressed_parquet_bytes(&[page, stored, &[1, 2, 3, 4], page].concat()), 8);
        assert_eq!(decompressed_parquet_bytes(&[stored, &[1, 2, 3, 4]].concat()), 0);
        let dictionary = [0x15, 4, 0x15, 20, 0x15, 2, 0x4C, 0x15, 0, 0, 0, 9];
        assert_eq!(decompressed_parquet_bytes(&[page, &dictionary].concat()), 18);
        assert_eq!(decompressed_parquet_bytes(&[page, &[0xFF]].concat()), 8);
        assert_eq!(decompressed_parquet_bytes(&[0x15, 0, 0x15, 16, 0x15, 3, 0]), 8);
    }

    #[test]
    fn a_header_with_two_meanings_is_none() {
        // The kind of the page, 8 bytes, 7 bytes compressed.
        assert_eq!(read(&[0x15, 0, 0x15, 16, 0x15, 14, 0]), Some(8));
        // Field 2 again, by its number; as the byte that it is not; as 65,538, which the library reads as 2.
        assert_eq!(read(&[0x15, 0, 0x15, 16, 0x05, 4, 18, 0]), None);
        assert_eq!(read(&[0x15, 0, 0x13, 16, 0]), None);
        assert_eq!(read(&[0x15, 0, 0x15, 16, 0x05, 0x84, 0x80, 0x08, 18, 0]), None);
        // A length of 2^32 + 8, of which the library reads 8.
        assert_eq!(read(&[0x15, 0, 0x15, 0x90, 0x80, 0x80, 0x80, 0x20, 0]), None);
    }
}
