use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Int16Array, Int32Array, Int64Array,
    RecordBatch, TimestampMillisecondArray, TimestampSecondArray, UInt32Array,
};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{cast, col};
use datafusion::physical_expr::create_physical_expr;
use proptest::prelude::*;

use super::*;

const OPERATORS: [Operator; 8] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::IsDistinctFrom,
    Operator::IsNotDistinctFrom,
];
const NANOSECONDS: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);
const MICROSECONDS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
/// The days of which nanoseconds have all moments.
const DAYS: Range<i32> = -106_000..106_000;

/// Comparisons of the column `x`, cast to `data_type`, with `constants`.
fn comparisons(data_type: &DataType, constants: &[ScalarValue]) -> Vec<Expr> {
    let compared = || cast(col("x"), data_type.clone());
    let mut conditions = Vec::new();
    for constant in constants {
        for op in OPERATORS {
            conditions.push(binary_expr(compared(), op, lit(constant.clone())));
            conditions.push(binary_expr(lit(constant.clone()), op, compared()));
        }
    }
    let (first, last) = (lit(constants[0].clone()), lit(constants[constants.len() - 1].clone()));
    for negated in [false, true] {
        let (low, high) = (Box::new(first.clone()), Box::new(last.clone()));
        conditions.push(Expr::Between(Between { expr: Box::new(compared()), negated, low, high }));
        let list: Vec<Expr> = constants.iter().cloned().map(lit).collect();
        let unknown = lit(ScalarValue::try_from(data_type).unwrap());
        conditions.push(compared().in_list(list.clone(), negated));
        conditions.push(compared().in_list([list, vec![unknown]].concat(), negated));
    }
    conditions
}

fn schema(data_type: &DataType, is_nullable: bool) -> DFSchema {
    let field = arrow::datatypes::Field::new("x", data_type.clone(), is_nullable);
    DFSchema::try_from(arrow::datatypes::Schema::new(vec![field])).unwrap()
}

/// Rewrites `condition` over a column `x` of this type.
fn rewrite(condition: &Expr, data_type: &DataType, is_nullable: bool) -> Transformed<Expr> {
    let (schema, context) = (schema(data_type, is_nullable), SimplifyContext::default());
    let rewriter = ComparisonRewriter { schema: &schema, context: &context };
    condition.clone().transform_up(|part| Ok(rewriter.rewrite(part))).unwrap()
}

/// The answers of `condition` for the values `x`.
fn answers(condition: &Expr, x: &ArrayRef) -> Result<BooleanArray> {
    let batch = RecordBatch::try_from_iter_with_nullable([("x", x.clone(), true)])?;
    let columns = schema(x.data_type(), true);
    let physical =
        create_physical_expr(condition, &columns, &ExecutionProps::new(), &PhysicalPlanningContext::default())?;
    Ok(physical.evaluate(&batch)?.into_array(batch.num_rows())?.as_boolean().clone())
}

/// Checks that comparisons have the same answers with and without the cast. Returns the number of those without.
fn check(x: &ArrayRef, data_type: &DataType, constants: &[ScalarValue]) -> Result<usize, TestCaseError> {
    let mut count = 0;
    for condition in comparisons(data_type, constants) {
        let rewritten = rewrite(&condition, x.data_type(), true);
        count += usize::from(rewritten.transformed);
        let expected = answers(&condition, x).unwrap();
        let found = answers(&rewritten.data, x).unwrap();
        prop_assert_eq!(found, expected, "{} as {} for {:?}", condition, rewritten.data, x);
    }
    Ok(count)
}

fn values<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<Option<T>>> {
    prop::collection::vec(prop::option::of(value), 1..12)
}

