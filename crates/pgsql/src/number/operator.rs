//! Plans operators on numbers by the types of their operands.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::FunctionArg::Unnamed;
use datafusion::sql::sqlparser::ast::{self, BinaryOperator, FunctionArgExpr, FunctionArguments, UnaryOperator};

use super::numeric_comparison::{is_exact_real, widen_operand};
use super::{division, float, integer_value, literal};
use crate::data_type::number_type_name;
use crate::operands::Operands;
use crate::syntax::{self, binary, call, is_named, negative, nested, number, take};

/// Replaces `mod(a, b)` and prefix operators with calls and operators that the planner supports.
pub(super) fn rewrite_syntax(expression: &mut ast::Expr) -> Result<()> {
    let replaced = match expression {
        // In PostgreSQL a sign binds more closely than a power.
        ast::Expr::UnaryOp { op: UnaryOperator::Minus, expr } if is_power(expr) => negate_base(expr),
        ast::Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr } => super::bits::rewrite_not(expr),
        ast::Expr::UnaryOp { op, expr } => {
            let name = match op {
                UnaryOperator::PGSquareRoot => "sqrt",
                UnaryOperator::PGCubeRoot => "cbrt",
                UnaryOperator::PGAbs => "abs",
                _ => return Ok(()),
            };
            call(name, vec![take(expr)])
        }
        ast::Expr::Function(function) if is_named(&function.name, "mod") => {
            let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
            let [Unnamed(FunctionArgExpr::Expr(left)), Unnamed(FunctionArgExpr::Expr(right))] =
                list.args.as_mut_slice()
            else {
                return plan_err!("mod has two arguments: mod(7, 3)");
            };
            nested(binary(nested(take(left)), BinaryOperator::Modulo, nested(take(right))))
        }
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(text, _), .. })
            if text.contains(['e', 'E']) =>
        {
            exponent_literal(text)
        }
        _ => return Ok(()),
    };
    *expression = replaced;
    Ok(())
}

fn is_power(expression: &ast::Expr) -> bool {
    matches!(expression, ast::Expr::BinaryOp { op: BinaryOperator::PGExp, .. })
}

/// Moves a minus sign from before a power to its base.
fn negate_base(power: &mut ast::Expr) -> ast::Expr {
    let mut power = take(power);
    if let ast::Expr::BinaryOp { left, .. } = &mut power {
        if is_power(left) {
            **left = negate_base(left);
        } else {
            **left = negative(take(left));
        }
    }
    power
}

/// Builds a number from a literal with an exponent: a numeric, or a double if a numeric has too few digits.
fn exponent_literal(text: &str) -> ast::Expr {
    if let Some((units, scale)) = literal::parse_decimal(text) {
        let scale = usize::from(scale.unsigned_abs());
        let digits = format!("{units:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        return number(format!("{whole}.{fraction}"));
    }
    syntax::cast(syntax::string(text), ast::DataType::DoublePrecision)
}

fn arithmetic_operator(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Modulo => Operator::Modulo,
        _ => return None,
    })
}

/// Plans an operator on operands of these types; `None` if it is not an operator on numbers.
pub(crate) fn plan_operator(operands: &Operands<'_>) -> Result<Option<Expr>> {
    let Operands { op, left, right, left_type, right_type, .. } = operands;
    if **op == BinaryOperator::PGExp {
        let power = float::functions().into_iter().find(|function| function.name() == "power");
        return Ok(power.map(|power: ScalarUDF| power.call(vec![(*left).clone(), (*right).clone()])));
    }
    if let Some(shifted) = plan_shift(operands) {
        return Ok(Some(shifted));
    }
    let Some(operator) = operands.comparison().or_else(|| arithmetic_operator(op)) else { return Ok(None) };
    let (left, right) = match (left_type.is_numeric(), right_type.is_numeric()) {
        (true, true) => ((*left).clone(), (*right).clone()),
        (true, false) if right_type.is_string() => ((*left).clone(), number_from_text(operands, operator)?),
        (false, true) if left_type.is_string() => (number_from_text(operands, operator)?, (*right).clone()),
        _ => return Ok(None),
    };
    let is_arithmetic = operator.is_numerical_operators();
    let (left, right) = if is_arithmetic && (left_type.is_decimal() || right_type.is_decimal()) {
        (shorten_integer_literal(left), shorten_integer_literal(right))
    } else {
        (left, right)
    };
    let (left, right) = match (left_type.is_floating(), right_type.is_floating()) {
        (true, false) if right_type.is_decimal() => (left, widen_operand(right, &DataType::Float64)),
        (false, true) if left_type.is_decimal() => (widen_operand(left, &DataType::Float64), right),
        (true, false) if right_type.is_integer() && (is_arithmetic || !is_exact_real(&right)) => {
            (double_of_real(left, left_type), right)
        }
        (false, true) if left_type.is_integer() && (is_arithmetic || !is_exact_real(&left)) => {
            (left, double_of_real(right, right_type))
        }
        _ => (left, right),
    };
    if operator == Operator::Divide && division::is_numeric_division(left_type, right_type) {
        // The quotient has another type in DataFusion.
        return Ok(Some(division::plan_quotient(left, right)));
    }
    if operator == Operator::Multiply
        && let Some(product) = division::plan_wide_product(&left, left_type, &right, right_type)
    {
        return Ok(Some(product));
    }
    Ok(Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))))
}

