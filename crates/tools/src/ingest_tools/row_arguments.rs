//! Where rows come from, the body of the request or an argument of the call; and how a body is read, by its media type,
//! its coding and the arguments.

use arrow::datatypes::{DataType, Schema};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Number, Value};
use tidegate_core::{Error, ErrorKind, Violation};
use tidegate_ingest_formats::{
    BODY_CODING_NAMES, BODY_MEDIA_TYPES, BinaryText, BodyCoding, BodyFormat, BodyOptions, RejectMode, UnknownColumns,
};
use tidegate_query::IngestTable;
use tidegate_runtime::{RequestBodyReader, RequestBodyTypes};

/// The media type of rows in an argument.
const JSON: &str = "application/json";
/// Numbers with more digits may have lost some when the message was read.
const EXACT_DIGITS_MAX: usize = 15;
/// Floats from here on, 2^53, are not every integer.
const INTEGERS_EXACT_TO: f64 = 9_007_199_254_740_992.0;
const VIOLATIONS_MAX: usize = 100;

/// The bytes of rows, in pieces.
#[derive(Debug)]
pub(super) enum BodyPieces {
    /// The body of the request.
    Request(Box<RequestBodyReader>),
    /// The rows of an argument as JSON, until they were taken.
    Argument(Option<Bytes>),
}

impl BodyPieces {
    pub(super) fn from_rows(rows: &[Value]) -> Self {
        // Values of JSON can always be written.
        Self::Argument(Some(serde_json::to_vec(rows).unwrap_or_default().into()))
    }

    pub(super) fn media_type(&self) -> &str {
        match self {
            Self::Request(body) => body.media_type(),
            Self::Argument(_) => JSON,
        }
    }

    pub(super) fn coding(&self) -> Option<&str> {
        match self {
            Self::Request(body) => body.coding(),
            Self::Argument(_) => None,
        }
    }

    /// The next bytes; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Request(body) => body.next().await,
            Self::Argument(rows) => Ok(rows.take()),
        }
    }

    /// Reads what is left, so that a sender that sends everything before it reads gets its answer.
    pub(super) async fn discard(&mut self) -> Result<(), Error> {
        while self.next().await?.is_some() {}
        Ok(())
    }
}

/// Refuses numbers for decimal columns that may have lost digits, because messages are read with numbers of 64 bits.
pub(super) fn check_exact_numbers(rows: &[Value], schema: &Schema) -> Result<(), Error> {
    let decimals: Vec<&String> =
        schema.fields().iter().filter(|field| is_decimal(field.data_type())).map(|field| field.name()).collect();
    let mut violations = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        for name in &decimals {
            let Some(Value::Number(number)) = row.get(name.as_str()) else { continue };
            if is_inexact(number) {
                let message = format!("{number} may have lost digits; send rows with such numbers over REST");
                violations.push(Violation { path: format!("rows[{index}].{name}"), message });
            }
        }
        if violations.len() >= VIOLATIONS_MAX {
            break;
        }
    }
    if violations.is_empty() {
        return Ok(());
    }
    Err(Error::invalid_arguments("numbers are not exact; nothing was stored:", violations))
}

/// The rows of the argument.
///
/// # Errors
/// `InvalidArguments` if there are neither rows nor a body, or both.
pub(super) fn require_one_source(rows: Option<Vec<Value>>, has_body: bool) -> Result<Option<Vec<Value>>, Error> {
    let invalid = |message: &str| Error::new(ErrorKind::InvalidArguments, message);
    match (rows, has_body) {
        (Some(_), true) => Err(invalid("rows are given both in the body and as an argument")),
        (None, false) => Err(invalid("rows is missing: an array of objects, one for each row")),
        (rows, _) => Ok(rows),
    }
}

fn is_decimal(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..)
    )
}

/// Whether the number as it was sent may have been another one.
fn is_inexact(number: &Number) -> bool {
    let is_large = number.as_f64().is_some_and(|value| value.abs() >= INTEGERS_EXACT_TO);
    number.is_f64() && (is_large || significant_digits(&number.to_string()) > EXACT_DIGITS_MAX)
}

