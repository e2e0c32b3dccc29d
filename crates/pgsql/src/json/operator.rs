//! Plans the operators of JSON.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::planner::RawFieldAccessExpr;
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, Operator, binary_expr};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::{get, input, jsonpath, operator_functions};
use crate::data_type::is_text_or_null;
use crate::function::{call, field_kind};
use crate::json_type::{JsonKind, json_kind};
use crate::operands::Operands;

/// Plans an operator on operands of these types; `None` if this module does not handle the operator.
pub(crate) fn plan_operator(operands: &Operands<'_>) -> Result<Option<Expr>> {
    use BinaryOperator::{
        Arrow, ArrowAt, AtArrow, AtAt, AtQuestion, HashArrow, HashLongArrow, HashMinus, LongArrow, Minus, Question,
        QuestionAnd, QuestionPipe, StringConcat,
    };
    let kind_of = |operand: &Expr| operand.to_field(operands.schema).ok().and_then(|(_, field)| field_kind(&field));
    let (left, right) = (kind_of(operands.left), kind_of(operands.right));
    let both = || operands.both();
    let is_of_jsonb_only = matches!(
        operands.op,
        ArrowAt | AtArrow | AtAt | AtQuestion | HashMinus | Minus | Question | QuestionAnd | QuestionPipe
    );
    let is_json = left == Some(JsonKind::Json) || right == Some(JsonKind::Json);
    if is_json && (is_of_jsonb_only || compares_columns(operands, left, right)) {
        return plan_as_jsonb(operands, left, right);
    }
    match operands.op {
        Arrow | LongArrow | HashArrow | HashLongArrow => {
            if left.is_none() {
                let remedy = match operands.left_type.is_nested() {
                    true => {
                        "write value['key'] of an object, value[1] of an array, or to_jsonb(value) on the left side"
                    }
                    false => "write value::jsonb on the left side",
                };
                return refuse_operator(operands, remedy);
            }
            Ok(Some(match operands.op {
                Arrow => call(get::member(false), both()),
                LongArrow => call(get::member(true), both()),
                HashArrow => call(get::at_path(false), both()),
                _ => call(get::at_path(true), both()),
            }))
        }
        Question | QuestionPipe | QuestionAnd | HashMinus => {
            if left != Some(JsonKind::Jsonb) {
                return refuse_operator(operands, "write value::jsonb on the left side");
            }
            Ok(Some(match operands.op {
                Question if is_text_or_null(&operands.right_type) => call(operator_functions::exists(), both()),
                Question => return refuse_operator(operands, "the right side must be text"),
                QuestionPipe => call(operator_functions::exists_of(true), both()),
                QuestionAnd => call(operator_functions::exists_of(false), both()),
                _ => call(operator_functions::path_deletion(), both()),
            }))
        }
        AtQuestion | AtAt => {
            if left != Some(JsonKind::Jsonb) {
                return refuse_operator(operands, "write value::jsonb on the left side");
            }
            if !is_text_or_null(&operands.right_type) {
                return refuse_operator(operands, "the right side must be a jsonpath, as text: '$.key ? (@ > 1)'");
            }
            let is_exists = matches!(operands.op, AtQuestion);
            let function = if is_exists { jsonpath::exists_operator() } else { jsonpath::match_operator() };
            Ok(Some(call(function, both())))
        }
        Minus if left == Some(JsonKind::Jsonb) => Ok(Some(call(operator_functions::deletion(), both()))),
        AtArrow | ArrowAt | StringConcat if left.is_some() || right.is_some() => plan_symmetric(operands, left, right),
        _ => match operands.comparison() {
            Some(operator) if left.is_some() || right.is_some() => {
                require_jsonb(operands, left, right)?;
                Ok(operator_functions::comparison(operator).map(|function| call(function, both())))
            }
            _ => Ok(None),
        },
    }
}

/// Whether a comparison has an operand that is a column of documents in a file.
fn compares_columns(operands: &Operands<'_>, left: Option<JsonKind>, right: Option<JsonKind>) -> bool {
    let is_column = |data_type: &DataType, kind: Option<JsonKind>| kind.is_some() && json_kind(data_type).is_none();
    operands.comparison().is_some() && (is_column(&operands.left_type, left) || is_column(&operands.right_type, right))
}

