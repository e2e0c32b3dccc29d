//! Bodies of rows: from the bytes of a request to record batches of a table. No HTTP, no SQL, no files of its own.
//!
//! A [`BodyDecoder`] receives a body in pieces and returns [`DecodedRows`]: a batch with the schema of the table, the
//! position of each row in the body, and the rows that were rejected. A [`ParquetBody`] does the same with a file, because
//! Parquet has its schema at the end. [`infer_schema`] and [`parquet_schema`] give the columns for a table that does not
//! exist yet.
//!
//! # Exact or rejected
//!
//! A value that its column does not hold is rejected, never rounded or cut. The exception are floats in JSON and CSV: a
//! column of floats has the nearest one. Numbers are read from their text, so that those of 64 bits and decimals keep all
//! digits. Text never becomes a number except in CSV, where everything is text. `docs/reference/ingest-formats.md` has
//! what fits into what.
//!
//! # A row is whole
//!
//! A row that does not fit leaves nothing in any column. With [`RejectMode::Row`] it is reported, and the others go on. With
//! [`RejectMode::All`] the body is refused at its end with the first [`REPORTED_ROWS_MAX`] reasons. A body that breaks off is
//! an error, whatever the mode; so is a document of JSON whose brackets do not match, because the rest has no meaning.
//! The caller stores rows only after the decoder has returned all of them without an error.
//!
//! # Files
//!
//! [`CsvScanner`], [`JsonScanner`] and [`JsonCursor`] also read tables of files, which have rules of their own.
//!
//! # Bounds
//!
//! [`BodyLimits`] has the size of rows and batches, the number of columns, and how far a compressed body may expand. Values of
//! dictionaries count for each row that has them. What a batch has is counted before it is made. JSON is nested at most 200
//! levels deep, and its numbers have at most 4,300 digits before the point.
//!
//! # Why not the readers of Arrow
//!
//! That of JSON reads 5.5 as the integer 5 and 1e999 as infinity, cuts digits of decimals, times and dates, takes the last
//! of two equal members, and ignores members that no column has. That of CSV cuts digits as well, joins text after a
//! closing quote, and closes quotes that are open. Both end at the first row that they do not accept. The decoders of Arrow
//! streams and Parquet are used, behind checks of the lengths that they trust.

mod arrow_stream;
mod coding;
mod column;
mod convert;
mod csv;
mod decoder;
mod error;
mod infer;
mod json;
mod options;
mod parquet_body;
mod parquet_footer;
mod parquet_groups;
mod parquet_pages;
mod rows;
mod value;

pub use column::NameIndex;
pub use csv::{CsvCharacters, CsvDefect, CsvField, CsvQuotes, CsvScanner};
pub use decoder::BodyDecoder;
pub use error::{BodyError, REJECTED_TEXT_BYTES_MAX, REPORTED_ROWS_MAX, RejectedRow, RowPosition};
pub use infer::{INFERENCE_BYTES, InferredSchema, infer_schema};
pub use json::{JsonCursor, JsonKind, JsonScanner, JsonSyntaxError};
pub use options::{
    BODY_CODING_NAMES, BODY_MEDIA_TYPES, BinaryText, BodyCoding, BodyFormat, BodyLimits, BodyOptions, CsvSyntax,
    RejectMode, UnknownColumns,
};
pub use parquet_body::{ParquetBody, parquet_schema};
pub use parquet_footer::exact_parquet_columns;
pub use parquet_pages::decompressed_parquet_bytes;
pub use rows::{DecodedRows, RowCounts};
