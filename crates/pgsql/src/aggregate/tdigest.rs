//! Approximate percentiles by [t-digests](https://arxiv.org/abs/1902.04023), and the digests themselves as values.
//!
//! Digests of parts can be merged, so that a part need not send its values: `tdigest(x)` is computed where the values are,
//! and [`merged_percentile`] where the digests arrive. DataFusion's accumulators compute both. Its
//! `approx_percentile_cont` and `approx_percentile_cont_with_weight` get a limit for the centroids.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::types::{NativeType, logical_float64, logical_int64};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::approx_percentile_cont::approx_percentile_cont_udaf;
use datafusion::functions_aggregate::approx_percentile_cont_with_weight::approx_percentile_cont_with_weight_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Coercion, Signature, TypeSignature, TypeSignatureClass, Volatility,
};
use datafusion_functions_aggregate_common::tdigest::{Centroid, TDigest};

use super::ordered::constant_value;

/// The centroids of a digest if a statement names no number, as in DataFusion.
const DEFAULT_CENTROIDS: usize = 100;

/// The maximum number of centroids. Memory for all of them is reserved with each batch.
const CENTROIDS_MAX: usize = 10_000;

pub(super) fn functions() -> Vec<AggregateUDF> {
    [function()].into_iter().chain(percentile_functions()).collect()
}

/// The type of a digest as a value: the maximum number of centroids, the sum, the number, the greatest and the smallest of
/// the values, and then the mean and the weight of each centroid. Without values it is NULL.
fn digest_type() -> DataType {
    DataType::new_list(DataType::Float64, true)
}

fn to_value(digest: &TDigest) -> Result<ScalarValue> {
    if digest.count() == 0.0 {
        return ScalarValue::try_from(digest_type());
    }
    let head = [digest.max_size() as f64, digest.sum(), digest.count(), digest.max(), digest.min()];
    let centroids = digest.centroids().iter().flat_map(|centroid| [centroid.mean(), centroid.weight()]);
    let numbers: Vec<ScalarValue> = head.into_iter().chain(centroids).map(ScalarValue::from).collect();
    Ok(ScalarValue::List(ScalarValue::new_list_nullable(&numbers, &DataType::Float64)))
}

/// The digests of `column`, without NULL.
fn read_digests(column: &ArrayRef) -> Result<Vec<TDigest>> {
    let Some(lists) = column.as_list_opt::<i32>() else {
        return exec_err!("a digest is a list of numbers, not {}", column.data_type());
    };
    let digests = lists.iter().flatten().map(|numbers| match numbers.as_primitive_opt::<Float64Type>() {
        Some(numbers) => read_digest(numbers),
        None => exec_err!("a digest is a list of numbers, not of {}", numbers.data_type()),
    });
    digests.collect()
}

fn read_digest(numbers: &Float64Array) -> Result<TDigest> {
    let values = numbers.values().as_ref();
    let Some(([max_size, sum, count, max, min], centroids)) = values.split_first_chunk() else {
        return exec_err!("a digest has at least five numbers, not {}", values.len());
    };
    let (pairs, []) = centroids.as_chunks::<2>() else {
        return exec_err!("the centroids of a digest are pairs of numbers");
    };
    // Weights are whole numbers, so that their sum is exact.
    let weight: f64 = pairs.iter().map(|[_, weight]| weight).sum();
    let is_sized = (1.0..=CENTROIDS_MAX as f64).contains(max_size) && (1.0..f64::INFINITY).contains(count);
    if numbers.null_count() > 0 || !is_sized || *count != weight {
        return exec_err!("a digest of {max_size} centroids and {count} values is not valid");
    }
    let centroids = pairs.iter().map(|[mean, weight]| Centroid::new(*mean, *weight)).collect();
    TDigest::try_from_parts(*max_size as usize, *sum, *count, *max, *min, centroids)
}

/// The number of centroids in the argument at `position`, if there is one.
fn read_centroids(args: &AccumulatorArgs, position: usize, name: &str) -> Result<usize> {
    let Some(argument) = args.exprs.get(position) else { return Ok(DEFAULT_CENTROIDS) };
    let number = match constant_value(argument, args)?.map(|value| value.cast_to(&DataType::Int64)).transpose()? {
        Some(ScalarValue::Int64(Some(number))) => usize::try_from(number).unwrap_or_default(),
        _ => 0,
    };
    match number {
        1..=CENTROIDS_MAX => Ok(number),
        _ => exec_err!("the number of centroids of {name} must be a constant between 1 and {CENTROIDS_MAX}"),
    }
}

