//! The type of the functions in this module.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::kind::TimeKind;
use crate::function::{Invoke, invoke_columnar};

/// Returns the type of the result for arguments of these kinds; `None` if PostgreSQL has no such function.
type Returns = fn(&[TimeKind]) -> Option<DataType>;
/// Returns the type of the result, which also depends on constant arguments.
type ReturnsOfValues = fn(&[TimeKind], &[Option<&ScalarValue>]) -> Result<Option<DataType>>;

/// A function that consists of plain functions. Two functions of one name are equal.
#[derive(Debug)]
struct TimeFunction {
    name: &'static str,
    signature: Signature,
    returns: ReturnType,
    compute: Invoke,
}

/// How the type of the result is determined.
#[derive(Debug, Clone, Copy)]
enum ReturnType {
    FromTypes(Returns),
    FromValues(ReturnsOfValues),
}

/// Builds a function whose value depends only on its arguments.
pub(super) fn function(name: &'static str, returns: Returns, compute: Invoke) -> ScalarUDF {
    new_function(name, Volatility::Immutable, ReturnType::FromTypes(returns), compute)
}

/// Builds a function whose result type depends on constant arguments.
pub(super) fn function_with_constant_args(name: &'static str, returns: ReturnsOfValues, compute: Invoke) -> ScalarUDF {
    new_function(name, Volatility::Immutable, ReturnType::FromValues(returns), compute)
}

/// Builds a function whose value depends on the current time if it has fewer arguments.
pub(super) fn stable_function(name: &'static str, returns: Returns, compute: Invoke) -> ScalarUDF {
    new_function(name, Volatility::Stable, ReturnType::FromTypes(returns), compute)
}

fn new_function(name: &'static str, volatility: Volatility, returns: ReturnType, compute: Invoke) -> ScalarUDF {
    ScalarUDF::new_from_impl(TimeFunction { name, signature: Signature::user_defined(volatility), returns, compute })
}

/// Returns PostgreSQL's error for a function that does not exist.
fn undefined_function_error(name: &str, types: &[DataType]) -> DataFusionError {
    let types: Vec<String> =
        types.iter().map(|data_type| TimeKind::from_data_type(data_type).name(data_type)).collect();
    DataFusionError::Plan(format!("function {name}({}) does not exist", types.join(", ")))
}

/// Plans the call of a function of this module.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Result<Expr> {
    static FUNCTIONS: OnceLock<HashMap<String, Arc<ScalarUDF>>> = OnceLock::new();
    let functions = FUNCTIONS.get_or_init(|| {
        super::functions().into_iter().map(|function| (function.name().to_owned(), Arc::new(function))).collect()
    });
    let function = functions.get(name);
    let function = function.ok_or_else(|| DataFusionError::Internal(format!("there is no function {name}")))?;
    Ok(function.call(args))
}

impl TimeFunction {
    fn result_type(&self, types: &[DataType], values: &[Option<&ScalarValue>]) -> Result<DataType> {
        let kinds: Vec<TimeKind> = types.iter().map(TimeKind::from_data_type).collect();
        let result = match self.returns {
            ReturnType::FromTypes(returns) => returns(&kinds),
            ReturnType::FromValues(returns) => returns(&kinds, values)?,
        };
        result.ok_or_else(|| undefined_function_error(self.name, types))
    }
}

crate::compare_by!(TimeFunction { name });

impl ScalarUDFImpl for TimeFunction {
    crate::name_and_signature!(.name);

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.return_type(types)?;
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.result_type(types, &[])
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name, self.result_type(&types, args.scalar_arguments)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        invoke_columnar(&args, self.compute)
    }
}