fn doubles() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        (-200_i32..200).prop_map(|quarters| f64::from(quarters) / 4.0),
        prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e300, -1e300]),
        prop::sample::select(vec![
            2_147_483_647.0,
            2_147_483_647.5,
            -2_147_483_648.0,
            -2_147_483_648.5,
            4_294_967_295.5
        ]),
        prop::sample::select(vec![9_007_199_254_740_991.0, 9_007_199_254_740_992.0, -9_007_199_254_740_993.0]),
        prop::sample::select(vec![9_223_372_036_854_775_808.0, -9_223_372_036_854_775_808.0]),
    ]
}

fn int4() -> impl Strategy<Value = i32> {
    prop_oneof![any::<i32>(), -60_i32..60, prop::sample::select(vec![i32::MIN, i32::MIN + 1, i32::MAX - 1, i32::MAX])]
}

fn int8() -> impl Strategy<Value = i64> {
    let near_double = (1_i64 << 53) - 3..(1_i64 << 53) + 3;
    prop_oneof![any::<i64>(), -60_i64..60, near_double, prop::sample::select(vec![i64::MIN, i64::MAX])]
}

/// Moments around midnight.
fn moments(day: i64) -> impl Strategy<Value = i64> {
    let days = i64::from(DAYS.start)..i64::from(DAYS.end);
    (days, prop_oneof![Just(0_i64), -2_i64..3, -day..day]).prop_map(move |(days, rest)| days * day + rest)
}

