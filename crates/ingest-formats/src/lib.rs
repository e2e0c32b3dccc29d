//! Bodies of rows: from the bytes of a request to record batches of a table.

mod arrow_stream;
mod coding;
mod column;
mod columns;
mod convert;
mod csv;
mod decoder;
mod error;
mod infer;
mod json;
mod options;
mod parquet_body;
mod rows;
mod value;

pub use decoder::BodyDecoder;
pub use error::{BodyError, REJECTED_TEXT_BYTES_MAX, REPORTED_ROWS_MAX, RejectedRow, RowPosition};
pub use infer::{INFERENCE_BYTES, InferredSchema, infer_schema};
pub use options::{
    BODY_CODING_NAMES, BODY_FORMAT_NAMES, BinaryText, BodyCoding, BodyFormat, BodyLimits, BodyOptions, CsvSyntax,
    RejectMode, UnknownColumns,
};
pub use parquet_body::{ParquetBody, parquet_schema};
pub use rows::{DecodedRows, RowCounts};
