//! The type of the functions of text, which are computed row by row: types of arguments and results, and their values.

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
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err, internal_datafusion_err, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::array::element_text;
use crate::byte_format;
use crate::data_type::{is_text_or_dictionary as is_text, postgres_type_name};
use crate::function::columnar;
use crate::list::list_type;
use crate::pg_regex::{PgRegex, RegexOptions};

type RunRow = fn(&RowArguments<'_>, &mut TextOutput) -> Result<()>;

/// One form of a function.
#[derive(Debug, Clone)]
pub(super) struct Overload {
    params: Vec<TextType>,
    /// Arguments that may follow, in any number.
    rest: Option<TextType>,
    returns: TextType,
    /// Whether the result is NULL if an argument is NULL.
    is_strict: bool,
    run: RunRow,
}

impl Overload {
    pub(super) fn new(params: &[TextType], returns: TextType, run: RunRow) -> Self {
        Self { params: params.to_vec(), rest: None, returns, is_strict: true, run }
    }

    /// Also computes a value for arguments that are NULL.
    pub(super) fn called_on_null_input(mut self) -> Self {
        self.is_strict = false;
        self
    }

    pub(super) fn with_variadic(mut self, rest: TextType) -> Self {
        self.rest = Some(rest);
        self
    }

    fn kinds(&self) -> impl Iterator<Item = TextType> {
        self.params.iter().copied().chain(self.rest.into_iter().cycle())
    }

    fn takes(&self, types: &[DataType]) -> bool {
        let fits = types.len() == self.params.len() || (types.len() > self.params.len() && self.rest.is_some());
        fits && types.iter().zip(self.kinds()).all(|(data_type, kind)| kind.takes(data_type))
    }

    fn signature_text(&self, name: &str) -> String {
        let mut params: Vec<&str> = self.params.iter().map(|kind| kind.name()).collect();
        params.extend(self.rest.map(|_| "…"));
        format!("{name}({})", params.join(", "))
    }
}

/// Returns a simpler equivalent of a call.
type Simplify = fn(&[Expr], &SimplifyContext) -> Result<Option<Expr>>;

/// A function of text. Two functions of one name are equal.
#[derive(Debug, Clone)]
pub(super) struct TextFunction {
    name: &'static str,
    aliases: Vec<String>,
    overloads: Vec<Overload>,
    signature: Signature,
    simplify: Option<Simplify>,
}

impl TextFunction {
    pub(super) fn new(name: &'static str, overloads: Vec<Overload>) -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        Self { name, aliases: Vec::new(), overloads, signature, simplify: None }
    }

    /// Returns a function with one overload.
    pub(super) fn single(name: &'static str, params: &[TextType], returns: TextType, run: RunRow) -> Self {
        Self::new(name, vec![Overload::new(params, returns, run)])
    }

    pub(super) fn with_alias(mut self, alias: &str) -> Self {
        self.aliases.push(alias.to_owned());
        self
    }

    pub(super) fn with_simplify(mut self, simplify: Simplify) -> Self {
        self.simplify = Some(simplify);
        self
    }

    /// Whether `name` is the name of the function.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.name == name
    }

    /// Plans a call of the function.
    pub(super) fn call(self, args: Vec<Expr>) -> Expr {
        ScalarUDF::new_from_impl(self).call(args)
    }

    fn overload(&self, types: &[DataType]) -> Result<&Overload> {
        if let Some(overload) = self.overloads.iter().find(|overload| overload.takes(types)) {
            return Ok(overload);
        }
        let names: Vec<String> = types.iter().map(postgres_type_name).collect();
        let forms: Vec<String> = self.overloads.iter().map(|overload| overload.signature_text(self.name)).collect();
        plan_err!(
            "function {}({}) does not exist; the available forms are {}; cast the arguments to these types",
            self.name,
            names.join(", "),
            forms.join(", ")
        )
    }
}

crate::compare_by!(TextFunction { name });

