//! The values of a call, row by row, and its results.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, BooleanArray, BooleanBuilder, Int32Builder, Int64Array,
    Int64Builder, LargeStringArray, ListArray, ListBuilder, StringArray, StringBuilder, StringViewArray,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err, internal_datafusion_err};
use datafusion::logical_expr::ColumnarValue;

use super::byte_format;
use super::regex::{PgRegex, RegexOptions};
use super::text_type::TextType;
use crate::array::element_text;

/// The maximum size of the output of one evaluation, in bytes.
const OUTPUT_BYTES_MAX: usize = 256 << 20;
/// The number of compiled patterns that one evaluation caches.
const PATTERNS_MAX: usize = 16;

enum ArgumentValues {
    Utf8(StringArray),
    LargeUtf8(LargeStringArray),
    Utf8View(StringViewArray),
    Integer(Int64Array),
    Boolean(BooleanArray),
    Binary(BinaryArray),
    List(ListArray, StringArray),
}

/// An argument.
pub(super) struct TextArgument {
    values: ArgumentValues,
    is_constant: bool,
}

impl TextArgument {
    pub(super) fn new(value: &ColumnarValue) -> Result<Self> {
        let is_constant = matches!(value, ColumnarValue::Scalar(_));
        let array: ArrayRef = match value {
            ColumnarValue::Scalar(scalar) => scalar.to_array()?,
            ColumnarValue::Array(array) => array.clone(),
        };
        let values = match array.data_type() {
            DataType::Utf8 => ArgumentValues::Utf8(array.as_string().clone()),
            DataType::LargeUtf8 => ArgumentValues::LargeUtf8(array.as_string().clone()),
            DataType::Utf8View => ArgumentValues::Utf8View(array.as_string_view().clone()),
            other if other.is_integer() => {
                ArgumentValues::Integer(cast(&array, &DataType::Int64)?.as_primitive().clone())
            }
            DataType::Boolean => ArgumentValues::Boolean(array.as_boolean().clone()),
            DataType::Binary => ArgumentValues::Binary(array.as_binary().clone()),
            DataType::List(_) => {
                let list: &ListArray = array.as_list();
                let values = list.values();
                let text = |position| values.is_valid(position).then(|| element_text(values, position)).transpose();
                let texts = match values.data_type().is_string() {
                    true => cast(values, &DataType::Utf8)?.as_string().clone(),
                    false => (0..values.len()).map(text).collect::<Result<StringArray>>()?,
                };
                ArgumentValues::List(list.clone(), texts)
            }
            _ => ArgumentValues::Utf8(cast(&array, &DataType::Utf8)?.as_string().clone()),
        };
        Ok(Self { values, is_constant })
    }

    fn array(&self) -> &dyn Array {
        match &self.values {
            ArgumentValues::Utf8(array) => array,
            ArgumentValues::LargeUtf8(array) => array,
            ArgumentValues::Utf8View(array) => array,
            ArgumentValues::Integer(array) => array,
            ArgumentValues::Boolean(array) => array,
            ArgumentValues::Binary(array) => array,
            ArgumentValues::List(array, _) => array,
        }
    }
}

/// Compiled patterns, those used last at the end.
#[derive(Default)]
pub(super) struct PatternCache(RefCell<Vec<(String, RegexOptions, Rc<PgRegex>)>>);

/// The arguments of one row.
pub(super) struct RowArguments<'a> {
    pub(super) columns: &'a [TextArgument],
    pub(super) patterns: &'a PatternCache,
    pub(super) number: usize,
}