/// Adds `digests` to `digest`, whose number of centroids remains.
fn merge(digest: &mut TDigest, digests: &[TDigest]) {
    if digests.is_empty() {
        return;
    }
    let own = TDigest::new(digest.max_size());
    *digest = TDigest::merge_digests([&own, digest].into_iter().chain(digests));
}

const NAME: &str = "tdigest";

/// The name of `tdigest` as a part of an approximate percentile. No statement can contain it.
pub const PART_DIGEST: &str = "tdigest*";

fn function() -> AggregateUDF {
    AggregateUDF::new_from_impl(DigestFunction { name: NAME, signature: signature() })
}

/// `tdigest` under the name [`PART_DIGEST`].
pub fn part_digest() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::new_from_impl(DigestFunction { name: PART_DIGEST, signature: signature() }))
}

fn signature() -> Signature {
    let number = || vec![TypeSignatureClass::Numeric];
    let value = Coercion::new_implicit(TypeSignatureClass::Native(logical_float64()), number(), NativeType::Float64);
    let centroids = Coercion::new_implicit(TypeSignatureClass::Native(logical_int64()), number(), NativeType::Int64);
    let forms = vec![TypeSignature::Coercible(vec![value.clone()]), TypeSignature::Coercible(vec![value, centroids])];
    Signature::one_of(forms, Volatility::Immutable)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DigestFunction {
    name: &'static str,
    signature: Signature,
}

impl AggregateUDFImpl for DigestFunction {
    crate::name_and_signature!(.name);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(digest_type())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, NAME), digest_type(), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return exec_err!("tdigest(DISTINCT …) is not supported; select the distinct values in a subquery");
        }
        Ok(Box::new(DigestAccumulator(TDigest::new(read_centroids(&args, 1, NAME)?))))
    }
}

#[derive(Debug)]
struct DigestAccumulator(TDigest);

impl Accumulator for DigestAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let numbers = cast(&values[0], &DataType::Float64)?;
        let numbers = numbers.as_primitive::<Float64Type>().iter().flatten().collect();
        self.0 = self.0.merge_unsorted_f64(numbers);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        merge(&mut self.0, &read_digests(&states[0])?);
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![to_value(&self.0)?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        to_value(&self.0)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}

fn percentile_functions() -> [AggregateUDF; 2] {
    let bounded =
        |inner: Arc<AggregateUDF>, centroids| AggregateUDF::new_from_impl(BoundedPercentile { inner, centroids });
    [bounded(approx_percentile_cont_udaf(), 2), bounded(approx_percentile_cont_with_weight_udaf(), 3)]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BoundedPercentile {
    inner: Arc<AggregateUDF>,
    /// The position of the argument with the number of centroids.
    centroids: usize,
}

impl AggregateUDFImpl for BoundedPercentile {
    crate::delegate_to! { inner =>
        fn name(&self) -> &str;
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>>;
        fn supports_within_group_clause(&self) -> bool;
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        read_centroids(&args, self.centroids, self.name())?;
        self.inner.accumulator(args)
    }
}

/// The function over digests that computes the percentile `fraction`, from 0 to 1, of all their values, as a value of
/// `result`, which is a float. Without values it is NULL.
pub fn merged_percentile(fraction: f64, result: DataType) -> Arc<AggregateUDF> {
    let signature = Signature::exact(vec![digest_type()], Volatility::Immutable);
    let function = MergedPercentile { fraction_bits: fraction.to_bits(), result, signature };
    Arc::new(AggregateUDF::new_from_impl(function))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MergedPercentile {
    /// Of a float, which has no hash.
    fraction_bits: u64,
    result: DataType,
    signature: Signature,
}

impl AggregateUDFImpl for MergedPercentile {
    crate::name_and_signature!("merged_percentile");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "digest"), digest_type(), true))])
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let fraction = f64::from_bits(self.fraction_bits);
        Ok(Box::new(MergedAccumulator { digest: None, fraction, result: self.result.clone() }))
    }
}

#[derive(Debug)]
struct MergedAccumulator {
    /// With as many centroids as the first one that was added.
    digest: Option<TDigest>,
    fraction: f64,
    result: DataType,
}

impl Accumulator for MergedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let digests = read_digests(&values[0])?;
        let Some(first) = digests.first() else { return Ok(()) };
        merge(self.digest.get_or_insert_with(|| TDigest::new(first.max_size())), &digests);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let empty = TDigest::new(DEFAULT_CENTROIDS);
        Ok(vec![to_value(self.digest.as_ref().unwrap_or(&empty))?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match &self.digest {
            Some(digest) => ScalarValue::from(digest.estimate_quantile(self.fraction)).cast_to(&self.result),
            None => ScalarValue::try_from(&self.result),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.digest.as_ref().map_or(0, TDigest::size)
    }
}
