//! Ordered-set aggregates: `percentile_cont`, `percentile_disc` and `mode`, each `WITHIN GROUP (ORDER BY x)`.
//!
//! Their arguments are the value, the fraction or fractions (not for `mode`), and whether the order is descending.

mod evaluation;
mod group_values;

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, IntervalMonthDayNano, IntervalUnit};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::planner::RawAggregateExpr;
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, GroupsAccumulator, Signature, Volatility, lit,
};
use datafusion::physical_plan::PhysicalExpr;

use self::evaluation::{Fractions, OrderedSetKind, OrderedSetSpec};
use self::group_values::{GroupValues, OrderedSetAccumulator};
use crate::data_type::postgres_type_name;

pub(super) fn functions() -> Vec<AggregateUDF> {
    let function = |kind, aliases: &[&str]| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        AggregateUDF::new_from_impl(OrderedSet { kind, aliases, signature })
    };
    vec![
        function(OrderedSetKind::Continuous, &["quantile_cont"]),
        function(OrderedSetKind::Discrete, &[]),
        function(OrderedSetKind::Mode, &[]),
    ]
}

/// Adds the sort direction to the arguments of the call.
pub(super) fn with_direction(mut call: RawAggregateExpr) -> Result<RawAggregateExpr> {
    if call.distinct {
        return plan_err!("cannot use DISTINCT with WITHIN GROUP; select the distinct values in a subquery");
    }
    let is_descending = call.order_by.first().is_some_and(|order| !order.asc);
    call.order_by.clear();
    call.args.push(lit(is_descending));
    Ok(call)
}

/// Returns the length of an interval as PostgreSQL compares it: months have 30 days, and days 24 hours.
pub(super) fn interval_length(interval: IntervalMonthDayNano) -> i128 {
    const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * NANOSECONDS_PER_DAY + i128::from(interval.nanoseconds)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OrderedSet {
    kind: OrderedSetKind,
    aliases: Vec<String>,
    signature: Signature,
}

impl OrderedSet {
    fn group_values(&self, args: &AccumulatorArgs) -> Result<GroupValues> {
        let [value, rest @ ..] = args.expr_fields else { return exec_err!("{} has no value", self.name()) };
        let constants: Vec<ScalarValue> =
            args.exprs.iter().skip(1).map(|expr| constant(expr, args, self.name())).collect::<Result<_>>()?;
        let is_descending = matches!(constants.last(), Some(ScalarValue::Boolean(Some(true))));
        let fractions = match (self.kind, constants.first()) {
            (OrderedSetKind::Mode, _) => Fractions::One(Some(0.0)),
            (_, Some(fractions)) if rest.len() > 1 => fractions_of(fractions)?,
            _ => return exec_err!("{} has no fraction", self.name()),
        };
        let result = args.return_field.data_type().clone();
        let answer = OrderedSetSpec { kind: self.kind, fractions, is_descending, result };
        Ok(GroupValues::new(value.data_type().clone(), answer))
    }

    fn value_type(&self, value: &DataType) -> Result<DataType> {
        Ok(match (self.kind, value) {
            (_, DataType::Interval(_)) => DataType::Interval(IntervalUnit::MonthDayNano),
            (_, DataType::Dictionary(_, value)) => value.as_ref().clone(),
            (OrderedSetKind::Continuous, number) if number.is_numeric() || number.is_null() => DataType::Float64,
            (OrderedSetKind::Continuous, other) => {
                let name = postgres_type_name(other);
                return plan_err!(
                    "function percentile_cont(double precision, {name}) does not exist; for values that are not \
                     numbers use percentile_disc"
                );
            }
            (_, DataType::Struct(_) | DataType::Map(..) | DataType::Union(..)) => {
                return plan_err!("{} cannot order values of type {}", self.name(), postgres_type_name(value));
            }
            (_, other) => other.clone(),
        })
    }
}

fn constant(expr: &Arc<dyn PhysicalExpr>, args: &AccumulatorArgs, name: &str) -> Result<ScalarValue> {
    match constant_value(expr, args)? {
        Some(value) => Ok(value),
        None => exec_err!("the fraction of {name} must be a constant, such as 0.5; it cannot depend on a column"),
    }
}

/// Returns the value of an argument that must be the same for all rows; `None` if it depends on a column.
pub(super) fn constant_value(expr: &Arc<dyn PhysicalExpr>, args: &AccumulatorArgs) -> Result<Option<ScalarValue>> {
    let nothing = RecordBatch::new_empty(Arc::new(args.schema.clone()));
    Ok(match expr.evaluate(&nothing)? {
        ColumnarValue::Scalar(value) => Some(value),
        ColumnarValue::Array(_) => None,
    })
}

fn fractions_of(value: &ScalarValue) -> Result<Fractions> {
    let check = |fraction: Option<f64>| match fraction {
        Some(fraction) if !(0.0..=1.0).contains(&fraction) => {
            exec_err!("percentile value {fraction} is not between 0 and 1")
        }
        fraction => Ok(fraction),
    };
    match value {
        ScalarValue::Float64(fraction) => Ok(Fractions::One(check(*fraction)?)),
        ScalarValue::List(list) if list.is_null(0) => Ok(Fractions::NullList),
        ScalarValue::List(list) => {
            let fractions = list.value(0);
            let fractions = fractions.as_primitive::<Float64Type>().iter().map(check);
            Ok(Fractions::List(fractions.collect::<Result<_>>()?))
        }
        other => exec_err!("{other} is not a fraction"),
    }
}

fn fraction_type(data_type: &DataType) -> Result<DataType> {
    match data_type {
        number if number.is_numeric() || number.is_null() => Ok(DataType::Float64),
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _)
            if element.data_type().is_numeric() || element.data_type().is_null() =>
        {
            Ok(DataType::new_list(DataType::Float64, true))
        }
        other => {
            plan_err!(
                "{} is not a fraction: write a number between 0 and 1, or an array of them",
                postgres_type_name(other)
            )
        }
    }
}

impl AggregateUDFImpl for OrderedSet {
    fn name(&self) -> &str {
        match self.kind {
            OrderedSetKind::Continuous => "percentile_cont",
            OrderedSetKind::Discrete => "percentile_disc",
            OrderedSetKind::Mode => "mode",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        match (self.kind, types) {
            (OrderedSetKind::Mode, [value, direction]) => Ok(vec![self.value_type(value)?, direction.clone()]),
            (OrderedSetKind::Mode, _) => plan_err!("mode is written mode() WITHIN GROUP (ORDER BY x)"),
            (_, [value, fraction, direction]) => {
                Ok(vec![self.value_type(value)?, fraction_type(fraction)?, direction.clone()])
            }
            _ => plan_err!("{name} is written {name}(0.5) WITHIN GROUP (ORDER BY x)"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value, DataType::List(_), _] => Ok(DataType::new_list(value.clone(), true)),
            [value, ..] => Ok(value.clone()),
            [] => plan_err!("{} is written WITHIN GROUP (ORDER BY x)", self.name()),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = args.input_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        let values = Field::new_list_field(value, true);
        Ok(vec![Arc::new(Field::new_list(format_state_name(args.name, "values"), values, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OrderedSetAccumulator(self.group_values(&args)?)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.group_values(&args)?))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}