impl RowArguments<'_> {
    /// Returns the number of arguments.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    fn position(&self, argument: usize) -> Result<(&TextArgument, usize)> {
        let column = self.columns.get(argument).ok_or_else(|| internal_datafusion_err!("an argument is missing"))?;
        Ok((column, if column.is_constant { 0 } else { self.number }))
    }

    pub(super) fn is_null(&self, argument: usize) -> bool {
        self.position(argument).is_ok_and(|(column, row)| column.array().is_null(row))
    }

    pub(super) fn text(&self, argument: usize) -> Result<&str> {
        let (column, row) = self.position(argument)?;
        match &column.values {
            ArgumentValues::Utf8(array) => Ok(array.value(row)),
            ArgumentValues::LargeUtf8(array) => Ok(array.value(row)),
            ArgumentValues::Utf8View(array) => Ok(array.value(row)),
            _ => Err(internal_datafusion_err!("argument {argument} is not text")),
        }
    }

    /// Returns the text of an argument; `None` for NULL.
    pub(super) fn optional_text(&self, argument: usize) -> Result<Option<&str>> {
        if self.is_null(argument) { Ok(None) } else { self.text(argument).map(Some) }
    }

    /// Parses an integer with the range of PostgreSQL's `bigint`.
    pub(super) fn bigint(&self, argument: usize) -> Result<i64> {
        let (column, row) = self.position(argument)?;
        match &column.values {
            ArgumentValues::Integer(array) => Ok(array.value(row)),
            _ => Err(internal_datafusion_err!("argument {argument} is not an integer")),
        }
    }

    /// Returns an argument as an integer of 32 bits.
    pub(super) fn integer(&self, argument: usize) -> Result<i32> {
        i32::try_from(self.bigint(argument)?).map_err(|_| exec_datafusion_err!("integer out of range"))
    }

    /// Returns bytes. A text is parsed as a literal of `bytea`.
    pub(super) fn bytes(&self, argument: usize) -> Result<Cow<'_, [u8]>> {
        let (column, row) = self.position(argument)?;
        match &column.values {
            ArgumentValues::Binary(array) => Ok(Cow::Borrowed(array.value(row))),
            _ if column.is_constant => byte_format::parse(self.text(argument)?).map(Cow::Owned),
            _ => exec_err!("the function takes bytea, not text; write convert_to(x, 'UTF8')"),
        }
    }

    /// Formats an argument like PostgreSQL's output function of its type; `None` for NULL.
    pub(super) fn output(&self, argument: usize) -> Result<Option<Cow<'_, str>>> {
        let (column, row) = self.position(argument)?;
        if column.array().is_null(row) {
            return Ok(None);
        }
        match &column.values {
            ArgumentValues::Boolean(array) => Ok(Some(Cow::Borrowed(if array.value(row) { "t" } else { "f" }))),
            ArgumentValues::Integer(array) => Ok(Some(Cow::Owned(array.value(row).to_string()))),
            ArgumentValues::Binary(array) => Ok(Some(Cow::Owned(byte_format::format(array.value(row))))),
            _ => self.text(argument).map(|text| Some(Cow::Borrowed(text))),
        }
    }

    /// Returns the elements of an argument that is a list of texts.
    pub(super) fn elements(&self, argument: usize) -> Result<impl Iterator<Item = Option<&str>>> {
        let (column, row) = self.position(argument)?;
        let ArgumentValues::List(list, texts) = &column.values else {
            return Err(internal_datafusion_err!("argument {argument} is not a list"));
        };
        let offsets = list.value_offsets();
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        Ok((start..end).map(|position| texts.is_valid(position).then(|| texts.value(position))))
    }

    /// Compiles the pattern.
    pub(super) fn regex(&self, pattern: &str, options: RegexOptions) -> Result<Rc<PgRegex>> {
        let mut patterns = self.patterns.0.borrow_mut();
        if let Some((.., regex)) = patterns.iter().rev().find(|(cached, with, _)| cached == pattern && *with == options)
        {
            return Ok(regex.clone());
        }
        let regex = Rc::new(PgRegex::new(pattern, options)?);
        if patterns.len() >= PATTERNS_MAX {
            patterns.remove(0);
        }
        patterns.push((pattern.to_owned(), options, regex.clone()));
        Ok(regex)
    }
}

enum OutputBuilder {
    Text(StringBuilder),
    Int(Int32Builder),
    BigInt(Int64Builder),
    Boolean(BooleanBuilder),
    Bytes(BinaryBuilder),
    List(ListBuilder<StringBuilder>),
    Lists(ListBuilder<ListBuilder<StringBuilder>>),
}

/// The results of a call.
pub(super) struct TextOutput {
    builder: OutputBuilder,
    bytes: usize,
}

fn type_mismatch_error() -> DataFusionError {
    internal_datafusion_err!("the result does not have the declared type")
}

impl TextOutput {
    pub(super) fn new(kind: TextType) -> Self {
        let builder = match kind {
            TextType::Int | TextType::Int32 => OutputBuilder::Int(Int32Builder::new()),
            TextType::BigInt => OutputBuilder::BigInt(Int64Builder::new()),
            TextType::Boolean => OutputBuilder::Boolean(BooleanBuilder::new()),
            TextType::Bytes | TextType::ByteLiteral => OutputBuilder::Bytes(BinaryBuilder::new()),
            TextType::TextList => OutputBuilder::List(ListBuilder::new(StringBuilder::new())),
            TextType::TextLists => OutputBuilder::Lists(ListBuilder::new(ListBuilder::new(StringBuilder::new()))),
            TextType::Text | TextType::Any | TextType::AsText => OutputBuilder::Text(StringBuilder::new()),
        };
        Self { builder, bytes: 0 }
    }

