//! The functions `coalesce`, `greatest`, `least` and `nullif`, and `ARRAY[…]` as a call: their arguments may be untyped
//! literals.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::functions::core::{coalesce, greatest, least, nullif};
use datafusion::functions_nested::make_array::make_array_udf;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    Case, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::scalar::ScalarValue;

use super::plan::check_lengths;
use super::{becomes_float, is_untyped, literal_target, type_operand};
use crate::array;

/// The name of the function for an array literal whose elements are arguments.
pub(crate) const ARRAY: &str = "array*";

pub(super) fn functions() -> Vec<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    let choices = [coalesce(), greatest(), least(), nullif()].map(|inner| (inner.name().to_owned(), inner));
    let functions = choices.into_iter().chain([(ARRAY.to_owned(), make_array_udf())]);
    let function = |(name, inner)| ChoiceFunction { name, inner, signature: signature.clone() };
    functions.map(|named| ScalarUDF::new_from_impl(function(named))).collect()
}

/// A function of DataFusion whose arguments have one type. [`resolve_choice`] replaces it with DataFusion's function
/// once the literals have their type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ChoiceFunction {
    name: String,
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

/// Replaces a call of a [`ChoiceFunction`] with a call of DataFusion's function, and types its literals.
pub(super) fn resolve_choice(call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some(choice) = call.func.inner().downcast_ref::<ChoiceFunction>() else {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    };
    let types = call.args.iter().filter(|arg| !is_untyped(arg)).map(|arg| arg.get_type(schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    let common = choice.literal_target(&types)?;
    let args = match common {
        Some(common) => {
            let typed = |arg| type_operand(arg, &common, schema).map(|typed| typed.data);
            call.args.into_iter().map(typed).collect::<Result<_>>()?
        }
        None => call.args,
    };
    if choice.name == ARRAY {
        check_lengths(&args)?;
        let array = array::plan_nested_array(&args, schema);
        return Ok(Transformed::yes(array.unwrap_or_else(|| choice.inner.call(args))));
    }
    if types.iter().any(|data_type| matches!(data_type, DataType::Interval(_))) {
        return choose_interval(choice, args).map(Transformed::yes);
    }
    Ok(Transformed::yes(choice.inner.call(args)))
}

/// Plans `coalesce` and `nullif` of intervals. DataFusion does not compare intervals by their length.
fn choose_interval(choice: &ChoiceFunction, args: Vec<Expr>) -> Result<Expr> {
    match (choice.name(), args.as_slice()) {
        ("coalesce", _) => Ok(choice.inner.call(args)),
        ("nullif", [left, right]) => {
            let is_equal = left.clone().eq(right.clone());
            let (condition, then) = (Box::new(is_equal), Box::new(Expr::Literal(ScalarValue::Null, None)));
            Ok(Expr::Case(Case::new(None, vec![(condition, then)], Some(Box::new(left.clone())))))
        }
        (name, _) => plan_err!(
            "{name} of intervals is not supported; write CASE WHEN a > b THEN a ELSE b END, or max and min of rows"
        ),
    }
}

impl ChoiceFunction {
    fn literal_target(&self, types: &[DataType]) -> Result<Option<DataType>> {
        let common = literal_target(&self.name.trim_end_matches('*').to_uppercase(), types)?;
        // `nullif` compares its arguments, a numeric and a real as doubles.
        let is_compared = self.name == "nullif" && types.iter().any(DataType::is_decimal);
        Ok(if is_compared && common == Some(DataType::Float32) { Some(DataType::Float64) } else { common })
    }
}

impl ScalarUDFImpl for ChoiceFunction {
    crate::name_and_signature!(.name);

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        plan_err!("the type of {} depends on its arguments", self.name())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let untyped: Vec<bool> =
            args.scalar_arguments.iter().map(|value| matches!(value, Some(ScalarValue::Utf8(Some(_))))).collect();
        let is_literal = |position: usize| untyped.get(position).copied().unwrap_or(false);
        let types = args.arg_fields.iter().enumerate().filter(|(position, _)| !is_literal(*position));
        let types: Vec<DataType> = types.map(|(_, field)| field.data_type().clone()).collect();
        let common = self.literal_target(&types)?;
        let fields = args.arg_fields.iter().enumerate().map(|(position, field)| match &common {
            Some(common) if is_literal(position) || becomes_float(field.data_type(), common) => {
                Arc::new(Field::clone(field).with_data_type(common.clone()))
            }
            _ => field.clone(),
        });
        let fields = fields_with_udf(&fields.collect::<Vec<_>>(), self.inner.as_ref())?;
        self.inner
            .return_field_from_args(ReturnFieldArgs { arg_fields: &fields, scalar_arguments: args.scalar_arguments })
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("{} was not resolved", self.name())
    }
}
