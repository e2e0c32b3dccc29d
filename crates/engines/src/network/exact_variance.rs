//! Variance and standard deviation of whole numbers and numerics, from exact sums of each branch.
//!
//! Their sums of squares are exact, so that nothing cancels: the result is that of one node, to the last digit. The sum of
//! the squares of a `bigint` may have more digits than a numeric holds, so a branch computes it in parts: with
//! `x = high * 2^32 + low`, the sums of `high * high`, `high * low` and `low * low`.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, FieldRef, Int64Type, i256};
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Cast};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, Operator, Signature, Volatility, binary_expr, lit,
};

/// The number of bits of the low part of a `bigint`.
pub(crate) const LOW_BITS: i64 = 32;
/// The bits of the low part.
pub(crate) const LOW_MASK: i64 = 0xFFFF_FFFF;
/// The digits of each part.
const PART_PRECISION: u8 = 10;
/// The largest precision of a numeric whose squares are added as a whole. A sum has room for 10^8 of the largest squares.
const SQUARE_PRECISION_MAX: u8 = 15;
/// The precision that a `bigint` has as the argument of a variance.
const BIGINT_PRECISION: u8 = 19;

/// PostgreSQL's `sum`, which does not wrap around.
static SUM: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
    let functions = tidegate_pgsql::aggregate_functions();
    let sum = functions.into_iter().find(|function| function.name() == "sum");
    sum.unwrap_or_else(datafusion::functions_aggregate::sum::sum_udaf)
});

/// How a variance of exact numbers is computed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ExactVariance {
    /// The function with all rows.
    inner: Arc<AggregateUDF>,
    argument: FieldRef,
    result: FieldRef,
    has_parts: bool,
}

impl ExactVariance {
    /// `None` if the argument of `function` is not exact, or its sums could have too many digits.
    pub(super) fn new(function: &AggregateFunction, schema: &DFSchema) -> Option<Self> {
        let [argument] = function.params.args.as_slice() else { return None };
        let (_, argument) = argument.to_field(schema).ok()?;
        let has_parts = match argument.data_type() {
            DataType::Decimal128(precision, _) if *precision <= SQUARE_PRECISION_MAX => false,
            DataType::Decimal128(BIGINT_PRECISION, 0) => true,
            _ => return None,
        };
        let result = function.func.return_field(std::slice::from_ref(&argument)).ok()?;
        Some(Self { inner: function.func.clone(), argument, result, has_parts })
    }

    /// The number of sums.
    pub(super) fn partials_count(&self) -> usize {
        if self.has_parts { 5 } else { 3 }
    }

    /// The functions that a branch computes, with their arguments; `None` if `argument` is not a whole number there.
    pub(super) fn partials(&self, argument: &Expr, schema: &DFSchema) -> Option<Vec<(Arc<AggregateUDF>, Expr)>> {
        let times = |left: &Expr, right: &Expr| binary_expr(left.clone(), Operator::Multiply, right.clone());
        let sum = || SUM.clone();
        let whole = match argument {
            // A node without the column.
            Expr::Literal(value, _) if value.is_null() && self.has_parts => Some(lit(ScalarValue::Int64(None))),
            argument => whole_number(argument, schema),
        };
        if !self.has_parts {
            let (value, square) = (whole.unwrap_or_else(|| argument.clone()), times(argument, argument));
            return Some(vec![(count_udaf(), value.clone()), (sum(), value), (sum(), square)]);
        }
        let whole = whole.filter(|whole| whole.get_type(schema).is_ok_and(|of| of == DataType::Int64))?;
        let part = |op, constant| {
            let part = binary_expr(whole.clone(), op, lit(constant));
            Expr::Cast(Cast::new(Box::new(part), DataType::Decimal128(PART_PRECISION, 0)))
        };
        let (high, low) = (part(Operator::BitwiseShiftRight, LOW_BITS), part(Operator::BitwiseAnd, LOW_MASK));
        let squares = [(&high, &high), (&high, &low), (&low, &low)];
        let squares = squares.into_iter().map(|(left, right)| (sum(), times(left, right)));
        Some([(count_udaf(), whole.clone()), (sum(), whole.clone())].into_iter().chain(squares).collect())
    }

