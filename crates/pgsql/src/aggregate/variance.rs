//! Variance and standard deviation: an exact numeric for integers and numerics, a double for floating-point numbers.
//!
//! Doubles have the digits that PostgreSQL computes. DataFusion's merge of groups also gives NaN for large values:
//! `docs/decisions/upstream` has the text to be filed.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Decimal256Array, Float64Array, Int64Array, UInt64Array};
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Field, FieldRef, Float64Type, Int64Type, UInt64Type, i256,
};
use datafusion::common::{DataFusionError, Result, exec_err, plan_err};
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use super::argument_advice;
use super::moments::{GroupMoments, Moments, QueuedMoments, RowMoments};
use crate::data_type::postgres_type_name;
use crate::number::numeric_with_free_scale;

pub(super) fn functions() -> Vec<AggregateUDF> {
    let function = |(inner, aliases, measure): (Arc<AggregateUDF>, &[&str], VarianceKind)| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        AggregateUDF::new_from_impl(VarianceFunction { inner, aliases, measure, signature })
    };
    kinds().into_iter().map(function).collect()
}

/// The functions of DataFusion with their further names, and what they compute.
fn kinds() -> [(Arc<AggregateUDF>, &'static [&'static str], VarianceKind); 4] {
    let kind = |is_sample, is_root| VarianceKind { is_sample, is_root };
    [
        (stddev_udaf(), &["stddev_samp"], kind(true, true)),
        (stddev_pop_udaf(), &[], kind(false, true)),
        (var_samp_udaf(), &["var_samp", "var_sample", "variance"], kind(true, false)),
        (var_pop_udaf(), &["var_population"], kind(false, false)),
    ]
}

/// What the function that DataFusion calls `name` computes; `None` if it is no variance and no standard deviation.
pub(super) fn kind_of(name: &str) -> Option<VarianceKind> {
    kinds().into_iter().find(|(function, ..)| function.name() == name).map(|(.., kind)| kind)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct VarianceFunction {
    inner: Arc<AggregateUDF>,
    aliases: Vec<String>,
    measure: VarianceKind,
    signature: Signature,
}

impl VarianceFunction {
    fn exact_measure(&self, args: &AccumulatorArgs) -> Result<ExactMeasure> {
        match (args.expr_fields, args.return_field.data_type()) {
            ([value], DataType::Decimal128(_, to)) => match value.data_type() {
                DataType::Decimal128(_, from) => {
                    let (scales, data_type) = (Scales { from: *from, to: *to }, args.return_field.data_type().clone());
                    Ok(ExactMeasure { kind: self.measure, scales, data_type })
                }
                other => exec_err!("{other} is not a numeric"),
            },
            _ => exec_err!("a variance has one argument"),
        }
    }
}

fn is_exact(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(..))
}

