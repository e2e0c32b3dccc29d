//! The operators of DataFusion for the comparators of conditions.

use datafusion::logical_expr::Operator;
use tidegate_sql::Comparator;

pub(super) fn comparison_operator(comparator: Comparator) -> Operator {
    match comparator {
        Comparator::Equal => Operator::Eq,
        Comparator::NotEqual => Operator::NotEq,
        Comparator::Less => Operator::Lt,
        Comparator::LessOrEqual => Operator::LtEq,
        Comparator::Greater => Operator::Gt,
        Comparator::GreaterOrEqual => Operator::GtEq,
    }
}
