//! The operands of an operator.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, Operator};
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
