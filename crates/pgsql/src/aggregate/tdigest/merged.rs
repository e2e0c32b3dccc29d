//! A percentile of digests.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion_functions_aggregate_common::tdigest::TDigest;

use super::{DEFAULT_CENTROIDS, digest_type, merge, read_digests, to_value};

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
