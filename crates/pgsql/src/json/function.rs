//! What functions over JSON and arrays have in common.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringArray, StringBuilder};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::kind::{JsonKind, is_json_extension, json_kind, texts};

/// Bytes that one evaluation may make.
const RESULT_BYTES_MAX: usize = 64 << 20;

/// A function that is made of plain functions.
#[derive(Debug, Clone)]
pub(crate) struct ColumnarFunction {
    pub(crate) name: &'static str,
    /// The types that arguments of these types are converted to; an error if there is no such function.
    pub(crate) coerce: fn(&[DataType]) -> Result<Vec<DataType>>,
    /// The type of the result.
    pub(crate) returns: fn(&[FieldRef]) -> Result<DataType>,
    /// The result.
    pub(crate) invoke: fn(&FunctionCall<'_>) -> Result<ArrayRef>,
    signature: Signature,
}

impl ColumnarFunction {
    #[allow(clippy::new_ret_no_self, reason = "what is registered is the function around it")]
    pub(crate) fn new(
        name: &'static str,
        accept: fn(&[DataType]) -> Result<Vec<DataType>>,
        returns: fn(&[FieldRef]) -> Result<DataType>,
        invoke: fn(&FunctionCall<'_>) -> Result<ArrayRef>,
    ) -> ScalarUDF {
        let signature = Signature::user_defined(Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { name, coerce: accept, returns, invoke, signature })
    }
}

/// The call `function(arguments)`.
pub(crate) fn call(function: ScalarUDF, arguments: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(datafusion::logical_expr::expr::ScalarFunction::new_udf(Arc::new(function), arguments))
}

impl PartialEq for ColumnarFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ColumnarFunction {}

impl Hash for ColumnarFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for ColumnarFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        internal_err!("{} returns a field", self.name)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name, (self.returns)(args.arg_fields)?, true)))
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        (self.coerce)(arg_types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let call =
            FunctionCall { args: &args.args, fields: &args.arg_fields, rows, returns: args.return_field.data_type() };
        let result = (self.invoke)(&call)?;
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// One evaluation.
pub(crate) struct FunctionCall<'a> {
    pub(crate) args: &'a [ColumnarValue],
    pub(crate) fields: &'a [FieldRef],
    pub(crate) rows: usize,
    pub(crate) returns: &'a DataType,
}

impl FunctionCall<'_> {
    /// An argument as an array of all rows.
    pub(crate) fn array(&self, index: usize) -> Result<ArrayRef> {
        self.args[index].clone().into_array(self.rows)
    }

    /// An argument of text or JSON.
    pub(crate) fn texts(&self, index: usize) -> Result<ArgumentColumn<StringArray>> {
        self.column(index, |array| texts(&array))
    }

    /// An argument, each value of which `read` makes; a constant is made once.
    pub(crate) fn column<T>(
        &self,
        index: usize,
        read: impl FnOnce(ArrayRef) -> Result<T>,
    ) -> Result<ArgumentColumn<T>> {
        Ok(match &self.args[index] {
            ColumnarValue::Scalar(scalar) => ArgumentColumn { values: read(scalar.to_array()?)?, is_constant: true },
            ColumnarValue::Array(array) => ArgumentColumn { values: read(array.clone())?, is_constant: false },
        })
    }

    /// Whether an argument is of a JSON type, and of which.
    pub(crate) fn kind(&self, index: usize) -> Option<JsonKind> {
        field_kind(&self.fields[index])
    }
}

/// Whether `field` is of a JSON type, and of which.
pub(crate) fn field_kind(field: &Field) -> Option<JsonKind> {
    json_kind(field.data_type()).or_else(|| is_json_extension(field).then_some(JsonKind::Json))
}

/// An argument: a value for each row, or one for all.
pub(crate) struct ArgumentColumn<T> {
    pub(crate) values: T,
    pub(crate) is_constant: bool,
}

impl<T> ArgumentColumn<T> {
    /// The place of the value of `row`.
    pub(crate) fn place(&self, row: usize) -> usize {
        if self.is_constant { 0 } else { row }
    }
}

impl ArgumentColumn<StringArray> {
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        let place = self.place(row);
        self.values.is_valid(place).then(|| self.values.value(place))
    }
}

/// Texts that are made, with a bound on their bytes.
pub(crate) struct BoundedTexts {
    builder: StringBuilder,
}

impl BoundedTexts {
    pub(crate) fn new(rows: usize) -> Self {
        Self { builder: StringBuilder::with_capacity(rows, 0) }
    }

    pub(crate) fn push(&mut self, text: Option<impl AsRef<str>>) -> Result<()> {
        if let Some(text) = &text {
            check_bytes(self.builder.values_slice().len() + text.as_ref().len())?;
        }
        self.builder.append_option(text);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> StringArray {
        self.builder.finish()
    }
}

/// Fails if `bytes` are more than one evaluation may make.
pub(crate) fn check_bytes(bytes: usize) -> Result<()> {
    if bytes > RESULT_BYTES_MAX {
        let mebibytes = RESULT_BYTES_MAX >> 20;
        let message = format!("a function would make more than {mebibytes} MiB at once");
        return Err(DataFusionError::ResourcesExhausted(message));
    }
    Ok(())
}