impl AggregateUDFImpl for VarianceFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [value] = types else { return plan_err!("{} has one argument", self.name()) };
        Ok(vec![match value {
            DataType::Int8 | DataType::UInt8 => DataType::Decimal128(3, 0),
            DataType::Int16 | DataType::UInt16 => DataType::Decimal128(5, 0),
            DataType::Int32 | DataType::UInt32 => DataType::Decimal128(10, 0),
            DataType::Int64 => DataType::Decimal128(19, 0),
            DataType::UInt64 => DataType::Decimal128(20, 0),
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                DataType::Decimal128(*precision, *scale)
            }
            DataType::Decimal128(..) => value.clone(),
            number if number.is_numeric() || number.is_null() => DataType::Float64,
            other => {
                let (name, advice) = (self.name(), argument_advice(other));
                return plan_err!("function {name}({}) does not exist; {advice}", postgres_type_name(other));
            }
        }])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Decimal128(precision, scale)] => {
                let digits = i16::from(*precision) - i16::from(*scale);
                Ok(numeric_with_free_scale(if self.measure.is_root { digits } else { 2 * digits }))
            }
            _ => Ok(DataType::Float64),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if !is_exact(args.return_type()) || args.is_distinct {
            return self.inner.state_fields(args);
        }
        let field = |name: &str, data_type| Arc::new(Field::new(format_state_name(args.name, name), data_type, true));
        Ok(vec![
            field("count", DataType::Int64),
            field("sum", DataType::Decimal128(38, 0)),
            field("squares", DataType::Decimal256(76, 0)),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return plan_err!("{} does not take DISTINCT; select the distinct values in a subquery", self.name());
        }
        if is_exact(args.return_field.data_type()) {
            Ok(Box::new(RowMoments::<ExactMoments>::new(self.exact_measure(&args)?)))
        } else {
            Ok(Box::new(RowMoments::<DoubleMoments>::new(self.measure)))
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct || is_exact(args.return_field.data_type()) {
            self.accumulator(args)
        } else {
            Ok(Box::new(QueuedMoments::<DoubleMoments>::new(self.measure)))
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        if is_exact(args.return_field.data_type()) {
            Ok(Box::new(GroupMoments::<ExactMoments>::new(self.exact_measure(&args)?)))
        } else {
            Ok(Box::new(GroupMoments::<DoubleMoments>::new(self.measure)))
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// The measure of dispersion to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct VarianceKind {
    /// Of a sample, rather than of the population.
    pub(super) is_sample: bool,
    /// The standard deviation, rather than the variance.
    is_root: bool,
}

impl VarianceKind {
    /// The measure of `count` doubles with the sum `squares` of the squared differences from their mean.
    pub(super) fn of_squares(self, count: u64, squares: f64) -> Option<f64> {
        let others = if self.is_sample { count.saturating_sub(1) } else { count };
        let variance = (others > 0).then(|| squares / others as f64);
        variance.map(|variance| if self.is_root { variance.sqrt() } else { variance })
    }
}

/// The digits after the point of the values and of the result.
#[derive(Debug, Clone, Copy)]
struct Scales {
    from: i8,
    to: i8,
}

/// A measure of exact numbers, and its type.
#[derive(Debug)]
struct ExactMeasure {
    kind: VarianceKind,
    scales: Scales,
    data_type: DataType,
}

#[derive(Debug, Clone, Copy, Default)]
struct ExactMoments {
    count: i64,
    sum: i128,
    squares: i256,
}

fn overflow_error() -> DataFusionError {
    DataFusionError::Execution(
        "numeric field overflow: a variance has too many digits; cast its argument to double precision".to_owned(),
    )
}

impl Moments for ExactMoments {
    type Measure = ExactMeasure;

    const CAN_REMOVE: bool = true;

    fn of_rows(values: &[ArrayRef]) -> Result<impl Iterator<Item = Result<Option<Self>>>> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        let moments = |value: i128| -> Result<Self> {
            let square = i256::from_i128(value).checked_mul(i256::from_i128(value)).ok_or_else(overflow_error)?;
            Ok(Self { count: 1, sum: value, squares: square })
        };
        Ok(values.as_primitive::<Decimal128Type>().iter().map(move |value| value.map(moments).transpose()))
    }

    #[inline]
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.count += other.count;
        self.sum = self.sum.checked_add(other.sum).ok_or_else(overflow_error)?;
        self.squares = self.squares.checked_add(other.squares).ok_or_else(overflow_error)?;
        Ok(())
    }

    fn remove(&mut self, other: &Self) -> Result<()> {
        self.count -= other.count;
        self.sum = self.sum.checked_sub(other.sum).ok_or_else(overflow_error)?;
        self.squares = self.squares.checked_sub(other.squares).ok_or_else(overflow_error)?;
        Ok(())
    }

    fn read_states(states: &[ArrayRef]) -> Result<impl Iterator<Item = Self>> {
        let [counts, sums, squares] = states else { return exec_err!("a variance has three states") };
        let counts = counts.as_primitive::<Int64Type>();
        let (sums, squares) = (sums.as_primitive::<Decimal128Type>(), squares.as_primitive::<Decimal256Type>());
        Ok((0..counts.len()).map(move |row| Self {
            count: counts.value(row),
            sum: sums.value(row),
            squares: squares.value(row),
        }))
    }

    fn write_states(moments: &[Self]) -> Result<Vec<ArrayRef>> {
        let counts: Int64Array = moments.iter().map(|moments| Some(moments.count)).collect();
        let sums: Decimal128Array = moments.iter().map(|moments| Some(moments.sum)).collect();
        let squares: Decimal256Array = moments.iter().map(|moments| Some(moments.squares)).collect();
        let sums = sums.with_precision_and_scale(38, 0)?;
        Ok(vec![Arc::new(counts), Arc::new(sums), Arc::new(squares.with_precision_and_scale(76, 0)?)])
    }

    fn evaluate(moments: &[Self], measure: &ExactMeasure) -> Result<ArrayRef> {
        let answers = moments.iter().map(|moments| moments.compute(measure.kind, measure.scales));
        let answers: Decimal128Array = answers.collect::<Result<_>>()?;
        Ok(Arc::new(answers.with_data_type(measure.data_type.clone())))
    }
}

impl ExactMoments {
    /// Computes the measure; `None` if there are too few values.
    fn compute(&self, measure: VarianceKind, scales: Scales) -> Result<Option<i128>> {
        if self.count <= i64::from(measure.is_sample) {
            return Ok(None);
        }
        let count = i256::from(self.count);
        let sum = i256::from_i128(self.sum);
        let numerator = count
            .checked_mul(self.squares)
            .zip(sum.checked_mul(sum))
            .and_then(|(left, right)| left.checked_sub(right))
            .ok_or_else(overflow_error)?;
        let others = if measure.is_sample { count - i256::ONE } else { count };
        let denominator = count.checked_mul(others).ok_or_else(overflow_error)?;
        let (from, to) = (i32::from(scales.from), i32::from(scales.to));
        let answer = if measure.is_root {
            root(numerator, denominator, 2 * (to - from))?
        } else {
            quotient(numerator, denominator, to - 2 * from)?
        };
        let answer = answer.to_i128().filter(|answer| answer.unsigned_abs() < 10_u128.pow(38));
        answer.map(Some).ok_or_else(overflow_error)
    }
}

fn power_of_ten(exponent: i32) -> Result<i256> {
    i256::from_i128(10).checked_pow(u32::try_from(exponent).unwrap_or(0)).ok_or_else(overflow_error)
}

/// Computes `numerator / denominator * 10^exponent`, rounded. Both are positive.
fn quotient(numerator: i256, denominator: i256, exponent: i32) -> Result<i256> {
    let (numerator, denominator) = if exponent >= 0 {
        (numerator.checked_mul(power_of_ten(exponent)?), Some(denominator))
    } else {
        (Some(numerator), denominator.checked_mul(power_of_ten(-exponent)?))
    };
    let (numerator, denominator) = numerator.zip(denominator).ok_or_else(overflow_error)?;
    let (whole, rest) = (numerator / denominator, numerator % denominator);
    Ok(if rest >= denominator - rest { whole + i256::ONE } else { whole })
}

/// Computes the square root of `numerator / denominator * 10^exponent`, rounded. The exponent is even.
fn root(numerator: i256, denominator: i256, exponent: i32) -> Result<i256> {
    // Computes as many digits as the type has room for; the others are zero.
    let mut positions = exponent;
    loop {
        match quotient(numerator, denominator, positions) {
            Ok(square) => {
                let unit = power_of_ten((exponent - positions) / 2)?;
                return rounded_root(square).checked_mul(unit).ok_or_else(overflow_error);
            }
            Err(error) if positions <= 0 => return Err(error),
            Err(_) => positions -= 2,
        }
    }
}

fn rounded_root(square: i256) -> i256 {
    if square <= i256::ONE {
        return square;
    }
    let two = i256::ONE + i256::ONE;
    let bits = 256 - square.leading_zeros();
    let mut root = i256::ONE << u8::try_from(bits.div_ceil(2)).unwrap_or(u8::MAX);
    loop {
        let next = (root + square / root) / two;
        if next >= root {
            break;
        }
        root = next;
    }
    if square - root * root > root { root + i256::ONE } else { root }
}

/// Count, sum, and sum of the squared differences from the mean: NaN beside a value that is not finite, infinite where
/// finite values have overflowed. Computed as in PostgreSQL (by Youngs and Cramer), without a rounded mean.
#[derive(Debug, Clone, Copy, Default)]
struct DoubleMoments {
    count: u64,
    sum: f64,
    squares: f64,
}

impl DoubleMoments {
    fn from_value(value: f64) -> Self {
        // An infinity has no difference from itself, not even if it is alone.
        Self { count: 1, sum: value, squares: if value.is_finite() { 0.0 } else { f64::NAN } }
    }

    fn with(self, other: Self) -> Self {
        let (own, others) = (self.count as f64, other.count as f64);
        let count = own + others;
        let sum = self.sum + other.sum;
        let added = match (self.count, other.count) {
            (0, _) => return other,
            (_, 0) => return self,
            (_, 1) => (other.sum * count - sum).powi(2) / (count * own),
            (1, _) => (self.sum * count - sum).powi(2) / (count * others),
            _ => own * others * (self.sum / own - other.sum / others).powi(2) / count,
        };
        let mut squares = self.squares + other.squares;
        if !squares.is_nan() {
            squares += added;
            if !sum.is_finite() || !squares.is_finite() {
                squares = f64::INFINITY;
            }
        }
        Self { count: self.count + other.count, sum, squares }
    }

    fn measure(self, kind: VarianceKind) -> Result<Option<f64>> {
        if self.squares.is_infinite() {
            return exec_err!("value out of range: overflow");
        }
        Ok(kind.of_squares(self.count, self.squares))
    }
}

impl Moments for DoubleMoments {
    type Measure = VarianceKind;

    fn of_rows(values: &[ArrayRef]) -> Result<impl Iterator<Item = Result<Option<Self>>>> {
        let [values] = values else { return exec_err!("a variance has one argument") };
        Ok(values.as_primitive::<Float64Type>().iter().map(|value| Ok(value.map(Self::from_value))))
    }

    #[inline]
    fn merge(&mut self, other: &Self) -> Result<()> {
        *self = self.with(*other);
        Ok(())
    }

    fn read_states(states: &[ArrayRef]) -> Result<impl Iterator<Item = Self>> {
        let [counts, sums, squares] = states else { return exec_err!("a variance has three states") };
        let counts = counts.as_primitive::<UInt64Type>();
        let (sums, squares) = (sums.as_primitive::<Float64Type>(), squares.as_primitive::<Float64Type>());
        let rows = counts.values().iter().zip(sums.values()).zip(squares.values());
        Ok(rows.map(|((count, sum), squares)| Self { count: *count, sum: *sum, squares: *squares }))
    }

    fn write_states(moments: &[Self]) -> Result<Vec<ArrayRef>> {
        let counts: UInt64Array = moments.iter().map(|moments| Some(moments.count)).collect();
        let sums: Float64Array = moments.iter().map(|moments| Some(moments.sum)).collect();
        let squares: Float64Array = moments.iter().map(|moments| Some(moments.squares)).collect();
        Ok(vec![Arc::new(counts), Arc::new(sums), Arc::new(squares)])
    }

    fn evaluate(moments: &[Self], kind: &VarianceKind) -> Result<ArrayRef> {
        let measures = moments.iter().map(|moments| moments.measure(*kind));
        Ok(Arc::new(measures.collect::<Result<Float64Array>>()?))
    }
}
