//! The framework of the catalog functions: each computes a value from the visible objects, row by row.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::objects::VisibleObjects;
use crate::data_type::is_text;

/// The type of an argument or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CatalogType {
    Text,
    Number,
    Flag,
    Texts,
    /// A name as text, or an oid.
    Reference,
    /// A value of any type.
    Any,
    /// An element of an array, and its position.
    Element,
}

impl CatalogType {
    fn data_type(self) -> DataType {
        match self {
            Self::Text | Self::Reference | Self::Any => DataType::Utf8,
            Self::Number => DataType::Int64,
            Self::Flag => DataType::Boolean,
            Self::Element => {
                let field = |name: &str| Field::new(name, DataType::Int64, true);
                DataType::Struct(vec![field("x"), field("n")].into())
            }
            Self::Texts => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
        }
    }

    /// Returns the type that an argument of type `given` is coerced to.
    fn coerced(self, data_type: &DataType) -> Option<DataType> {
        match self {
            Self::Any => Some(data_type.clone()),
            _ if data_type.is_null() => Some(self.data_type()),
            Self::Reference if data_type.is_integer() => Some(DataType::Int64),
            Self::Text | Self::Reference if is_text(data_type) => Some(DataType::Utf8),
            // An untyped literal is parsed as a number.
            Self::Number if data_type.is_integer() || is_text(data_type) => Some(DataType::Int64),
            Self::Flag if *data_type == DataType::Boolean => Some(DataType::Boolean),
            _ => None,
        }
    }
}

type RunFunction = fn(&VisibleObjects, &[ScalarValue]) -> Result<ScalarValue>;

/// A function of the catalogs.
#[derive(Debug, Clone, Copy)]
pub(super) struct CatalogFunction {
    name: &'static str,
    params: &'static [CatalogType],
    /// The number of required arguments.
    required: usize,
    returns: CatalogType,
    /// Whether the result is NULL if an argument is.
    is_strict: bool,
    run: RunFunction,
}

impl CatalogFunction {
    pub(super) const fn new(
        name: &'static str,
        params: &'static [CatalogType],
        returns: CatalogType,
        run: RunFunction,
    ) -> Self {
        Self { name, params, required: params.len(), returns, is_strict: true, run }
    }

    /// Sets the number of required arguments.
    pub(super) const fn with_required(mut self, required: usize) -> Self {
        self.required = required;
        self
    }

    /// Lets the function receive NULL arguments.
    pub(super) const fn called_on_null_input(mut self) -> Self {
        self.is_strict = false;
        self
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Binds the function to `objects`.
    pub(super) fn bind(self, objects: &Arc<VisibleObjects>) -> ScalarUDF {
        let signature = Signature::user_defined(Volatility::Stable);
        ScalarUDF::new_from_impl(BoundCatalogFunction { function: self, objects: objects.clone(), signature })
    }

    fn value(&self, objects: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
        if self.is_strict && args.iter().any(ScalarValue::is_null) {
            return ScalarValue::try_from(self.returns.data_type());
        }
        (self.run)(objects, args)
    }
}

/// A function over the objects of one caller.
#[derive(Debug)]
struct BoundCatalogFunction {
    function: CatalogFunction,
    objects: Arc<VisibleObjects>,
    signature: Signature,
}

impl PartialEq for BoundCatalogFunction {
    fn eq(&self, other: &Self) -> bool {
        self.function.name == other.function.name && Arc::ptr_eq(&self.objects, &other.objects)
    }
}

impl Eq for BoundCatalogFunction {}

impl Hash for BoundCatalogFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.name.hash(state);
    }
}

impl ScalarUDFImpl for BoundCatalogFunction {
    fn name(&self) -> &str {
        self.function.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.function.returns.data_type())
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let CatalogFunction { name, params, required, .. } = self.function;
        if types.len() < required || types.len() > params.len() {
            return plan_err!("{name} takes {required} to {} arguments, not {}", params.len(), types.len());
        }
        let coerced = params.iter().zip(types).map(|(param, data_type)| match param.coerced(data_type) {
            Some(data_type) => Ok(data_type),
            None => plan_err!("{name} does not accept the type {}", super::types::sql_type_name(data_type)),
        });
        coerced.collect()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant: Option<Vec<ScalarValue>> = args
            .args
            .iter()
            .map(|arg| match arg {
                ColumnarValue::Scalar(value) => Some(value.clone()),
                ColumnarValue::Array(_) => None,
            })
            .collect();
        if let Some(values) = constant {
            return Ok(ColumnarValue::Scalar(self.function.value(&self.objects, &values)?));
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let value = |row: usize| {
            let values = arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
            self.function.value(&self.objects, &values.collect::<Result<Vec<_>>>()?)
        };
        if args.number_rows == 0 {
            let none = ScalarValue::try_from(self.function.returns.data_type())?.to_array_of_size(0)?;
            return Ok(ColumnarValue::Array(none));
        }
        let values = (0..args.number_rows).map(value).collect::<Result<Vec<_>>>()?;
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?))
    }
}

/// Returns `value` as text, or an empty text if it is not one.
pub(super) fn as_text(value: Option<&ScalarValue>) -> &str {
    value.and_then(|value| value.try_as_str().flatten()).unwrap_or_default()
}

/// Returns `value` as a number, if it is one.
pub(super) fn as_number(value: Option<&ScalarValue>) -> Option<i64> {
    match value {
        Some(ScalarValue::Int64(number)) => *number,
        _ => None,
    }
}

pub(super) fn text(value: impl Into<String>) -> ScalarValue {
    ScalarValue::Utf8(Some(value.into()))
}

pub(super) const NO_TEXT: ScalarValue = ScalarValue::Utf8(None);