proptest! {
    #[test]
    fn integers_beside_doubles(
        (small, large) in (values(int4()), values(int8())),
        constants in prop::collection::vec(doubles(), 1..4),
    ) {
        let doubles: Vec<ScalarValue> = constants.iter().map(|value| ScalarValue::Float64(Some(*value))).collect();
        #[allow(clippy::cast_possible_truncation, reason = "any real is a constant")]
        let reals: Vec<ScalarValue> = constants.iter().map(|value| ScalarValue::Float32(Some(*value as f32))).collect();
        let unsigned = UInt32Array::from_iter(small.iter().map(|value| value.map(i32::cast_unsigned)));
        let short = Int16Array::from_iter(small.iter().map(|value| value.and_then(|value| i16::try_from(value).ok())));
        let columns: [ArrayRef; 4] =
            [Arc::new(Int32Array::from(small)), Arc::new(Int64Array::from(large)), Arc::new(unsigned), Arc::new(short)];
        for column in &columns {
            check(column, &DataType::Float64, &doubles)?;
            check(column, &DataType::Float32, &reals)?;
        }
    }

    #[test]
    fn integers_beside_numerics_and_wider_integers(
        (small, large) in (values(int4()), values(int8())),
        constants in prop::collection::vec(prop_oneof![int8(), -6_000_i64..6_000], 1..4),
    ) {
        let numeric = |precision| constants.iter().map(move |value| {
            ScalarValue::Decimal128(Some(i128::from(*value) % 10_i128.pow(12)), precision, 2)
        }).collect::<Vec<_>>();
        let integers: Vec<ScalarValue> = constants.iter().map(|value| ScalarValue::Int64(Some(*value))).collect();
        let small: ArrayRef = Arc::new(Int32Array::from(small));
        let large: ArrayRef = Arc::new(Int64Array::from(large));
        prop_assert!(check(&small, &DataType::Decimal128(12, 2), &numeric(12))? > 0);
        prop_assert!(check(&large, &DataType::Decimal128(21, 2), &numeric(21))? > 0);
        prop_assert!(check(&small, &DataType::Int64, &integers)? > 0);
    }

    #[test]
    fn numerics_beside_numerics_of_another_scale(
        column in values(prop_oneof![-999_999_i128..1_000_000, -50_i128..50, Just(999_999), Just(-999_999)]),
        constants in prop::collection::vec(prop_oneof![-1_100_000_000_i128..1_100_000_000, -5_000_i128..5_000], 1..4),
    ) {
        let column: ArrayRef = Arc::new(Decimal128Array::from(column).with_precision_and_scale(6, 2).unwrap());
        let constants: Vec<ScalarValue> =
            constants.iter().map(|value| ScalarValue::Decimal128(Some(*value), 10, 5)).collect();
        check(&column, &DataType::Decimal128(10, 5), &constants)?;
    }

    #[test]
    fn dates_beside_timestamps(
        column in values(DAYS),
        constants in prop::collection::vec(moments(86_400_000_000), 1..4),
    ) {
        let column: ArrayRef = Arc::new(Date32Array::from(column));
        let micros: Vec<ScalarValue> =
            constants.iter().map(|value| ScalarValue::TimestampMicrosecond(Some(*value), None)).collect();
        let nanos = constants.iter().map(|value| Some(value * 1_000 + value % 2));
        let nanos: Vec<ScalarValue> = nanos.map(|value| ScalarValue::TimestampNanosecond(value, None)).collect();
        prop_assert!(check(&column, &MICROSECONDS, &micros)? > 0);
        prop_assert!(check(&column, &NANOSECONDS, &nanos)? > 0);
    }

    #[test]
    fn timestamps_beside_those_of_a_finer_unit(
        seconds in values(moments(86_400)),
        constants in prop::collection::vec(moments(86_400_000_000), 1..4),
    ) {
        let millis = seconds.iter().map(|value| value.map(|value| value * 1_000 + value % 3));
        let millis = TimestampMillisecondArray::from_iter(millis);
        let columns: [ArrayRef; 3] = [
            Arc::new(millis.clone().with_timezone("+02:00")),
            Arc::new(millis),
            Arc::new(TimestampSecondArray::from(seconds)),
        ];
        let constants: Vec<ScalarValue> =
            constants.iter().map(|value| ScalarValue::TimestampMicrosecond(Some(*value), None)).collect();
        for column in &columns {
            prop_assert!(check(column, &MICROSECONDS, &constants)? > 0);
        }
    }

    /// Also beyond the years that a timestamp has, where the cast fails.
    #[test]
    fn all_dates_are_compared(
        days in values(any::<i32>()),
        micros in prop_oneof![any::<i64>(), moments(86_400_000_000)],
    ) {
        let constant = ScalarValue::TimestampMicrosecond(Some(micros), None);
        let x: ArrayRef = Arc::new(Date32Array::from(days.clone()));
        for op in [Operator::Lt, Operator::Eq, Operator::GtEq] {
            let condition = binary_expr(cast(col("x"), NANOSECONDS), op, cast(lit(constant.clone()), NANOSECONDS));
            let rewritten = rewrite(&condition, &DataType::Date32, true);
            let expected = days.iter().map(|day| {
                let order = day.map(|day| (i128::from(day) * 86_400_000_000).cmp(&i128::from(micros)))?;
                Some(match op {
                    Operator::Lt => order.is_lt(),
                    Operator::Eq => order.is_eq(),
                    _ => order.is_ge(),
                })
            });
            let expected = BooleanArray::from_iter(expected);
            prop_assert_eq!(answers(&rewritten.data, &x).unwrap(), expected, "{}", rewritten.data);
        }
    }
}

fn day(text: &str) -> Expr {
    lit(ScalarValue::Utf8(Some(text.to_owned())).cast_to(&DataType::Date32).unwrap())
}

fn moment(text: &str) -> Expr {
    lit(ScalarValue::Utf8(Some(text.to_owned())).cast_to(&MICROSECONDS).unwrap())
}

