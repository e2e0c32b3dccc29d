//! A cast, as a function.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Float64Type};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::{from_text, numeric, to_text};
use crate::function::convert_columnar;
use crate::list::{as_list, item_type};
use crate::number::{convert_integers_exactly, has_unconstrained_scale, out_of_range_error, round_half_away_from_zero};
use crate::time;

/// Whether Arrow's cast differs from PostgreSQL's.
pub(super) fn needs_postgres_cast(from: &DataType, to: &DataType) -> Result<bool> {
    if to.is_string() {
        if has_unconstrained_scale(from) {
            return plan_err!(
                "a quotient or an average cannot be cast to text, because PostgreSQL chooses its number of \
                 digits by its value; round it first: write round(x, 2)::text"
            );
        }
        if matches!(from, DataType::Struct(_) | DataType::Map(..) | DataType::Union(..)) {
            return plan_err!("a row cannot be cast to text; name its fields, or write to_json(x)");
        }
        return Ok(to_text::is_formatted_here(from));
    }
    if from.is_string() {
        return Ok(from_text::is_parsed_here(to));
    }
    if time::is_conversion(from, to) {
        return Ok(true);
    }
    Ok(match to {
        integer if integer.is_integer() => from.is_floating() || matches!(from, DataType::Decimal128(..)),
        DataType::Decimal128(..) => from.is_floating(),
        _ => false,
    })
}

/// Casts its argument to a type as PostgreSQL does.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Conversion {
    to: DataType,
    /// Whether the name of the column has the type. Otherwise it is that of the operand, as DataFusion names casts.
    is_named_by_type: bool,
    signature: Signature,
}

impl Conversion {
    pub(crate) fn new(to: DataType) -> Self {
        Self { to, is_named_by_type: false, signature: Signature::any(1, Volatility::Immutable) }
    }

    /// The type that its argument is cast to.
    pub(super) fn data_type(&self) -> &DataType {
        &self.to
    }

    fn named_by_type(&self) -> Self {
        Self { is_named_by_type: true, ..Self::new(self.to.clone()) }
    }
}

/// Gives the conversions in a condition names of their own. A key of a join becomes a column beside its operand.
pub(crate) fn name_conversions(condition: Expr) -> Result<Transformed<Expr>> {
    condition.transform_up(|part| {
        let Expr::ScalarFunction(call) = &part else { return Ok(Transformed::no(part)) };
        let conversion = call.func.inner().downcast_ref::<Conversion>().filter(|function| !function.is_named_by_type);
        let named =
            conversion.map(|function| ScalarUDF::new_from_impl(function.named_by_type()).call(call.args.clone()));
        Ok(named.map_or(Transformed::no(part), Transformed::yes))
    })
}

/// Converts `values` to the type `to`.
fn convert_values(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = values.data_type();
    if let (Some(_), DataType::List(item)) = (item_type(from), to) {
        return convert_elements(values, item);
    }
    if to.is_string() {
        return Ok(cast(&to_text::format_values(values)?, to)?);
    }
    if from.is_string() {
        let values = cast(values, &DataType::Utf8)?;
        return from_text::parse_texts(values.as_string(), to);
    }
    if time::is_conversion(from, to) {
        return time::convert(values, to);
    }
    if from.is_floating() && to.is_decimal() {
        return numeric::from_floats(values, to, false);
    }
    if from.is_integer() {
        return Ok(cast(values, to)?);
    }
    let integers: Int64Array = match from {
        DataType::Decimal128(_, scale) => {
            let unit = 10_i128.pow(u32::from(scale.unsigned_abs()));
            let rounded =
                |value: i128| i64::try_from(round_half_away_from_zero(value, unit)).map_err(|_| out_of_range_error(to));
            let values = values.as_primitive::<Decimal128Type>().iter();
            values.map(|value| value.map(rounded).transpose()).collect::<Result<_>>()?
        }
        _ => {
            let doubles = cast(values, &DataType::Float64)?;
            let values = doubles.as_primitive::<Float64Type>().iter();
            values.map(|value| value.map(|value| round_half_to_even(value, to)).transpose()).collect::<Result<_>>()?
        }
    };
    convert_integers_exactly(&integers, to)
}

/// Converts the elements of arrays to the type of `item`.
fn convert_elements(values: &ArrayRef, item: &FieldRef) -> Result<ArrayRef> {
    let list = as_list(values)?;
    // Of a slice, only its own elements may be parsed.
    let range =
        list.offsets().first().copied().unwrap_or(0) as usize..list.offsets().last().copied().unwrap_or(0) as usize;
    let elements = list.values().slice(range.start, range.len());
    let (from, to) = (elements.data_type(), item.data_type());
    let elements = if item_type(to).is_some() || needs_postgres_cast(from, to)? {
        convert_values(&elements, to)?
    } else {
        cast_with_options(&elements, to, &CastOptions { safe: false, ..CastOptions::default() })?
    };
    let offsets = OffsetBuffer::from_lengths(list.offsets().lengths());
    Ok(Arc::new(ListArray::try_new(item.clone(), offsets, elements, list.nulls().cloned())?))
}

/// Rounds `value` to the nearest integer, ties to even.
fn round_half_to_even(value: f64, to: &DataType) -> Result<i64> {
    let rounded = value.round_ties_even();
    // 2^63 is a double, but larger than any bigint.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
        return Err(out_of_range_error(to));
    }
    #[allow(clippy::cast_possible_truncation, reason = "in range, and whole")]
    Ok(rounded as i64)
}

impl ScalarUDFImpl for Conversion {
    crate::name_and_signature!("cast*");

    #[allow(deprecated, reason = "plans show the cast")]
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| format!("CAST({arg} AS {})", self.to)).collect())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names = args.iter().map(|arg| match self.is_named_by_type {
            true => format!("CAST({} AS {})", arg.schema_name(), self.to),
            false => arg.schema_name().to_string(),
        });
        Ok(names.collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.first() else { return plan_err!("a cast has an operand") };
        convert_columnar(value, |values| convert_values(values, &self.to))
    }
}