    fn count(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= OUTPUT_BYTES_MAX {
            return Ok(());
        }
        let mebibytes = OUTPUT_BYTES_MAX >> 20;
        Err(DataFusionError::ResourcesExhausted(format!("a function would make more than {mebibytes} MiB at once")))
    }

    pub(super) fn null(&mut self) -> Result<()> {
        match &mut self.builder {
            OutputBuilder::Text(builder) => builder.append_null(),
            OutputBuilder::Int(builder) => builder.append_null(),
            OutputBuilder::BigInt(builder) => builder.append_null(),
            OutputBuilder::Boolean(builder) => builder.append_null(),
            OutputBuilder::Bytes(builder) => builder.append_null(),
            OutputBuilder::List(builder) => builder.append_null(),
            OutputBuilder::Lists(builder) => builder.append_null(),
        }
        Ok(())
    }

    pub(super) fn text(&mut self, text: &str) -> Result<()> {
        self.count(text.len())?;
        let OutputBuilder::Text(builder) = &mut self.builder else { return Err(type_mismatch_error()) };
        builder.append_value(text);
        Ok(())
    }

    pub(super) fn optional_text(&mut self, text: Option<&str>) -> Result<()> {
        text.map_or(Ok(()), |text| self.text(text))?;
        if text.is_none() { self.null() } else { Ok(()) }
    }

    pub(super) fn integer(&mut self, integer: i64) -> Result<()> {
        match &mut self.builder {
            OutputBuilder::Int(builder) => {
                builder.append_value(i32::try_from(integer).map_err(|_| exec_datafusion_err!("integer out of range"))?);
            }
            OutputBuilder::BigInt(builder) => builder.append_value(integer),
            _ => return Err(type_mismatch_error()),
        }
        Ok(())
    }

    pub(super) fn boolean(&mut self, boolean: bool) -> Result<()> {
        let OutputBuilder::Boolean(builder) = &mut self.builder else { return Err(type_mismatch_error()) };
        builder.append_value(boolean);
        Ok(())
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.count(bytes.len())?;
        let OutputBuilder::Bytes(builder) = &mut self.builder else { return Err(type_mismatch_error()) };
        builder.append_value(bytes);
        Ok(())
    }

    pub(super) fn list<'a>(&mut self, elements: impl IntoIterator<Item = Option<&'a str>>) -> Result<()> {
        let OutputBuilder::List(builder) = &mut self.builder else { return Err(type_mismatch_error()) };
        let mut bytes = 0;
        for element in elements {
            bytes += element.map_or(4, |element| element.len() + 4);
            builder.values().append_option(element);
        }
        builder.append(true);
        self.count(bytes)
    }

    /// Appends one of the lists of a list of lists.
    pub(super) fn inner_list<'a>(&mut self, elements: impl IntoIterator<Item = Option<&'a str>>) -> Result<()> {
        let OutputBuilder::Lists(builder) = &mut self.builder else { return Err(type_mismatch_error()) };
        let mut bytes = 8;
        for element in elements {
            bytes += element.map_or(4, |element| element.len() + 4);
            builder.values().values().append_option(element);
        }
        builder.values().append(true);
        self.count(bytes)
    }

    /// Ends a list of lists.
    pub(super) fn end_lists(&mut self) -> Result<()> {
        let OutputBuilder::Lists(builder) = &mut self.builder else { return Err(type_mismatch_error()) };
        builder.append(true);
        Ok(())
    }

    pub(super) fn finish(mut self) -> ArrayRef {
        match &mut self.builder {
            OutputBuilder::Text(builder) => Arc::new(builder.finish()),
            OutputBuilder::Int(builder) => Arc::new(builder.finish()),
            OutputBuilder::BigInt(builder) => Arc::new(builder.finish()),
            OutputBuilder::Boolean(builder) => Arc::new(builder.finish()),
            OutputBuilder::Bytes(builder) => Arc::new(builder.finish()),
            OutputBuilder::List(builder) => Arc::new(builder.finish()),
            OutputBuilder::Lists(builder) => Arc::new(builder.finish()),
        }
    }
}
