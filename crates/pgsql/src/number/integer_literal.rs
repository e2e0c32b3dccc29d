//! Integer literals: each has the first of the types `integer`, `bigint` and `numeric` that holds it.
//!
//! To DataFusion's planner all of them are bigints, and it calls an extension for operators but for no literal. So a literal
//! becomes an operand of an operator that no statement can contain, and the planner of operators replaces it.
//!
//! `docs/decisions/upstream` has the text to be filed, and says when the marks can go.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{BinaryExpr, Expr as PlanExpr, ExprSchemable};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Fetch, Function, FunctionArg, FunctionArgExpr, GroupByExpr, LimitClause,
    NamedWindowDefinition, NamedWindowExpr, Query, Select, Statement, TableFactor, TableSampleKind, UnaryOperator,
    Value, ValueWithSpan, VisitorMut, WindowFrameBound, WindowSpec, WindowType,
};

use crate::syntax::{binary, body_and_order, into_result, take, without_parentheses};
use crate::walk::{Stop, walk_mut};

/// The operator. The space keeps callers from writing it.
const OPERATOR: &str = "integer literal";
/// The lowest `integer`, whose digits without the sign are a `bigint`.
const LOWEST_INTEGER: i64 = i32::MIN as i64;

/// Marks the integer literals of `statement`, whose other parts are rewritten.
pub(crate) fn mark_literals(statement: &mut Statement) -> Result<()> {
    into_result(walk_mut(statement, &mut LiteralMarker))
}

/// Returns the literal that `operation` marks, of the type `integer` if that holds it.
pub(crate) fn plan_literal(operation: &RawBinaryExpr) -> Option<PlanExpr> {
    let (BinaryOperator::Custom(operator), PlanExpr::Literal(value, metadata)) = (&operation.op, &operation.left)
    else {
        return None;
    };
    let ScalarValue::Int64(Some(value)) = value else { return None };
    if operator != OPERATOR {
        return None;
    }
    let literal = match i32::try_from(*value) {
        Ok(value) => ScalarValue::Int32(Some(value)),
        Err(_) => ScalarValue::Int64(Some(*value)),
    };
    Some(PlanExpr::Literal(literal, metadata.clone()))
}

/// Returns the value of an integer literal of a plan.
pub(crate) fn integer_value(expression: &PlanExpr) -> Option<i64> {
    match expression {
        PlanExpr::Literal(ScalarValue::Int32(Some(value)), _) => Some(i64::from(*value)),
        PlanExpr::Literal(ScalarValue::Int64(Some(value)), _) => Some(*value),
        _ => None,
    }
}