#[test]
fn a_constant_gets_the_type_of_its_column() {
    let date = || cast(col("x"), NANOSECONDS);
    let midnight = || cast(moment("1994-01-01"), NANOSECONDS);
    let noon = || cast(moment("1994-01-01 12:00:00"), NANOSECONDS);
    let unknown = lit(ScalarValue::Boolean(None));
    for (condition, expected) in [
        (date().lt(midnight()), col("x").lt(day("1994-01-01"))),
        (midnight().lt(date()), col("x").gt(day("1994-01-01"))),
        (date().lt(noon()), col("x").lt_eq(day("1994-01-01"))),
        (date().gt_eq(noon()), col("x").gt(day("1994-01-01"))),
        (date().eq(noon()), col("x").is_null().and(unknown.clone())),
        (date().not_eq(noon()), col("x").is_not_null().or(unknown)),
        (binary_expr(date(), Operator::IsDistinctFrom, noon()), lit(true)),
        (date().in_list(vec![noon(), midnight()], false), col("x").in_list(vec![day("1994-01-01")], false)),
        (date().between(midnight(), col("y")), col("x").gt_eq(day("1994-01-01")).and(date().lt_eq(col("y")))),
        // Nanoseconds do not reach it.
        (date().lt(cast(moment("2500-01-01"), NANOSECONDS)), col("x").lt(day("2500-01-01"))),
    ] {
        assert_eq!(rewrite(&condition, &DataType::Date32, true).data, expected, "{condition}");
    }
    let never = rewrite(&date().eq(noon()), &DataType::Date32, false).data;
    assert_eq!(never, lit(false), "a column without nulls");
}

#[test]
fn expressions_that_may_fail_are_computed() {
    let short = || cast(cast(col("x"), DataType::Int16), DataType::Float64);
    for condition in [
        short().eq(lit(1.5)),
        short().lt(lit(1e9)),
        short().in_list(vec![lit(1.5)], true),
        binary_expr(short(), Operator::IsDistinctFrom, lit(1.5)),
    ] {
        assert!(!rewrite(&condition, &DataType::Int32, false).transformed, "{condition}");
    }
    assert!(!rewrite(&binary_expr(short(), Operator::IsNotDistinctFrom, lit(1.5)), &DataType::Int32, true).transformed);
    assert!(rewrite(&short().lt(lit(1.5)), &DataType::Int32, false).transformed);
    let [seconds, milliseconds] = [TimeUnit::Second, TimeUnit::Millisecond].map(|unit| DataType::Timestamp(unit, None));
    let time = cast(cast(col("x"), milliseconds), MICROSECONDS);
    let finer = lit(ScalarValue::TimestampMicrosecond(Some(1), None));
    let differs = rewrite(&binary_expr(time, Operator::IsDistinctFrom, finer), &seconds, true);
    assert_eq!(differs.data, lit(true), "DataFusion's rule would cut off the digits of the constant");
}

#[test]
fn casts_that_join_values_stay() {
    let nulls = |data_type: &DataType| lit(ScalarValue::try_from(data_type).unwrap());
    let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("+02:00".into()));
    let zoned_midnight = ScalarValue::TimestampMicrosecond(Some(0), Some("+02:00".into()));
    for (column, data_type, constant) in [
        (MICROSECONDS, DataType::Date32, day("1994-01-01")),
        (NANOSECONDS, MICROSECONDS, moment("1994-01-01")),
        (DataType::Date32, zoned, lit(zoned_midnight)),
        (DataType::Int64, DataType::Float64, lit(9_007_199_254_740_992.0)),
        (DataType::Int32, DataType::Float64, lit(f64::NAN)),
        (DataType::Int32, DataType::Float64, lit(-0.0)),
        (DataType::Int64, DataType::Int32, lit(5_i32)),
        (DataType::Decimal128(10, 3), DataType::Decimal128(10, 2), lit(ScalarValue::Decimal128(Some(5), 10, 2))),
        (DataType::Int32, DataType::Decimal128(5, 2), lit(ScalarValue::Decimal128(Some(5), 5, 2))),
        (DataType::Utf8, DataType::Int32, lit(5_i32)),
        (DataType::Date32, NANOSECONDS, nulls(&NANOSECONDS)),
    ] {
        let condition = cast(col("x"), data_type).lt(constant);
        assert!(!rewrite(&condition, &column, true).transformed, "{condition} over {column}");
    }
}
