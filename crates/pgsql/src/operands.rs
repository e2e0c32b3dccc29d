//! The operands of an operator, and of other comparisons.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, InList, InSubquery, SetComparison};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// An operator and its operands, whose types are known.
pub(crate) struct Operands<'a> {
    pub(crate) op: &'a BinaryOperator,
    pub(crate) left: &'a Expr,
    pub(crate) right: &'a Expr,
    pub(crate) left_type: DataType,
    pub(crate) right_type: DataType,
    /// The schema of the operands' columns.
    pub(crate) schema: &'a DFSchema,
}

impl Operands<'_> {
    /// Returns both operands, as the arguments of a function.
    pub(crate) fn both(&self) -> Vec<Expr> {
        vec![self.left.clone(), self.right.clone()]
    }

    /// Returns the operator if it is a comparison.
    pub(crate) fn comparison(&self) -> Option<Operator> {
        Some(match self.op {
            BinaryOperator::Eq => Operator::Eq,
            BinaryOperator::NotEq => Operator::NotEq,
            BinaryOperator::Lt => Operator::Lt,
            BinaryOperator::LtEq => Operator::LtEq,
            BinaryOperator::Gt => Operator::Gt,
            BinaryOperator::GtEq => Operator::GtEq,
            _ => return None,
        })
    }

    /// Whether `operand` is an untyped string literal, whose type comes from its context.
    pub(crate) fn is_untyped(operand: &Expr) -> bool {
        matches!(operand, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _))
    }
}

/// Returns the operands that `expression` compares, the first with each other one, and their types. The type of a subquery's
/// column is the last. Both are empty if the expression compares nothing.
pub(crate) fn compared_operands<'a>(expression: &'a Expr, schema: &DFSchema) -> Result<(Vec<&'a Expr>, Vec<DataType>)> {
    let operands: Vec<&Expr> = match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            vec![left, right]
        }
        Expr::Between(Between { expr, low, high, .. }) => vec![expr, low, high],
        Expr::InList(InList { expr, list, .. }) => std::iter::once(expr.as_ref()).chain(list).collect(),
        Expr::InSubquery(InSubquery { expr, .. }) | Expr::SetComparison(SetComparison { expr, .. }) => vec![expr],
        _ => Vec::new(),
    };
    let mut types = operands.iter().map(|operand| operand.get_type(schema)).collect::<Result<Vec<_>>>()?;
    if let Expr::InSubquery(InSubquery { subquery, .. }) | Expr::SetComparison(SetComparison { subquery, .. }) =
        expression
    {
        types.push(subquery.subquery.schema().field(0).data_type().clone());
    }
    Ok((operands, types))
}
