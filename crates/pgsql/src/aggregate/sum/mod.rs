//! `sum`: a `bigint` for `smallint` and `integer`, a numeric for `bigint`; it never wraps around.
//!
//! Values are not cast before they are added: a cast would cost more than the sum.

mod groups;
mod plain;
mod sliding;
mod total;

use std::sync::Arc;

use arrow::datatypes::{
    DataType, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Field, FieldRef, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use self::groups::GroupTotals;
use self::plain::{DistinctTotal, PlainTotal};
use self::sliding::{QueuedTotal, RetractingTotal};
use self::total::{Summand, Total, TotalPrimitive, TotalType};
use super::argument_advice;
use crate::data_type::postgres_type_name;

/// How many more digits the sum of numerics has than its values.
const EXTRA_DIGITS: u8 = 10;
/// The largest precision whose values can be added for all rows of a batch without a check.
const NARROW_PRECISION: u8 = 28;

pub(super) fn function() -> AggregateUDF {
    AggregateUDF::new_from_impl(Sum { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    signature: Signature,
}

/// Code that is generic over the type of the values and the type of the totals.
trait SumTypeVisitor {
    type Output;
    fn visit<V: Summand<T>, T: TotalPrimitive>(self, total: TotalType) -> Result<Self::Output>;
}

fn dispatch_sum_types<F: SumTypeVisitor>(value: &DataType, result: &DataType, visitor: F) -> Result<F::Output> {
    let total = |data_type: &DataType, is_narrow: bool| TotalType {
        data_type: data_type.clone(),
        result: result.clone(),
        is_narrow,
    };
    let (whole, wide) = (total(result, true), total(result, false));
    match value {
        DataType::Int8 => visitor.visit::<Int8Type, Int64Type>(whole),
        DataType::Int16 => visitor.visit::<Int16Type, Int64Type>(whole),
        DataType::Int32 => visitor.visit::<Int32Type, Int64Type>(whole),
        DataType::UInt8 => visitor.visit::<UInt8Type, Int64Type>(whole),
        DataType::UInt16 => visitor.visit::<UInt16Type, Int64Type>(whole),
        DataType::UInt32 => visitor.visit::<UInt32Type, Int64Type>(whole),
        DataType::Int64 => visitor.visit::<Int64Type, Decimal128Type>(whole),
        DataType::UInt64 => visitor.visit::<UInt64Type, Decimal128Type>(whole),
        DataType::Decimal128(precision, _) => {
            visitor.visit::<Decimal128Type, Decimal128Type>(total(result, *precision <= NARROW_PRECISION))
        }
        DataType::Float32 => visitor.visit::<Float32Type, Float64Type>(total(&DataType::Float64, true)),
        DataType::Float64 => visitor.visit::<Float64Type, Float64Type>(whole),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            visitor.visit::<IntervalMonthDayNanoType, IntervalMonthDayNanoType>(wide)
        }
        DataType::Duration(TimeUnit::Second) => visitor.visit::<DurationSecondType, DurationSecondType>(wide),
        DataType::Duration(TimeUnit::Millisecond) => {
            visitor.visit::<DurationMillisecondType, DurationMillisecondType>(wide)
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            visitor.visit::<DurationMicrosecondType, DurationMicrosecondType>(wide)
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            visitor.visit::<DurationNanosecondType, DurationNanosecondType>(wide)
        }
        other => not_impl_err!("sum of {other}"),
    }
}

/// Returns the type that totals have during the addition.
fn total_type(result: &DataType) -> DataType {
    match result {
        DataType::Float32 => DataType::Float64,
        other => other.clone(),
    }
}

/// Creates an accumulator of one group.
enum MakeAccumulator {
    Plain,
    /// Of distinct values of this type.
    Distinct(DataType),
    Sliding,
}

impl SumTypeVisitor for MakeAccumulator {
    type Output = Box<dyn Accumulator>;

    fn visit<V: Summand<T>, T: TotalPrimitive>(self, total: TotalType) -> Result<Self::Output> {
        Ok(match self {
            Self::Plain => Box::new(PlainTotal::<V, T>::new(total)),
            Self::Distinct(value) => Box::new(DistinctTotal::<V, T>::new(value, total)),
            Self::Sliding if T::Native::IS_EXACT => Box::new(RetractingTotal::<V, T>::new(total)),
            Self::Sliding => Box::new(QueuedTotal::<V, T>::new(total)),
        })
    }
}

struct MakeGroups;

impl SumTypeVisitor for MakeGroups {
    type Output = Box<dyn GroupsAccumulator>;

    fn visit<V: Summand<T>, T: TotalPrimitive>(self, total: TotalType) -> Result<Self::Output> {
        Ok(Box::new(GroupTotals::<V, T>::new(total)))
    }
}

impl AggregateUDFImpl for Sum {
    crate::name_and_signature!("sum");

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [value] = types else { return plan_err!("sum has one argument: sum(x)") };
        Ok(vec![match value {
            DataType::Dictionary(_, value) => return self.coerce_types(&[value.as_ref().clone()]),
            DataType::Float16 => DataType::Float32,
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                DataType::Decimal128(*precision, *scale)
            }
            DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
            DataType::Decimal128(..) | DataType::Float32 | DataType::Float64 | DataType::Duration(_) => value.clone(),
            whole if whole.is_integer() => whole.clone(),
            // PostgreSQL refuses this too. A NULL that the planner created, such as in a CASE, has no other type.
            DataType::Null => DataType::Float64,
            other => {
                // An average is planned as a sum and a count.
                let (name, advice) = (postgres_type_name(other), argument_advice(other));
                return plan_err!("functions sum({name}) and avg({name}) do not exist; {advice}");
            }
        }])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [value] = types else { return plan_err!("sum has one argument: sum(x)") };
        Ok(match value {
            DataType::Int64 => DataType::Decimal128(19 + EXTRA_DIGITS, 0),
            DataType::UInt64 => DataType::Decimal128(20 + EXTRA_DIGITS, 0),
            whole if whole.is_integer() => DataType::Int64,
            DataType::Decimal128(precision, scale) => DataType::Decimal128(38.min(precision + EXTRA_DIGITS), *scale),
            other => other.clone(),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            let value = args.input_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
            let values = Field::new_list_field(value, true);
            return Ok(vec![Arc::new(Field::new_list(format_state_name(args.name, "sum distinct"), values, false))]);
        }
        let total = total_type(args.return_type());
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "sum"), total, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let value = value_type(&args)?;
        let visitor = if args.is_distinct { MakeAccumulator::Distinct(value.clone()) } else { MakeAccumulator::Plain };
        dispatch_sum_types(&value, args.return_field.data_type(), visitor)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        dispatch_sum_types(&value_type(&args)?, args.return_field.data_type(), MakeAccumulator::Sliding)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        dispatch_sum_types(&value_type(&args)?, args.return_field.data_type(), MakeGroups)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn value_type(args: &AccumulatorArgs) -> Result<DataType> {
    match args.expr_fields {
        [value] => Ok(value.data_type().clone()),
        _ => plan_err!("sum has one argument: sum(x)"),
    }
}
