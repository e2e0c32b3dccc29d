//! Operators of numbers, by the types of their operands.

use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, ScalarUDF};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator,
};

use super::{division, float, literal};
use crate::operator::Operands;
use crate::syntax::{call, is_named};

/// `mod(a, b)`, and the operators that stand before their operand, as calls and operators that the planner has.
pub(super) fn rewrite_syntax(expression: &mut ast::Expr) -> Result<()> {
    let replaced = match expression {
        ast::Expr::UnaryOp { op, expr } => {
            let name = match op {
                UnaryOperator::PGSquareRoot => "sqrt",
                UnaryOperator::PGCubeRoot => "cbrt",
                UnaryOperator::PGAbs => "abs",
                _ => return Ok(()),
            };
            call(name, vec![std::mem::replace(expr.as_mut(), nothing())])
        }
        ast::Expr::Function(function) if is_named(&function.name, "mod") => {
            let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
            let [FunctionArg::Unnamed(FunctionArgExpr::Expr(left)), FunctionArg::Unnamed(FunctionArgExpr::Expr(right))] =
                list.args.as_mut_slice()
            else {
                return plan_err!("mod has two arguments: mod(7, 3)");
            };
            let operand =
                |expr: &mut ast::Expr| Box::new(ast::Expr::Nested(Box::new(std::mem::replace(expr, nothing()))));
            let (left, right) = (operand(left), operand(right));
            ast::Expr::Nested(Box::new(ast::Expr::BinaryOp { left, op: BinaryOperator::Modulo, right }))
        }
        _ => return Ok(()),
    };
    *expression = replaced;
    Ok(())
}

fn nothing() -> ast::Expr {
    ast::Expr::Value(ast::Value::Null.into())
}

fn operator(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Modulo => Operator::Modulo,
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    })
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The expression that the operator means for operands of these types; none if it is not of numbers.
pub(crate) fn plan_operator(operands: &Operands<'_>) -> Result<Option<Expr>> {
    let Operands { op, left, right, left_type, right_type, .. } = operands;
    if **op == BinaryOperator::PGExp {
        let power = float::functions().into_iter().find(|function| function.name() == "power");
        return Ok(power.map(|power: ScalarUDF| power.call(vec![(*left).clone(), (*right).clone()])));
    }
    let Some(operator) = operator(op) else { return Ok(None) };
    let (left, right) = match (is_number(left_type), is_number(right_type)) {
        (true, true) => ((*left).clone(), (*right).clone()),
        (true, false) if is_text(right_type) => {
            ((*left).clone(), of_text(right, right_type, left_type, operator, true)?)
        }
        (false, true) if is_text(left_type) => {
            (of_text(left, left_type, right_type, operator, false)?, (*right).clone())
        }
        _ => return Ok(None),
    };
    let is_arithmetic = operator.is_numerical_operators();
    let (left, right) = if is_arithmetic && (left_type.is_decimal() || right_type.is_decimal()) {
        (shortest(left), shortest(right))
    } else {
        (left, right)
    };
    if operator == Operator::Multiply
        && let Some(product) = division::wide_product(&left, left_type, &right, right_type)
    {
        return Ok(Some(product));
    }
    Ok(Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))))
}

/// A string literal beside a number is a number; any other text is none.
fn of_text(text: &Expr, text_type: &DataType, number: &DataType, operator: Operator, is_right: bool) -> Result<Expr> {
    match text {
        Expr::Literal(ScalarValue::Utf8(None) | ScalarValue::Null, _) => Ok(Expr::Literal(ScalarValue::Null, None)),
        Expr::Literal(ScalarValue::Utf8(Some(literal)), _) => Ok(Expr::Literal(literal::typed(literal, number)?, None)),
        _ => {
            let (number, text_name) = (super::name_of(number), "text");
            let operands = if is_right {
                format!("{number} {operator} {text_name}")
            } else {
                format!("{text_name} {operator} {number}")
            };
            plan_err!(
                "operator does not exist: {operands}; cast the text ({text_type} column) to a number, for instance \
                 x::numeric, or the number to text"
            )
        }
    }
}

/// Integer literals beside a numeric as numerics without more digits than they have.
fn shortest(operand: Expr) -> Expr {
    let Expr::Literal(ScalarValue::Int64(Some(value)), metadata) = &operand else { return operand };
    match literal::numeric_literal(&value.to_string()) {
        Some(numeric) => Expr::Literal(numeric, metadata.clone()),
        None => operand,
    }
}
