//! Variance and standard deviation: an exact numeric for integers and numerics, a double for floating-point numbers.

mod doubles;
mod moments;

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use self::doubles::DoubleMoments;
use self::moments::{ExactMeasure, ExactMoments, Scales};
use super::argument_advice;
use super::moments::{GroupMoments, QueuedMoments, RowMoments};
use crate::data_type::postgres_type_name;
use crate::number::numeric_with_free_scale;

pub(super) use self::moments::VarianceKind;

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
