//! Simple conditions of a statement on a live table: a table that can find rows by them need not produce all others.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// A condition on one column that all needed rows fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnCondition {
    /// The column.
    pub column: String,
    /// What its value must be.
    pub test: ColumnTest,
}

/// What the value of a column must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnTest {
    /// One of these values, as text.
    OneOf(Vec<String>),
    /// This time or a later one, in microseconds since 1970-01-01 UTC.
    AtLeast(i64),
    /// This time or an earlier one, in microseconds since 1970-01-01 UTC.
    AtMost(i64),
}

/// The conditions among `filters` that are simple enough. Rows must still be checked.
pub(super) fn simple_conditions(filters: &[Expr]) -> Vec<ColumnCondition> {
    filters.iter().flat_map(split_conjunction).filter_map(simple_condition).collect()
}

fn simple_condition(filter: &Expr) -> Option<ColumnCondition> {
    let (column, test) = match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
            (Expr::Column(column), Expr::Literal(value, _)) => (column, comparison(*op, value)?),
            (Expr::Literal(value, _), Expr::Column(column)) => (column, comparison(op.swap()?, value)?),
            _ => return None,
        },
        Expr::InList(list) if !list.negated => {
            let Expr::Column(column) = &*list.expr else { return None };
            let value = |item: &Expr| match item {
                Expr::Literal(value, _) => text(value),
                _ => None,
            };
            (column, ColumnTest::OneOf(list.list.iter().map(value).collect::<Option<Vec<_>>>()?))
        }
        _ => return None,
    };
    Some(ColumnCondition { column: column.name.clone(), test })
}

fn comparison(operator: Operator, value: &ScalarValue) -> Option<ColumnTest> {
    match operator {
        Operator::Eq => text(value).map(|text| ColumnTest::OneOf(vec![text])),
        Operator::Gt | Operator::GtEq => microseconds(value).map(ColumnTest::AtLeast),
        // A finer time is rounded up, so that no row is lost.
        Operator::Lt | Operator::LtEq => microseconds(value).map(|time| ColumnTest::AtMost(time.saturating_add(1))),
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
            Some(text.clone())
        }
        ScalarValue::Int64(Some(number)) => Some(number.to_string()),
        _ => None,
    }
}

fn microseconds(value: &ScalarValue) -> Option<i64> {
    let DataType::Timestamp(_, zone) = value.data_type() else { return None };
    match value.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, zone)).ok()? {
        ScalarValue::TimestampMicrosecond(time, _) => time,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn only_simple_conditions_are_passed_on() {
        let time = |nanos: i64| lit(ScalarValue::TimestampNanosecond(Some(nanos), Some("UTC".into())));
        let filters = [
            col("unit").eq(lit("ssh")).and(col("time").gt_eq(time(5_500))),
            time(9_000).gt(col("time")),
            col("priority").in_list(vec![lit(1_i64), lit(2_i64)], false),
            col("unit").not_eq(lit("cron")),
            col("a").eq(col("b")),
            col("unit").in_list(vec![lit("x")], true),
        ];
        let one_of = |values: &[&str]| ColumnTest::OneOf(values.iter().map(|text| (*text).to_owned()).collect());
        let expected = [
            ("unit", one_of(&["ssh"])),
            ("time", ColumnTest::AtLeast(5)),
            ("time", ColumnTest::AtMost(10)),
            ("priority", one_of(&["1", "2"])),
        ];
        let expected = expected.map(|(column, test)| ColumnCondition { column: column.to_owned(), test });
        assert_eq!(simple_conditions(&filters), expected);
    }
}
