//! How a body is read: from its media type, its coding and the arguments of the call.

use serde::Deserialize;
use tidegate_core::{Error, ErrorKind};
use tidegate_ingest_formats::{
    BODY_CODING_NAMES, BODY_MEDIA_TYPES, BinaryText, BodyCoding, BodyFormat, BodyOptions, RejectMode, UnknownColumns,
};
use tidegate_query::IngestTable;
use tidegate_runtime::RequestBodyTypes;

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
