//! Untyped literals in VALUES, and in the first branch of a CASE.
//!
//! The types of the values in a row are known only after planning, when DataFusion requires all rows to agree. So a
//! literal becomes a call with the values beside it, of which only the types are used. The planner takes the type of a
//! CASE from its first branch.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::{
    ColumnarValue, Expr as PlanExpr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, Query, SetExpr, Value, Values, Visitor};

use super::{common_type, parse_value};
use crate::syntax::{call, take, without_parentheses};
use crate::walk::walk;

/// The name of the function. The `*` keeps callers from writing it.
const NAME: &str = "untyped*";
/// The maximum number of values beside a literal whose types are examined.
const SIBLINGS_MAX: usize = 16;

/// Gives the literals in VALUES of `query` itself the type of the values in other rows.
pub(crate) fn type_values(query: &mut Query) {
    let mut bodies = vec![query.body.as_mut()];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Values(values) => type_rows(values),
            SetExpr::SetOperation { left, right, .. } => bodies.extend([left.as_mut(), right.as_mut()]),
            _ => {}
        }
    }
}

/// Gives the literal of the first branch of a CASE the type of a branch that follows.
pub(crate) fn rewrite_case(expression: &mut Expr) -> Result<()> {
    let Expr::Case { conditions, else_result, .. } = expression else { return Ok(()) };
    let branches = || conditions.iter().map(|branch| &branch.result).chain(else_result.as_deref());
    if !branches().find(|branch| !is_null(branch)).is_some_and(is_string) {
        return Ok(());
    }
    let typed = branches().find(|branch| !is_string(branch) && !is_null(branch)).cloned();
    if let Some(sibling) = typed.filter(|sibling| is_small(sibling, SIBLINGS_MAX))
        && let Some(first) = conditions.iter_mut().map(|branch| &mut branch.result).find(|branch| !is_null(branch))
    {
        *first = call(NAME, vec![take(first), sibling]);
    }
    Ok(())
}

/// Returns the literal that replaces `call` if it is a call of the function.
pub(super) fn resolve_literal(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<PlanExpr>> {
    if call.func.name() != NAME {
        return Ok(None);
    }
    let types = call.args.iter().skip(1).map(|arg| arg.get_type(schema)).collect::<Result<Vec<_>>>()?;
    Ok(match call.args.first() {
        Some(PlanExpr::Literal(ScalarValue::Utf8(Some(text)), metadata)) => {
            let data_type = literal_type(text, &types)?;
            // All rows of VALUES have one type, including its number of digits.
            let value = parse_value(text, &data_type)?.cast_to(&data_type)?;
            Some(PlanExpr::Literal(value, metadata.clone()))
        }
        _ => None,
    })
}

fn type_rows(values: &mut Values) {
    let columns = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..columns {
        let own = || values.rows.iter().filter_map(|row| row.content.get(column));
        if !own().any(is_string) || own().all(|value| is_string(value) || is_null(value)) {
            continue;
        }
        let Some(siblings) = sibling_values(own()) else { continue };
        for row in &mut values.rows {
            if let Some(literal) = row.content.get_mut(column).filter(|value| is_string(value)) {
                *literal = call(NAME, [vec![take(literal)], siblings.clone()].concat());
            }
        }
    }
}

/// Returns a value of each type in `column`; `None` if there may be other types.
fn sibling_values<'a>(column: impl Iterator<Item = &'a Expr>) -> Option<Vec<Expr>> {
    let (mut seen, mut siblings) = (HashSet::new(), Vec::new());
    for value in column.filter(|value| !is_string(value) && !is_null(value)) {
        if seen.insert(type_key(value)) {
            if siblings.len() == SIBLINGS_MAX || !is_small(value, usize::MAX) {
                return None;
            }
            siblings.push(value.clone());
        }
    }
    Some(siblings)
}

/// Returns a key that is equal for values of the same type.
fn type_key(value: &Expr) -> String {
    match without_parentheses(value) {
        Expr::Cast { data_type, .. } => format!("::{data_type}"),
        Expr::TypedString(typed) => format!("::{}", typed.data_type),
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) if number.parse::<i32>().is_err() => number.clone(),
            Value::Number(..) => "integer".to_owned(),
            Value::Boolean(_) => "boolean".to_owned(),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}

fn is_string(value: &Expr) -> bool {
    match without_parentheses(value) {
        Expr::Value(value) => matches!(
            value.value,
            Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::DollarQuotedString(_)
        ),
        _ => false,
    }
}

fn is_null(value: &Expr) -> bool {
    matches!(value, Expr::Value(value) if value.value == Value::Null)
}

/// Whether `value` contains no query, and at most `expressions_max` expressions.
fn is_small(value: &Expr, expressions_max: usize) -> bool {
    walk(value, &mut SizeCheck { remaining: expressions_max }).is_continue()
}

struct SizeCheck {
    remaining: usize,
}

impl Visitor for SizeCheck {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        match self.remaining.checked_sub(1) {
            Some(remaining) => {
                self.remaining = remaining;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

/// Returns the type of the literal `text` beside values of the types `siblings`. A numeric type also has room for the
/// literal's digits.
fn literal_type(text: &str, siblings: &[DataType]) -> Result<DataType> {
    let common = common_type("VALUES", siblings)?.unwrap_or(DataType::Utf8);
    if !common.is_decimal() {
        return Ok(common);
    }
    let own = parse_value(text, &common)?.data_type();
    Ok(type_union_resolution(&[common.clone(), own]).unwrap_or(common))
}

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(UntypedLiteral { signature: Signature::variadic_any(Volatility::Immutable) })
}

/// Parses its first argument, a text, as a value of the type of the other arguments.
#[derive(Debug, PartialEq, Eq, Hash)]
struct UntypedLiteral {
    signature: Signature,
}

impl ScalarUDFImpl for UntypedLiteral {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        plan_err!("the type of a literal depends on its text")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(Some(ScalarValue::Utf8(Some(text)))) = args.scalar_arguments.first() else {
            return plan_err!("an untyped literal must be text");
        };
        let siblings: Vec<DataType> = args.arg_fields.iter().skip(1).map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(NAME, literal_type(text, &siblings)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(ColumnarValue::Scalar(ScalarValue::Utf8(Some(text)))) = args.args.first() else {
            return plan_err!("an untyped literal must be text");
        };
        let value = parse_value(text, args.return_field.data_type())?;
        Ok(ColumnarValue::Scalar(value.cast_to(args.return_field.data_type())?))
    }
}
