//! Scalar functions that compute a column from the columns of their arguments.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, StringArray, StringBuilder,
};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::data_type::{JsonKind, is_json_extension, json_kind, texts};

/// The maximum size of the result of one evaluation, in bytes.
const RESULT_BYTES_MAX: usize = 64 << 20;

/// Returns the types that arguments are coerced to; an error if there is no function of such arguments.
type Coerce = fn(&[DataType]) -> Result<Vec<DataType>>;

/// Returns the type of the result.
type Returns = fn(&[FieldRef]) -> Result<DataType>;

pub(crate) type Invoke = fn(&FunctionCall<'_>) -> Result<ArrayRef>;

/// A function that consists of plain functions. Two functions of one name are equal.
#[derive(Debug, Clone)]
pub(crate) struct ColumnarFunction {
    name: &'static str,
    coerce: Coerce,
    returns: Returns,
    invoke: Invoke,
    signature: Signature,
}

impl ColumnarFunction {
    #[allow(clippy::new_ret_no_self, reason = "callers register the ScalarUDF")]
    pub(crate) fn new(name: &'static str, coerce: Coerce, returns: Returns, invoke: Invoke) -> ScalarUDF {
        let signature = Signature::user_defined(Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { name, coerce, returns, invoke, signature })
    }
}

/// Coerces arguments to the types that they have.
pub(crate) fn keep_types(types: &[DataType]) -> Result<Vec<DataType>> {
    Ok(types.to_vec())
}

/// Returns the type of the first argument.
pub(crate) fn first_type(fields: &[FieldRef]) -> Result<DataType> {
    Ok(fields[0].data_type().clone())
}

pub(crate) fn boolean_type(_: &[FieldRef]) -> Result<DataType> {
    Ok(DataType::Boolean)
}

pub(crate) fn int4_type(_: &[FieldRef]) -> Result<DataType> {
    Ok(DataType::Int32)
}

pub(crate) fn text_type(_: &[FieldRef]) -> Result<DataType> {
    Ok(DataType::Utf8)
}

/// Computes a value from each value. NULL stays NULL.
pub(crate) fn try_map<A: ArrowPrimitiveType, R: ArrowPrimitiveType>(
    values: &ArrayRef,
    compute: impl Fn(A::Native) -> Result<R::Native>,
) -> Result<PrimitiveArray<R>> {
    values.as_primitive::<A>().try_unary(compute)
}

/// Computes a value from the two values of each row. It is NULL if one of them is NULL.
pub(crate) fn try_zip<A: ArrowPrimitiveType, B: ArrowPrimitiveType, R: ArrowPrimitiveType>(
    left: &ArrayRef,
    right: &ArrayRef,
    compute: impl Fn(A::Native, B::Native) -> Result<R::Native>,
) -> Result<PrimitiveArray<R>> {
    let pairs = left.as_primitive::<A>().iter().zip(right.as_primitive::<B>());
    pairs.map(|(left, right)| left.zip(right).map(|(left, right)| compute(left, right)).transpose()).collect()
}

/// Plans the call `function(arguments)`.
pub(crate) fn call(function: ScalarUDF, arguments: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), arguments))
}

crate::compare_by!(ColumnarFunction { name });

impl ScalarUDFImpl for ColumnarFunction {
    crate::name_and_signature!(.name);

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
        invoke_columnar(&args, self.invoke)
    }
}

/// A function whose result has a field of its own, with marks or with a type that depends on constants. Two functions of
/// one name are equal.
#[derive(Debug)]
pub(crate) struct FieldFunction {
    name: &'static str,
    signature: Signature,
    returns: fn(ReturnFieldArgs<'_>) -> Result<FieldRef>,
    invoke: fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
}

impl FieldFunction {
    #[allow(clippy::new_ret_no_self, reason = "callers register the ScalarUDF")]
    pub(crate) fn new(
        name: &'static str,
        signature: Signature,
        returns: fn(ReturnFieldArgs<'_>) -> Result<FieldRef>,
        invoke: fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
    ) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self { name, signature, returns, invoke })
    }
}

crate::compare_by!(FieldFunction { name });

impl ScalarUDFImpl for FieldFunction {
    crate::name_and_signature!(.name);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("{} returns a field", self.name)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        (self.returns)(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        (self.invoke)(args)
    }
}

/// Computes the result of a call; that of constants only once.
pub(crate) fn invoke_columnar(args: &ScalarFunctionArgs, invoke: Invoke) -> Result<ColumnarValue> {
    let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    let rows = if is_constant { 1 } else { args.number_rows };
    let call =
        FunctionCall { args: &args.args, fields: &args.arg_fields, rows, returns: args.return_field.data_type() };
    columnar(invoke(&call)?, is_constant)
}