/// Gives the literals beside a bigint its type, and those among arguments that are bigints. A cast would hide that they are
/// constants.
pub(crate) fn widen_literals(expression: PlanExpr, schema: &DFSchema) -> Result<Transformed<PlanExpr>> {
    match expression {
        PlanExpr::BinaryExpr(BinaryExpr { mut left, op, mut right }) => {
            let is_bigint = |operand: &PlanExpr| operand.get_type(schema).is_ok_and(|own| own == DataType::Int64);
            let is_changed = is_integer(&left) && is_bigint(&right) && widen(&mut left)
                || is_integer(&right) && is_bigint(&left) && widen(&mut right);
            let widened = PlanExpr::BinaryExpr(BinaryExpr { left, op, right });
            Ok(Transformed::new_transformed(widened, is_changed))
        }
        PlanExpr::ScalarFunction(mut call) if call.args.iter().any(is_integer) => {
            let fields = call.args.iter().map(|arg| Ok(arg.to_field(schema)?.1)).collect::<Result<Vec<_>>>();
            // DataFusion's own coercion reports arguments that do not fit.
            let coerced = fields.and_then(|fields| fields_with_udf(&fields, call.func.as_ref())).unwrap_or_default();
            let mut is_changed = false;
            for (arg, _) in call.args.iter_mut().zip(coerced).filter(|(_, field)| *field.data_type() == DataType::Int64)
            {
                is_changed |= widen(arg);
            }
            Ok(Transformed::new_transformed(PlanExpr::ScalarFunction(call), is_changed))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn is_integer(expression: &PlanExpr) -> bool {
    matches!(expression, PlanExpr::Literal(ScalarValue::Int32(Some(_)), _))
}

/// Makes a literal of the type `integer` a bigint. Returns whether it was one.
fn widen(expression: &mut PlanExpr) -> bool {
    let PlanExpr::Literal(literal, _) = expression else { return false };
    let ScalarValue::Int32(Some(value)) = literal else { return false };
    *literal = ScalarValue::Int64(Some(i64::from(*value)));
    true
}

/// Marks literals, inner ones first.
struct LiteralMarker;

impl VisitorMut for LiteralMarker {
    type Break = Stop;

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Stop> {
        sign_literal(expression);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Stop> {
        match expression {
            Expr::Value(value) => {
                if let Value::Number(digits, _) = &mut value.value
                    && digits.bytes().all(|digit| digit.is_ascii_digit())
                {
                    if digits.parse::<i32>().is_ok() {
                        mark(expression);
                    } else if digits.parse::<i64>().is_err() {
                        digits.push('.');
                    }
                }
            }
            // A sign belongs to the literal.
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } if is_marked_number(expr) => {
                unmark(expr);
                mark(expression);
            }
            Expr::Function(Function { over: Some(WindowType::WindowSpec(window)), .. }) => unmark_frame(window),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Stop> {
        // DataFusion's own functions in FROM take bigints.
        if let TableFactor::Table { args: Some(args), .. } = factor {
            for argument in &mut args.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument {
                    unmark(value);
                }
            }
        }
        if let TableFactor::Table { sample: Some(sample), .. } | TableFactor::Derived { sample: Some(sample), .. } =
            factor
        {
            let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample;
            sample.quantity.iter_mut().for_each(|percentage| unmark(&mut percentage.value));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Stop> {
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            keys.iter_mut().for_each(unmark);
        }
        for NamedWindowDefinition(_, definition) in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = definition {
                unmark_frame(window);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Stop> {
        for key in body_and_order(query).1 {
            unmark(&mut key.expr);
        }
        match &mut query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value)).for_each(unmark);
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => [offset, limit].into_iter().for_each(unmark),
            None => {}
        }
        if let Some(Fetch { quantity: Some(quantity), .. }) = &mut query.fetch {
            unmark(quantity);
        }
        ControlFlow::Continue(())
    }
}

/// Moves signs into an integer whose type depends on them: `-2147483648` is an `integer`, `-9223372036854775808` a `bigint`.
fn sign_literal(expression: &mut Expr) {
    if !matches!(expression, Expr::UnaryOp { op: UnaryOperator::Minus, .. }) {
        return;
    }
    let Some((is_negative, digits)) = signed_digits(expression) else { return };
    if !matches!(format!("-{digits}").parse::<i64>(), Ok(LOWEST_INTEGER | i64::MIN)) {
        return;
    }
    let literal = if is_negative { format!("-{digits}") } else { digits.to_owned() };
    *expression = Expr::value(Value::Number(literal, false));
    if is_negative {
        mark(expression);
    }
}

/// Returns the digits of an integer literal, and whether its signs make it negative.
fn signed_digits(expression: &Expr) -> Option<(bool, &str)> {
    match without_parentheses(expression) {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            signed_digits(expr).map(|(is_negative, digits)| (!is_negative, digits))
        }
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. })
            if digits.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            Some((false, digits.as_str()))
        }
        _ => None,
    }
}

fn mark(expression: &mut Expr) {
    let literal = take(expression);
    *expression = binary(literal, BinaryOperator::Custom(OPERATOR.to_owned()), Expr::value(Value::Null));
}

/// Whether `expression` is a marked literal without a sign.
fn is_marked_number(expression: &Expr) -> bool {
    match expression {
        Expr::BinaryOp { left, op: BinaryOperator::Custom(operator), .. } => {
            operator == OPERATOR
                && matches!(left.as_ref(), Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. })
                    if !digits.starts_with('-'))
        }
        _ => false,
    }
}

/// Removes the mark of a number of rows or of a column, which the planner reads itself.
fn unmark(expression: &mut Expr) {
    match expression {
        Expr::Nested(inner) => unmark(inner),
        Expr::BinaryOp { left, op: BinaryOperator::Custom(operator), .. } if operator == OPERATOR => {
            *expression = take(left);
        }
        _ => {}
    }
}

fn unmark_frame(window: &mut WindowSpec) {
    let Some(frame) = &mut window.window_frame else { return };
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        if let WindowFrameBound::Preceding(Some(rows)) | WindowFrameBound::Following(Some(rows)) = bound {
            unmark(rows);
        }
    }
}