impl ScalarUDFImpl for TextFunction {
    crate::name_and_signature!(.name);

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let overload = self.overload(types)?;
        Ok(types.iter().zip(overload.kinds()).map(|(data_type, kind)| kind.coerced(data_type)).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(self.overload(types)?.returns.data_type())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let simple = self.simplify.map_or(Ok(None), |simplify| simplify(&args, info))?;
        Ok(simple.map_or(ExprSimplifyResult::Original(args), ExprSimplifyResult::Simplified))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let overload = self.overload(&types)?;
        let columns = args.args.iter().map(TextArgument::new).collect::<Result<Vec<_>>>()?;
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let patterns = PatternCache::default();
        let mut output = TextOutput::new(overload.returns);
        for number in 0..if is_constant { 1 } else { args.number_rows } {
            let row = RowArguments { columns: &columns, patterns: &patterns, number };
            if overload.is_strict && (0..columns.len()).any(|argument| row.is_null(argument)) {
                output.null()?;
            } else {
                (overload.run)(&row, &mut output)?;
            }
        }
        columnar(output.finish(), is_constant)
    }
}

/// The type of an argument or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextType {
    Text,
    Int,
    /// An integer of at most 32 bits, for functions that treat wider integers differently.
    Int32,
    BigInt,
    Boolean,
    Bytes,
    /// Bytes, or an untyped literal, which is parsed as bytes.
    ByteLiteral,
    TextList,
    TextLists,
    /// A value of any type, as its output function writes it.
    Any,
    /// A value of any type, as a cast to text writes it.
    AsText,
}

impl TextType {
    fn takes(self, data_type: &DataType) -> bool {
        match self {
            _ if *data_type == DataType::Null => true,
            Self::Any | Self::AsText => true,
            Self::Int32 => matches!(data_type, DataType::Int8 | DataType::Int16 | DataType::Int32),
            Self::Text => is_text(data_type),
            Self::Int | Self::BigInt => data_type.is_integer(),
            Self::Boolean => *data_type == DataType::Boolean,
            Self::Bytes => data_type.is_binary(),
            Self::ByteLiteral => data_type.is_binary() || is_text(data_type),
            Self::TextList => match data_type {
                DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                    !field.data_type().is_nested()
                }
                _ => false,
            },
            Self::TextLists => false,
        }
    }

    /// Returns the type that an argument of type `given` is coerced to.
    fn coerced(self, data_type: &DataType) -> DataType {
        let text = || match data_type {
            DataType::LargeUtf8 | DataType::Utf8View => data_type.clone(),
            _ => DataType::Utf8,
        };
        match self {
            Self::Text => text(),
            Self::Int32 => DataType::Int32,
            Self::Int | Self::BigInt => DataType::Int64,
            Self::Boolean => DataType::Boolean,
            Self::ByteLiteral if is_text(data_type) => text(),
            Self::Bytes | Self::ByteLiteral => DataType::Binary,
            Self::TextList | Self::TextLists => match data_type {
                DataType::List(_) => data_type.clone(),
                DataType::LargeList(field) | DataType::FixedSizeList(field, _) => DataType::List(field.clone()),
                _ => list_type(DataType::Utf8),
            },
            Self::Any if *data_type == DataType::Boolean => DataType::Boolean,
            Self::Any if data_type.is_binary() => DataType::Binary,
            Self::Any | Self::AsText => text(),
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Text | Self::Any | Self::AsText => DataType::Utf8,
            Self::Int | Self::Int32 => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Boolean => DataType::Boolean,
            Self::Bytes | Self::ByteLiteral => DataType::Binary,
            Self::TextList => list_type(DataType::Utf8),
            Self::TextLists => list_type(list_type(DataType::Utf8)),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Int | Self::Int32 => "integer",
            Self::BigInt => "bigint",
            Self::Boolean => "boolean",
            Self::Bytes | Self::ByteLiteral => "bytea",
            Self::TextList | Self::TextLists => "array",
            Self::Any | Self::AsText => "any",
        }
    }
}

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
struct TextArgument {
    values: ArgumentValues,
    is_constant: bool,
}

impl TextArgument {
    fn new(value: &ColumnarValue) -> Result<Self> {
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
struct PatternCache(RefCell<Vec<(String, RegexOptions, Rc<PgRegex>)>>);

/// The arguments of one row.
pub(super) struct RowArguments<'a> {
    columns: &'a [TextArgument],
    patterns: &'a PatternCache,
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

    fn finish(mut self) -> ArrayRef {
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
