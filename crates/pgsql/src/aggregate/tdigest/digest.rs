//! `tdigest(x)` and `tdigest(x, centroids)`: the digest of the values.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::types::{NativeType, logical_float64, logical_int64};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Coercion, Signature, TypeSignature, TypeSignatureClass, Volatility,
};
use datafusion_functions_aggregate_common::tdigest::TDigest;

use super::{digest_type, merge, read_centroids, read_digests, to_value};

const NAME: &str = "tdigest";

/// The name of `tdigest` as a part of an approximate percentile. No statement can contain it.
pub const PART_DIGEST: &str = "tdigest*";

pub(super) fn function() -> AggregateUDF {
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