/// Plans an operator that only `jsonb` has, with operands that are `json`, as columns of files are: they are converted.
fn plan_as_jsonb(operands: &Operands<'_>, left: Option<JsonKind>, right: Option<JsonKind>) -> Result<Option<Expr>> {
    let converted = |operand: &Expr, data_type: &DataType, kind: Option<JsonKind>| {
        if kind == Some(JsonKind::Json) {
            (call(input::to_jsonb(), vec![operand.clone()]), JsonKind::Jsonb.data_type())
        } else {
            (operand.clone(), data_type.clone())
        }
    };
    let (left, left_type) = converted(operands.left, &operands.left_type, left);
    let (right, right_type) = converted(operands.right, &operands.right_type, right);
    plan_operator(&Operands {
        op: operands.op,
        left: &left,
        right: &right,
        left_type,
        right_type,
        schema: operands.schema,
    })
}

/// Plans an operator whose operands are `jsonb`, or literals that take that type.
fn plan_symmetric(operands: &Operands<'_>, left: Option<JsonKind>, right: Option<JsonKind>) -> Result<Option<Expr>> {
    if *operands.op == BinaryOperator::StringConcat {
        let as_text = |operand: &Expr, kind: Option<JsonKind>| match kind {
            Some(_) => call(input::to_text(), vec![operand.clone()]),
            None => operand.clone(),
        };
        let is_other_text = |operand: &Expr, data_type: &_, kind: Option<JsonKind>, other: Option<JsonKind>| {
            kind.is_none()
                && is_text_or_null(data_type)
                && (other == Some(JsonKind::Json) || !Operands::is_untyped(operand))
        };
        if is_other_text(operands.left, &operands.left_type, left, right)
            || is_other_text(operands.right, &operands.right_type, right, left)
        {
            let (left, right) = (as_text(operands.left, left), as_text(operands.right, right));
            return Ok(Some(binary_expr(left, Operator::StringConcat, right)));
        }
    }
    require_jsonb(operands, left, right)?;
    let both = operands.both();
    Ok(Some(match operands.op {
        BinaryOperator::AtArrow => call(operator_functions::contains(), both),
        BinaryOperator::ArrowAt => call(operator_functions::contains(), both.into_iter().rev().collect()),
        _ => call(operator_functions::concatenation(), both),
    }))
}

fn require_jsonb(operands: &Operands<'_>, left: Option<JsonKind>, right: Option<JsonKind>) -> Result<()> {
    let is_jsonb = |operand: &Expr, kind: Option<JsonKind>| {
        kind == Some(JsonKind::Jsonb) || (kind.is_none() && Operands::is_untyped(operand))
    };
    if is_jsonb(operands.left, left) && is_jsonb(operands.right, right) {
        return Ok(());
    }
    refuse_operator(operands, "write value::jsonb on both sides, or ->> to compare texts").map(|_| ())
}

fn refuse_operator(operands: &Operands<'_>, remedy: &str) -> Result<Option<Expr>> {
    let name = |data_type: &DataType| match json_kind(data_type) {
        Some(kind) => kind.name().to_owned(),
        None if is_text_or_null(data_type) => "text".to_owned(),
        None => data_type.to_string(),
    };
    let (left, right) = (name(&operands.left_type), name(&operands.right_type));
    plan_err!("operator does not exist: {left} {} {right}; {remedy}", operands.op)
}

/// Plans `document['key']` and `document[0]`; `None` if the operand is not a document.
pub(crate) fn plan_field_access(access: &RawFieldAccessExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (_, field) = access.expr.to_field(schema)?;
    let document = match field_kind(&field) {
        Some(JsonKind::Jsonb) => access.expr.clone(),
        Some(JsonKind::Json) => call(input::to_jsonb(), vec![access.expr.clone()]),
        None => return Ok(None),
    };
    let key = match &access.field_access {
        GetFieldAccess::NamedStructField { name } => Expr::Literal(name.clone(), None),
        GetFieldAccess::ListIndex { key } => key.as_ref().clone(),
        GetFieldAccess::ListRange { .. } => return plan_err!("jsonb subscript does not support slices"),
    };
    Ok(Some(call(get::subscript(), vec![document, key])))
}
