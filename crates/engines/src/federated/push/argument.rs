//! Translates the arguments of aggregates to the SQL of a member.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;

use super::expression::ColumnLookup;
use super::query_builder::SqlColumn;
use super::translator::Translator;
use crate::network::{LOW_BITS, LOW_MASK};

impl Translator {
    /// Translates an argument of a function of the same engine: a column, or a cast of one. `None` if the cast is not
    /// the same in SQL.
    pub(super) fn translate_number(&self, argument: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        match argument {
            Expr::Column(column) => terms(column).filter(|term| is_number(term.field.data_type())).map(|term| term.sql),
            Expr::Cast(Cast { expr, field }) => {
                let Expr::Column(column) = &**expr else { return None };
                self.write_number_cast(&terms(column)?, field.data_type())
            }
            _ => None,
        }
    }

    /// Translates the product of exact numbers: columns, or the parts of a `bigint`.
    pub(super) fn translate_product(&self, argument: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Multiply, right }) = argument else { return None };
        let (left, right) = (self.translate_factor(left, terms)?, self.translate_factor(right, terms)?);
        Some(format!("{left} * {right}"))
    }

    fn translate_factor(&self, factor: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        match factor {
            // Numerics of PostgreSQL may be NaN.
            Expr::Column(column) if self.dialect().is_embedded() => terms(column)
                .filter(|term| matches!(term.field.data_type(), DataType::Decimal128(..)))
                .map(|term| term.sql),
            Expr::Cast(Cast { expr, field }) => {
                let DataType::Decimal128(precision, 0) = field.data_type() else { return None };
                let (sql, is_whole) = match &**expr {
                    Expr::Column(column) => {
                        let term = terms(column)?;
                        let is_whole = is_whole(term.field.data_type());
                        (term.sql, is_whole)
                    }
                    part => (self.translate_part(part, terms)?, true),
                };
                let has_numerics = self.dialect().has_typed_columns();
                (is_whole && has_numerics).then(|| format!("CAST({sql} AS NUMERIC({precision}, 0))"))
            }
            _ => None,
        }
    }

    /// Translates the high or the low part of a whole number. The constants are those of this engine.
    fn translate_part(&self, part: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = part else { return None };
        let Expr::Literal(ScalarValue::Int64(Some(constant)), _) = &**right else { return None };
        let (op, constant) = match op {
            Operator::BitwiseShiftRight if *constant == LOW_BITS => (">>", LOW_BITS),
            Operator::BitwiseAnd if *constant == LOW_MASK => ("&", LOW_MASK),
            _ => return None,
        };
        let column = match &**left {
            Expr::Cast(Cast { expr, field }) if *field.data_type() == DataType::Int64 => expr,
            column => column,
        };
        let Expr::Column(column) = column else { return None };
        let term = terms(column).filter(|term| is_whole(term.field.data_type()))?;
        // A shift of a smaller type drops other bits.
        Some(format!("CAST({} AS BIGINT) {op} {constant}", term.sql))
    }

    fn write_number_cast(&self, term: &SqlColumn, to: &DataType) -> Option<String> {
        if !self.dialect().is_embedded() {
            return None;
        }
        let from = term.field.data_type();
        match to {
            DataType::Float64 if is_whole(from) || from.is_floating() => {
                Some(format!("CAST({} AS DOUBLE PRECISION)", term.sql))
            }
            DataType::Decimal128(precision, 0) if is_whole(from) => {
                Some(format!("CAST({} AS NUMERIC({precision}, 0))", term.sql))
            }
            _ => None,
        }
    }
}

fn is_whole(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64)
}

fn is_number(data_type: &DataType) -> bool {
    is_whole(data_type) || matches!(data_type, DataType::Float32 | DataType::Float64 | DataType::Decimal128(..))
}