fn significant_digits(number: &str) -> usize {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_start_matches('0').trim_end_matches('0').len()
}

/// The bodies that the tools take.
pub(super) const BODY_TYPES: RequestBodyTypes =
    RequestBodyTypes { media_types: BODY_MEDIA_TYPES, codings: BODY_CODING_NAMES };

/// The arguments about the body.
#[derive(Debug, Default, Deserialize)]
pub(super) struct BodyArguments {
    #[serde(default)]
    on_reject: OnReject,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<bool>,
    binary: Option<BinaryArgument>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OnReject {
    #[default]
    All,
    Row,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BinaryArgument {
    Base64,
    Hex,
}

impl BodyArguments {
    /// The options for a body with this media type and coding.
    ///
    /// # Errors
    /// `InvalidArguments` if there is no such format or coding, or if an argument does not apply to the format.
    pub(super) fn options(
        &self,
        media_type: &str,
        coding: Option<&str>,
        table: &IngestTable,
    ) -> Result<BodyOptions, Error> {
        let mut options = BodyOptions::from_media_type(media_type).ok_or_else(|| {
            invalid(format!("{media_type:?} is no format of rows"))
                .with_choices(BODY_TYPES.media_types.iter().map(|name| (*name).to_owned()))
        })?;
        options.coding = BodyCoding::from_name(coding.unwrap_or_default()).ok_or_else(|| {
            invalid(format!("the coding {:?} is not supported", coding.unwrap_or_default()))
                .with_choices(BODY_CODING_NAMES.iter().map(|name| (*name).to_owned()))
        })?;
        options.reject_mode = match self.on_reject {
            OnReject::All => RejectMode::All,
            OnReject::Row => RejectMode::Row,
        };
        if table.adds_columns {
            options.unknown_columns = UnknownColumns::Add;
        }
        self.apply_syntax(&mut options)?;
        Ok(options)
    }

    fn apply_syntax(&self, options: &mut BodyOptions) -> Result<(), Error> {
        let format = options.format;
        let given =
            [("delimiter", self.delimiter.is_some()), ("null", self.null.is_some()), ("header", self.header.is_some())];
        if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given && format != BodyFormat::Csv) {
            return Err(invalid(format!("{name} applies to CSV only, and the body is {}", format.name())));
        }
        if self.binary.is_some() && matches!(format, BodyFormat::Arrow | BodyFormat::Parquet) {
            return Err(invalid(format!("binary applies to JSON and CSV only, and the body is {}", format.name())));
        }
        if let Some(delimiter) = &self.delimiter {
            options.csv.delimiter = parse_delimiter(delimiter)?;
        }
        if let Some(null) = &self.null {
            options.csv.null_text.clone_from(null);
        }
        if let Some(has_header) = self.header {
            options.csv.has_header = has_header;
        }
        if let Some(binary) = self.binary {
            options.binary_text = match binary {
                BinaryArgument::Base64 => BinaryText::Base64,
                BinaryArgument::Hex => BinaryText::Hex,
            };
        }
        Ok(())
    }
}

fn parse_delimiter(text: &str) -> Result<u8, Error> {
    match text.as_bytes() {
        b"tab" => Ok(b'\t'),
        [delimiter] if delimiter.is_ascii() && !matches!(delimiter, b'"' | b'\r' | b'\n') => Ok(*delimiter),
        _ => Err(invalid(format!("the delimiter must be one ASCII character or tab, not {text:?}"))),
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidArguments, message)
}

#[cfg(test)]
mod tests {
    use super::significant_digits;

    #[test]
    fn digits_count_without_zeros_at_both_ends() {
        assert_eq!(significant_digits("-0.00120"), 2);
        assert_eq!(significant_digits("1e300"), 1);
        assert_eq!(significant_digits("0.12345678901234568"), 17);
    }
}