    /// The function that merges the sums of the branches, which are its arguments.
    pub(super) fn merging_function(&self) -> Arc<AggregateUDF> {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(MergeVariance { variance: self.clone(), signature }))
    }
}

/// The whole number that is cast to `numeric` for the variance.
fn whole_number(argument: &Expr, schema: &DFSchema) -> Option<Expr> {
    match argument {
        Expr::Cast(Cast { expr, .. }) => {
            let is_whole = expr.get_type(schema).is_ok_and(|of| of.is_signed_integer());
            is_whole.then(|| (**expr).clone())
        }
        _ => None,
    }
}

/// The function over the results of branches: the number, the sum, and the sums of squares or of their parts.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MergeVariance {
    variance: ExactVariance,
    signature: Signature,
}

impl AggregateUDFImpl for MergeVariance {
    tidegate_pgsql::name_and_signature!("merge_variance");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.variance.result.data_type().clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let input_fields = std::slice::from_ref(&self.variance.argument);
        self.variance.inner.state_fields(StateFieldsArgs { input_fields, ..args })
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let expr_fields = std::slice::from_ref(&self.variance.argument);
        let return_field = self.variance.result.clone();
        let inner = self.variance.inner.accumulator(AccumulatorArgs { expr_fields, return_field, ..args })?;
        Ok(Box::new(MergedSums { inner, has_parts: self.variance.has_parts }))
    }
}

/// The accumulator of the function with all rows, whose states are the sums of branches.
#[derive(Debug)]
struct MergedSums {
    inner: Box<dyn Accumulator>,
    has_parts: bool,
}

impl Accumulator for MergedSums {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [counts, sums, squares @ ..] = values else { return exec_err!("a variance has a number and a sum") };
        let counts: Int64Array = cast(counts, &DataType::Int64)?.as_primitive::<Int64Type>().clone();
        // A branch without values has no sums.
        let counts: Int64Array = counts.iter().map(|count| Some(count.unwrap_or(0))).collect();
        let sums = units(sums)?.into_iter().collect::<Decimal128Array>().with_precision_and_scale(38, 0)?;
        let squares = match (squares, self.has_parts) {
            ([whole], false) => units(whole)?.into_iter().map(i256::from_i128).collect(),
            ([high, mixed, low], true) => {
                let parts = units(high)?.into_iter().zip(units(mixed)?).zip(units(low)?);
                parts.map(|((high, mixed), low)| join_parts(high, mixed, low)).collect::<Vec<i256>>()
            }
            _ => return exec_err!("a variance has another number of sums"),
        };
        let squares = squares.into_iter().collect::<Decimal256Array>().with_precision_and_scale(76, 0)?;
        self.inner.merge_batch(&[Arc::new(counts), Arc::new(sums), Arc::new(squares)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}

/// The values without their points; zero for null.
fn units(values: &ArrayRef) -> Result<Vec<i128>> {
    if values.data_type().is_integer() {
        let whole = cast(values, &DataType::Int64)?;
        return Ok(whole.as_primitive::<Int64Type>().iter().map(|value| value.unwrap_or(0).into()).collect());
    }
    match values.as_primitive_opt::<Decimal128Type>() {
        Some(values) => Ok(values.iter().map(Option::unwrap_or_default).collect()),
        None => exec_err!("{} is not an exact number", values.data_type()),
    }
}

/// The sum of squares, whose parts have at most 63 bits for each value, and so at most 127 bits for 2^64 values.
fn join_parts(high: i128, mixed: i128, low: i128) -> i256 {
    let [high, mixed, low] = [high, mixed, low].map(i256::from_i128);
    (high << 64) + (mixed << 33) + low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_largest_numbers_are_their_square() {
        for value in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX] {
            let (high, low) = (i128::from(value >> LOW_BITS), i128::from(value & LOW_MASK));
            let square = join_parts(high * high, high * low, low * low);
            assert_eq!(square, i256::from_i128(value.into()) * i256::from_i128(value.into()), "{value}");
        }
    }
}
