//! Casts to and from JSON.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, StringArray, StructArray,
};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::document::{as_they_are, check_count, is_text, kind, read, values};
use super::function::{Call, Function, field_kind};
use super::kind::{Kind, holds_json, kind_of, shown_field, texts};
use super::number;
use super::reader::{Reader, Token};

/// The functions that casts to JSON are.
pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::new("json", as_they_are, target::<false>, convert::<false>),
        Function::new("jsonb", as_they_are, target::<true>, convert::<true>),
    ]
}

fn target<const IS_BINARY: bool>(fields: &[FieldRef]) -> Result<DataType> {
    let kind = kind::<IS_BINARY>();
    check_count(kind.name(), fields, 1, 1)?;
    let data_type = fields[0].data_type();
    if field_kind(&fields[0]).is_some() || is_text(data_type) {
        return Ok(kind.data_type());
    }
    let name = kind.name();
    plan_err!("cannot cast type {data_type} to {name}; write to_{name}(value)")
}

fn convert<const IS_BINARY: bool>(call: &Call<'_>) -> Result<ArrayRef> {
    let kind = kind::<IS_BINARY>();
    let array = call.array(0)?;
    let given = texts(&array)?;
    match (kind_of(array.data_type()), kind) {
        // Canonical JSON is JSON.
        (Some(Kind::Jsonb), _) | (Some(Kind::Json), Kind::Json) => kind.values(given),
        _ => kind.values(read(&given, kind)?),
    }
}

/// The documents that `texts` are.
///
/// # Errors
/// PostgreSQL's words for the first text that is none.
pub(crate) fn parsed(texts: &StringArray, kind: Kind) -> Result<ArrayRef> {
    kind.values(read(texts, kind)?)
}

/// The text of a JSON value.
pub(super) fn to_text() -> ScalarUDF {
    Function::new("json_text", as_they_are, |_| Ok(DataType::Utf8), |call| Ok(Arc::new(texts(&call.array(0)?)?)))
}

/// The text of a number, for casts of `jsonb` to `numeric` and `double precision`.
pub(super) fn to_number() -> ScalarUDF {
    Function::new(
        "jsonb_number",
        as_they_are,
        |_| Ok(DataType::Utf8),
        |call| {
            let documents = call.texts(0)?;
            values(call, None, |row| documents.get(row).map(|text| number_of(text, "numeric")).transpose())
        },
    )
}

fn number_of(text: &str, target: &str) -> Result<String> {
    match Reader::new(text).token()? {
        Token::Number => Ok(text.to_owned()),
        other => exec_err!("cannot cast jsonb {} to type {target}", other.type_name()),
    }
}

/// The texts of documents that are numbers.
///
/// # Errors
/// For other documents.
pub(crate) fn numbers(documents: &ArrayRef) -> Result<StringArray> {
    let documents = texts(documents)?;
    let number = |document: Option<&str>| document.map(|text| number_of(text, "numeric")).transpose();
    documents.iter().map(number).collect()
}

/// The integer that a number is rounded to.
pub(super) fn to_integer() -> ScalarUDF {
    Function::new(
        "jsonb_integer",
        as_they_are,
        |_| Ok(DataType::Int64),
        |call| {
            let documents = call.texts(0)?;
            let integer = |row| -> Result<Option<i64>> {
                let Some(text) = documents.get(row) else { return Ok(None) };
                let rounded = number::rounded(&number_of(text, "integer")?);
                match rounded.and_then(|integer| i64::try_from(integer).ok()) {
                    Some(integer) => Ok(Some(integer)),
                    None => exec_err!("integer out of range: {text}"),
                }
            };
            Ok(Arc::new((0..call.rows).map(integer).collect::<Result<Int64Array>>()?))
        },
    )
}

/// The truth value that a document is.
pub(super) fn to_boolean() -> ScalarUDF {
    Function::new(
        "jsonb_boolean",
        as_they_are,
        |_| Ok(DataType::Boolean),
        |call| {
            let documents = call.texts(0)?;
            let boolean = |row| -> Result<Option<bool>> {
                let Some(text) = documents.get(row) else { return Ok(None) };
                match Reader::new(text).token()? {
                    Token::True => Ok(Some(true)),
                    Token::False => Ok(Some(false)),
                    other => exec_err!("cannot cast jsonb {} to type boolean", other.type_name()),
                }
            };
            Ok(Arc::new((0..call.rows).map(boolean).collect::<Result<BooleanArray>>()?))
        },
    )
}

/// What an answer shows of values that hold JSON: marked text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Shown {
    signature: datafusion::logical_expr::Signature,
}

impl Shown {
    pub(super) fn function() -> ScalarUDF {
        let signature = datafusion::logical_expr::Signature::any(1, datafusion::logical_expr::Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { signature })
    }
}

impl datafusion::logical_expr::ScalarUDFImpl for Shown {
    fn name(&self) -> &str {
        "json_shown"
    }

    fn signature(&self) -> &datafusion::logical_expr::Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        datafusion::common::internal_err!("json_shown returns a field")
    }

    fn return_field_from_args(&self, args: datafusion::logical_expr::ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(shown_field(&args.arg_fields[0])))
    }

    fn invoke_with_args(
        &self,
        args: datafusion::logical_expr::ScalarFunctionArgs,
    ) -> Result<datafusion::logical_expr::ColumnarValue> {
        use datafusion::logical_expr::ColumnarValue;
        match &args.args[0] {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(shown(array)?)),
            ColumnarValue::Scalar(scalar) => {
                let array = shown(&scalar.to_array()?)?;
                Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&array, 0)?))
            }
        }
    }
}

/// `array` with texts in place of JSON values.
fn shown(array: &ArrayRef) -> Result<ArrayRef> {
    if !holds_json(array.data_type()) {
        return Ok(array.clone());
    }
    if kind_of(array.data_type()).is_some() {
        return Ok(Arc::new(texts(array)?));
    }
    let field = shown_field(&datafusion::arrow::datatypes::Field::new("", array.data_type().clone(), true));
    match (array.data_type(), field.data_type()) {
        (DataType::List(_), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Ok(Arc::new(ListArray::try_new(item.clone(), offsets, shown(list.values())?, nulls)?))
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let values = array.as_struct();
            let columns = values.columns().iter().map(shown).collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                values.nulls().cloned(),
                values.len(),
            )?))
        }
        (other, _) => exec_err!("JSON within {other} cannot be shown; cast it to text"),
    }
}