/// Returns `values`, or the one value of a constant.
pub(crate) fn columnar(values: ArrayRef, is_constant: bool) -> Result<ColumnarValue> {
    Ok(match is_constant {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
        false => ColumnarValue::Array(values),
    })
}

/// Converts values; a constant only once.
pub(crate) fn convert_columnar(
    value: &ColumnarValue,
    convert: impl FnOnce(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    match value {
        ColumnarValue::Array(values) => columnar(convert(values)?, false),
        ColumnarValue::Scalar(value) => columnar(convert(&value.to_array()?)?, true),
    }
}

/// One evaluation of a function.
pub(crate) struct FunctionCall<'a> {
    pub(crate) args: &'a [ColumnarValue],
    pub(crate) fields: &'a [FieldRef],
    pub(crate) rows: usize,
    /// The type of the result.
    pub(crate) returns: &'a DataType,
}

impl FunctionCall<'_> {
    /// Returns an argument as an array of all rows.
    pub(crate) fn array(&self, index: usize) -> Result<ArrayRef> {
        self.args[index].clone().into_array(self.rows)
    }

    /// Returns all arguments as arrays of all rows.
    pub(crate) fn arrays(&self) -> Result<Vec<ArrayRef>> {
        (0..self.args.len()).map(|index| self.array(index)).collect()
    }

    /// Returns an argument that is text or JSON.
    pub(crate) fn texts(&self, index: usize) -> Result<ArgumentColumn<StringArray>> {
        self.column(index, |array| texts(&array))
    }

    /// Converts an argument. A constant is converted once.
    pub(crate) fn column<T>(
        &self,
        index: usize,
        convert: impl FnOnce(ArrayRef) -> Result<T>,
    ) -> Result<ArgumentColumn<T>> {
        Ok(match &self.args[index] {
            ColumnarValue::Scalar(scalar) => ArgumentColumn { values: convert(scalar.to_array()?)?, is_constant: true },
            ColumnarValue::Array(array) => ArgumentColumn { values: convert(array.clone())?, is_constant: false },
        })
    }

    /// Returns which JSON type an argument has, if any.
    pub(crate) fn kind(&self, index: usize) -> Option<JsonKind> {
        field_kind(&self.fields[index])
    }
}

/// Returns which JSON type `field` has, if any.
pub(crate) fn field_kind(field: &Field) -> Option<JsonKind> {
    json_kind(field.data_type()).or_else(|| is_json_extension(field).then_some(JsonKind::Json))
}

/// The values of an argument: one for each row, or one for all rows.
pub(crate) struct ArgumentColumn<T> {
    pub(crate) values: T,
    pub(crate) is_constant: bool,
}

impl<T> ArgumentColumn<T> {
    fn value_index(&self, row: usize) -> usize {
        if self.is_constant { 0 } else { row }
    }
}

impl ArgumentColumn<StringArray> {
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        let index = self.value_index(row);
        self.values.is_valid(index).then(|| self.values.value(index))
    }
}

impl ArgumentColumn<BooleanArray> {
    pub(crate) fn get(&self, row: usize) -> Option<bool> {
        let index = self.value_index(row);
        self.values.is_valid(index).then(|| self.values.value(index))
    }
}

impl<P: ArrowPrimitiveType> ArgumentColumn<PrimitiveArray<P>> {
    pub(crate) fn get(&self, row: usize) -> Option<P::Native> {
        let index = self.value_index(row);
        self.values.is_valid(index).then(|| self.values.value(index))
    }
}

impl<V> ArgumentColumn<Vec<Option<V>>> {
    pub(crate) fn get(&self, row: usize) -> Option<&V> {
        self.values[self.value_index(row)].as_ref()
    }
}

/// Builds texts whose total size is limited.
pub(crate) struct BoundedTexts {
    builder: StringBuilder,
}

impl BoundedTexts {
    pub(crate) fn new(rows: usize) -> Self {
        Self { builder: StringBuilder::with_capacity(rows, 0) }
    }

    /// Builds the text of each row.
    pub(crate) fn of_rows<T: AsRef<str>>(rows: usize, make: impl FnMut(usize) -> Result<Option<T>>) -> Result<Self> {
        let mut texts = Self::new(rows);
        (0..rows).map(make).try_for_each(|text| texts.push(text?))?;
        Ok(texts)
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

/// Fails if a result of `bytes` is larger than the limit for one evaluation.
pub(crate) fn check_bytes(bytes: usize) -> Result<()> {
    if bytes > RESULT_BYTES_MAX {
        let mebibytes = RESULT_BYTES_MAX >> 20;
        let message = format!("a function would make more than {mebibytes} MiB at once");
        return Err(DataFusionError::ResourcesExhausted(message));
    }
    Ok(())
}
