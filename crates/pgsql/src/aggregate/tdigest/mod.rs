//! Approximate percentiles by [t-digests](https://arxiv.org/abs/1902.04023), and the digests themselves as values.
//!
//! Digests of parts can be merged, so that a part need not send its values: `tdigest(x)` is computed where the values are,
//! and [`merged_percentile`] where the digests arrive. DataFusion's accumulators compute both.

mod digest;
mod merged;
mod percentile;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::AggregateUDF;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion_functions_aggregate_common::tdigest::{Centroid, TDigest};

use super::ordered::constant_value;

pub use digest::{PART_DIGEST, part_digest};
pub use merged::merged_percentile;

/// The centroids of a digest if a statement names no number, as in DataFusion.
const DEFAULT_CENTROIDS: usize = 100;

/// The maximum number of centroids. Memory for all of them is reserved with each batch.
const CENTROIDS_MAX: usize = 10_000;

pub(super) fn functions() -> Vec<AggregateUDF> {
    [digest::function()].into_iter().chain(percentile::functions()).collect()
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
