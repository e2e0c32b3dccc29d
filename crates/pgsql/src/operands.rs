//! The operands of an operator.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
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
    /// Whether `operand` is an untyped string literal, whose type comes from its context.
    pub(crate) fn is_untyped(operand: &Expr) -> bool {
        matches!(operand, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _))
    }
}