/// Converts a `real` beside an integer to a double, because both are doubles in PostgreSQL.
fn double_of_real(operand: Expr, data_type: &DataType) -> Expr {
    match data_type {
        DataType::Float64 => operand,
        _ => Expr::Cast(Cast::new(Box::new(operand), DataType::Float64)),
    }
}

/// Plans a shift, whose result has the type of the left operand.
fn plan_shift(operands: &Operands<'_>) -> Option<Expr> {
    let Operands { left, right, left_type, right_type, .. } = operands;
    let op = match operands.op {
        BinaryOperator::PGBitwiseShiftLeft => Operator::BitwiseShiftLeft,
        BinaryOperator::PGBitwiseShiftRight => Operator::BitwiseShiftRight,
        _ => return None,
    };
    if !left_type.is_integer() || !right_type.is_integer() || left_type == right_type {
        return None;
    }
    let distance = Expr::Cast(Cast::new(Box::new((*right).clone()), left_type.clone()));
    Some(Expr::BinaryExpr(BinaryExpr::new(Box::new((*left).clone()), op, Box::new(distance))))
}

/// Converts a string literal beside a number to a number; refuses any other text.
fn number_from_text(operands: &Operands<'_>, operator: Operator) -> Result<Expr> {
    let Operands { op, left, right, left_type, right_type, .. } = operands;
    let is_left = left_type.is_string();
    let (text, number, number_type) = if is_left { (left, right, right_type) } else { (right, left, left_type) };
    match text {
        Expr::Literal(ScalarValue::Utf8(None) | ScalarValue::Null, _) => Ok(Expr::Literal(ScalarValue::Null, None)),
        Expr::Literal(ScalarValue::Utf8(Some(literal)), _) => {
            Ok(Expr::Literal(literal::parse_number(literal, number_type)?, None))
        }
        _ => {
            let name = number_type_name(number_type);
            let (left, right) = if is_left { ("text", name) } else { (name, "text") };
            // As text, the number would have no zeros before it.
            let advice = match number {
                Expr::Literal(..) if !operator.is_numerical_operators() => {
                    "write the text in quotes, such as '00004', or cast it to a number, for instance x::numeric"
                }
                _ => "cast the text to a number, for instance x::numeric",
            };
            plan_err!("operator does not exist: {left} {op} {right}; {advice}")
        }
    }
}

/// Converts the literals of `BETWEEN` and `IN` to the type of the left operand.
pub(crate) fn type_literals(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (operand, literals): (&Expr, Vec<&Expr>) = match &expression {
        Expr::Between(between) => (&between.expr, vec![&between.low, &between.high]),
        Expr::InList(list) => (&list.expr, list.list.iter().collect()),
        _ => return Ok(Transformed::no(expression)),
    };
    let data_type = operand.get_type(schema)?;
    let needs_type = |literal: &&Expr| match literal {
        Expr::Literal(ScalarValue::Decimal128(..), _) => data_type.is_floating(),
        Expr::Literal(ScalarValue::Utf8(Some(_)), _) => data_type.is_numeric(),
        Expr::Literal(ScalarValue::Int32(Some(_)), _) => data_type == DataType::Int64,
        _ => false,
    };
    if !literals.iter().any(needs_type) {
        return Ok(Transformed::no(expression));
    }
    let (of_texts, of_numerics) = match &expression {
        Expr::InList(list) => literal_types(&data_type, &list.list, schema)?,
        _ => (data_type.clone(), DataType::Float64),
    };
    let typed = |operand: Expr| match operand {
        Expr::Literal(ScalarValue::Utf8(Some(text)), metadata) => {
            Ok(Expr::Literal(literal::parse_number(&text, &of_texts)?, metadata))
        }
        Expr::Literal(value @ ScalarValue::Decimal128(..), metadata) if data_type.is_floating() => {
            Ok(Expr::Literal(literal::to_float(value, &of_numerics), metadata))
        }
        Expr::Literal(ScalarValue::Int32(Some(value)), metadata) if data_type == DataType::Int64 => {
            Ok(Expr::Literal(ScalarValue::Int64(Some(i64::from(value))), metadata))
        }
        other => Ok(other),
    };
    Ok(Transformed::yes(match expression {
        Expr::Between(mut between) => {
            between.low = Box::new(typed(*between.low)?);
            between.high = Box::new(typed(*between.high)?);
            Expr::Between(between)
        }
        Expr::InList(mut list) => {
            list.list = list.list.into_iter().map(typed).collect::<Result<_>>()?;
            Expr::InList(list)
        }
        other => other,
    }))
}

/// Returns the types that texts and numerics have in the list of `IN` after an operand of type `data_type`. Several values
/// without columns are an array in PostgreSQL, whose elements have one type.
fn literal_types(data_type: &DataType, list: &[Expr], schema: &DFSchema) -> Result<(DataType, DataType)> {
    let constants: Vec<&Expr> = list.iter().filter(|value| !value.any_column_refs()).collect();
    if constants.len() < 2 || *data_type != DataType::Float32 {
        return Ok((data_type.clone(), DataType::Float64));
    }
    let types = constants.iter().map(|value| value.get_type(schema)).collect::<Result<Vec<_>>>()?;
    let element = if types.contains(&DataType::Float64) { DataType::Float64 } else { DataType::Float32 };
    Ok((element.clone(), element))
}

/// Converts an integer literal to a numeric with as many digits as it has.
fn shorten_integer_literal(operand: Expr) -> Expr {
    match integer_value(&operand).and_then(|value| literal::numeric_literal(&value.to_string())) {
        Some(numeric) => Expr::Literal(numeric, None),
        None => operand,
    }
}
