//! What all functions of text have in common: which arguments they take, and that they are computed row by row.

use std::hash::{Hash, Hasher};

use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::row_values::{PatternCache, RowArguments, TextArgument, TextOutput, list_of};

/// The type of an argument or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextType {
    Text,
    Int,
    /// An integer of 32 bits or less, where a wider one means something else.
    Int32,
    BigInt,
    Boolean,
    Bytes,
    /// Bytes, or a literal without a type that is read as such.
    ByteLiteral,
    TextList,
    TextLists,
    /// A value of any type, as its output function writes it.
    Any,
    /// A value of any type, as a cast to text writes it.
    AsText,
}

impl TextType {
    fn takes(self, given: &DataType) -> bool {
        match self {
            _ if *given == DataType::Null => true,
            Self::Any | Self::AsText => true,
            Self::Int32 => matches!(given, DataType::Int8 | DataType::Int16 | DataType::Int32),
            Self::Text => is_text(given),
            Self::Int | Self::BigInt => given.is_integer(),
            Self::Boolean => *given == DataType::Boolean,
            Self::Bytes => is_bytes(given),
            Self::ByteLiteral => is_bytes(given) || is_text(given),
            Self::TextList => match given {
                DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                    !field.data_type().is_nested()
                }
                _ => false,
            },
            Self::TextLists => false,
        }
    }

    /// The type that a value of the type `given` is handed over with.
    fn coerced(self, given: &DataType) -> DataType {
        let text = || match given {
            DataType::LargeUtf8 | DataType::Utf8View => given.clone(),
            _ => DataType::Utf8,
        };
        match self {
            Self::Text => text(),
            Self::Int32 => DataType::Int32,
            Self::Int | Self::BigInt => DataType::Int64,
            Self::Boolean => DataType::Boolean,
            Self::ByteLiteral if is_text(given) => text(),
            Self::Bytes | Self::ByteLiteral => DataType::Binary,
            Self::TextList | Self::TextLists => match given {
                DataType::List(_) => given.clone(),
                DataType::LargeList(field) | DataType::FixedSizeList(field, _) => DataType::List(field.clone()),
                _ => list_of(DataType::Utf8),
            },
            Self::Any if *given == DataType::Boolean => DataType::Boolean,
            Self::Any if is_bytes(given) => DataType::Binary,
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
            Self::TextList => list_of(DataType::Utf8),
            Self::TextLists => list_of(list_of(DataType::Utf8)),
        }
    }

    fn name(self) -> &'static str {
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

/// Whether the type is one of text.
pub(super) fn is_text(given: &DataType) -> bool {
    match given {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Whether the type is one of bytes.
pub(super) fn is_bytes(given: &DataType) -> bool {
    matches!(given, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

type RunRow = fn(&RowArguments<'_>, &mut TextOutput) -> Result<()>;

/// One form of a function.
#[derive(Debug, Clone)]
pub(super) struct Overload {
    params: Vec<TextType>,
    /// Arguments that may follow, in any number.
    rest: Option<TextType>,
    returns: TextType,
    /// Whether NULL in is NULL out.
    is_strict: bool,
    run: RunRow,
}

impl Overload {
    pub(super) fn new(params: &[TextType], returns: TextType, run: RunRow) -> Self {
        Self { params: params.to_vec(), rest: None, returns, is_strict: true, run }
    }

    /// It computes something of NULL too.
    pub(super) fn lenient(mut self) -> Self {
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

    fn takes(&self, given: &[DataType]) -> bool {
        let fits = given.len() == self.params.len() || (given.len() > self.params.len() && self.rest.is_some());
        fits && given.iter().zip(self.kinds()).all(|(given, kind)| kind.takes(given))
    }

    fn signature_text(&self, name: &str) -> String {
        let mut params: Vec<&str> = self.params.iter().map(|kind| kind.name()).collect();
        params.extend(self.rest.map(|_| "…"));
        format!("{name}({})", params.join(", "))
    }
}

/// What a call is in other words, if there are better ones.
pub(super) type Simplify = fn(&[Expr], &SimplifyContext) -> Result<Option<Expr>>;

/// A function of text.
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

    pub(super) fn with_alias(mut self, alias: &str) -> Self {
        self.aliases.push(alias.to_owned());
        self
    }

    pub(super) fn with_simplify(mut self, simplify: Simplify) -> Self {
        self.simplify = Some(simplify);
        self
    }

    /// Whether it has the name.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.name == name
    }

    /// The call of the function.
    pub(super) fn call(self, args: Vec<Expr>) -> Expr {
        ScalarUDF::new_from_impl(self).call(args)
    }

    fn overload(&self, given: &[DataType]) -> Result<&Overload> {
        if let Some(overload) = self.overloads.iter().find(|overload| overload.takes(given)) {
            return Ok(overload);
        }
        let given: Vec<String> = given.iter().map(type_name).collect();
        let forms: Vec<String> = self.overloads.iter().map(|overload| overload.signature_text(self.name)).collect();
        plan_err!(
            "function {}({}) does not exist; the available forms are {}; cast the arguments to these types",
            self.name,
            given.join(", "),
            forms.join(", ")
        )
    }
}

/// The name of a type in PostgreSQL, where it has one.
pub(super) fn type_name(given: &DataType) -> String {
    match given {
        DataType::Null => "unknown".to_owned(),
        DataType::Int16 => "smallint".to_owned(),
        DataType::Int32 => "integer".to_owned(),
        DataType::Int64 => "bigint".to_owned(),
        DataType::Float32 => "real".to_owned(),
        DataType::Float64 => "double precision".to_owned(),
        DataType::Decimal128(..) | DataType::Decimal256(..) => "numeric".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(_, None) => "timestamp".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamptz".to_owned(),
        given if is_text(given) => "text".to_owned(),
        given if is_bytes(given) => "bytea".to_owned(),
        other => other.to_string(),
    }
}

impl PartialEq for TextFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for TextFunction {}

impl Hash for TextFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let overload = self.overload(given)?;
        Ok(given.iter().zip(overload.kinds()).map(|(given, kind)| kind.coerced(given)).collect())
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        Ok(self.overload(given)?.returns.data_type())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let simple = self.simplify.map_or(Ok(None), |simplify| simplify(&args, info))?;
        Ok(simple.map_or(ExprSimplifyResult::Original(args), ExprSimplifyResult::Simplified))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let overload = self.overload(&given)?;
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
        let array = output.finish();
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}
