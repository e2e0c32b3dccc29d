//! Plans the operators of JSON, and rewrites expressions with JSON once the types of a plan are resolved.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ExprSchema, Result, plan_err};
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::logical_expr::expr::{AggregateFunction, Cast, InList, Sort, WindowFunction};
use datafusion::logical_expr::planner::RawFieldAccessExpr;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, GetFieldAccess, LogicalPlan, LogicalPlanBuilder, Operator,
    binary_expr,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::{document, jsonpath, operators};
use crate::data_type::{JsonKind, holds_json, is_json_extension, is_text_or_null, json_kind};
use crate::function::{call, field_kind};
use crate::operands::Operands;

/// Rewrites an expression of JSON values that DataFusion evaluates differently from PostgreSQL.
pub(crate) fn convert_expression(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expression {
        Expr::Cast(cast) => convert_cast(cast, schema),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let kinds = (kind_in(&left, schema), kind_in(&right, schema));
            if kinds == (None, None) {
                return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            }
            if kinds != (Some(JsonKind::Jsonb), Some(JsonKind::Jsonb)) {
                return plan_err!("values of json are compared as jsonb: write value::jsonb on both sides");
            }
            let key = |side: Expr| Box::new(sort_key(side));
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: key(*left), op, right: key(*right) })))
        }
        Expr::InList(InList { expr, list, negated }) if kind_in(&expr, schema).is_some() => {
            if kind_in(&expr, schema) == Some(JsonKind::Json) {
                return plan_err!("values of json are compared as jsonb: write value::jsonb");
            }
            let list = list.into_iter().map(sort_key).collect();
            Ok(Transformed::yes(Expr::InList(InList { expr: Box::new(sort_key(*expr)), list, negated })))
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let mut changed = order_by_keys(&mut params.order_by, schema)?;
            if params.distinct && func.name() == "count" {
                changed |= compare_by_keys(&mut params.args, schema);
            }
            let expression = Expr::AggregateFunction(AggregateFunction { func, params });
            Ok(Transformed::new_transformed(expression, changed))
        }
        Expr::WindowFunction(function) => {
            let WindowFunction { fun, mut params } = *function;
            let mut changed = order_by_keys(&mut params.order_by, schema)?;
            changed |= compare_by_keys(&mut params.partition_by, schema);
            let expression = Expr::from(WindowFunction { fun, params });
            Ok(Transformed::new_transformed(expression, changed))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn sort_key(document: Expr) -> Expr {
    call(operators::sort_key(), vec![document])
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn kind_in(expression: &Expr, schema: &DFSchema) -> Option<JsonKind> {
    expression.get_type(schema).ok().and_then(|data_type| json_kind(&data_type))
}

/// Whether equality and order of `expression` are those of documents: it is a `jsonb`, or a column of documents in a file,
/// whose texts differ where the documents are equal.
fn is_document(expression: &Expr, schema: &DFSchema) -> bool {
    match expression {
        Expr::Alias(alias) => is_document(&alias.expr, schema),
        Expr::Column(column) if schema.field_from_column(column).is_ok_and(|field| is_json_extension(field)) => true,
        other => kind_in(other, schema) == Some(JsonKind::Jsonb),
    }
}

fn convert_cast(cast: Cast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some(from) = kind_in(&cast.expr, schema) else { return Ok(Transformed::no(Expr::Cast(cast))) };
    let value = vec![*cast.expr];
    let target = cast.field.data_type().clone();
    let to_target = |expression: Expr| Expr::Cast(Cast::new(Box::new(expression), target.clone()));
    Ok(Transformed::yes(match (&target, from) {
        (DataType::Utf8, _) => call(document::to_text(), value),
        (DataType::LargeUtf8 | DataType::Utf8View, _) => to_target(call(document::to_text(), value)),
        (other, JsonKind::Jsonb) if other.is_integer() => to_target(call(document::to_integer(), value)),
        (other, JsonKind::Jsonb) if other.is_numeric() => to_target(call(document::to_number(), value)),
        (DataType::Boolean, JsonKind::Jsonb) => call(document::to_boolean(), value),
        (other, _) if json_kind(other) == Some(from) => value.into_iter().next().unwrap_or_default(),
        (other, _) => {
            let name = from.name();
            return plan_err!("cannot cast type {name} to {other}; take text with ->> or #>> '{{}}', and cast that");
        }
    }))
}

/// Replaces documents with their sort keys. Returns whether it replaced any.
fn order_by_keys(sorts: &mut [Sort], schema: &DFSchema) -> Result<bool> {
    let mut changed = false;
    for sort in sorts {
        if is_document(&sort.expr, schema) {
            sort.expr = sort_key(sort.expr.clone());
            changed = true;
        } else if kind_in(&sort.expr, schema) == Some(JsonKind::Json) {
            return plan_err!("could not identify an ordering operator for type json; write ::jsonb");
        }
    }
    Ok(changed)
}

/// Replaces documents whose equality matters by their sort keys. Returns whether it replaced any.
fn compare_by_keys(values: &mut [Expr], schema: &DFSchema) -> bool {
    let mut changed = false;
    for value in values.iter_mut().filter(|value| is_document(value, schema)) {
        *value = sort_key(value.clone());
        changed = true;
    }
    changed
}

/// Orders documents as `jsonb`, and refuses orders and groups of `json`, which PostgreSQL cannot compare.
pub(crate) fn order_documents(node: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::Sort(mut sort) => {
            order_by_keys(&mut sort.expr, schema)?;
            Ok(LogicalPlan::Sort(sort))
        }
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                if is_document(left, schema) && is_document(right, schema) {
                    *left = sort_key(left.clone());
                    *right = sort_key(right.clone());
                }
            }
            Ok(LogicalPlan::Join(join))
        }
        LogicalPlan::Aggregate(aggregate) => {
            if aggregate.group_expr.iter().any(|group| kind_in(group, schema) == Some(JsonKind::Json)) {
                return plan_err!("could not identify an equality operator for type json; write ::jsonb");
            }
            Ok(LogicalPlan::Aggregate(aggregate))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            if input.schema().fields().iter().any(|field| json_kind(field.data_type()) == Some(JsonKind::Json)) {
                return plan_err!("could not identify an equality operator for type json; write ::jsonb");
            }
            Ok(LogicalPlan::Distinct(Distinct::All(input)))
        }
        other => Ok(other),
    }
}

/// Converts JSON values in the output of `plan` to marked text.
pub(crate) fn show_json_as_text(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = plan.schema().clone();
    if !schema.fields().iter().any(|field| holds_json(field.data_type())) {
        return Ok(plan);
    }
    let columns = schema.iter().map(|(qualifier, field)| {
        let column = Expr::from((qualifier, field));
        if holds_json(field.data_type()) {
            call(document::output_function(), vec![column]).alias_qualified(qualifier.cloned(), field.name())
        } else {
            column
        }
    });
    LogicalPlanBuilder::from(plan).project(columns.collect::<Vec<_>>())?.build()
}

/// Groups documents by their sort keys: `1` and `1.0` are equal values of `jsonb` with different texts. Each group
/// returns its first document. The types of `node` must be known.
pub(crate) fn group_by_document_keys(node: LogicalPlan) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::Aggregate(aggregate) if has_documents(&aggregate) => group_by_keys(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
            let aggregate = Aggregate::try_new(input.clone(), columns, Vec::new())?;
            if has_documents(&aggregate) {
                group_by_keys(aggregate)
            } else {
                Ok(LogicalPlan::Distinct(Distinct::All(input)))
            }
        }
        other => Ok(other),
    }
}

fn has_documents(aggregate: &Aggregate) -> bool {
    aggregate.group_expr.iter().any(|group| is_document(group, aggregate.input.schema()))
}

fn group_by_keys(aggregate: Aggregate) -> Result<LogicalPlan> {
    let mut output: Vec<Expr> = aggregate.schema.columns().into_iter().map(Expr::Column).collect();
    let mut groups = Vec::new();
    let mut values = aggregate.aggr_expr.clone();
    for (index, group) in aggregate.group_expr.iter().enumerate() {
        if !is_document(group, aggregate.input.schema()) {
            groups.push(group.clone());
            continue;
        }
        let document = group.clone().unalias();
        let name = format!("document\u{1}{index}");
        groups.push(sort_key(document.clone()).alias(format!("key\u{1}{index}")));
        values.push(first_value(document, vec![]).alias(&name));
        let (qualifier, field) = aggregate.schema.qualified_field(index);
        output[index] = Expr::Column(Column::new_unqualified(name)).alias_qualified(qualifier.cloned(), field.name());
    }
    LogicalPlanBuilder::from(aggregate.input.as_ref().clone()).aggregate(groups, values)?.project(output)?.build()
}

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
                Arrow => call(operators::member(false), both()),
                LongArrow => call(operators::member(true), both()),
                HashArrow => call(operators::at_path(false), both()),
                _ => call(operators::at_path(true), both()),
            }))
        }
        Question | QuestionPipe | QuestionAnd | HashMinus => {
            if left != Some(JsonKind::Jsonb) {
                return refuse_operator(operands, "write value::jsonb on the left side");
            }
            Ok(Some(match operands.op {
                Question if is_text_or_null(&operands.right_type) => call(operators::exists(), both()),
                Question => return refuse_operator(operands, "the right side must be text"),
                QuestionPipe => call(operators::exists_of(true), both()),
                QuestionAnd => call(operators::exists_of(false), both()),
                _ => call(operators::path_deletion(), both()),
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
        Minus if left == Some(JsonKind::Jsonb) => Ok(Some(call(operators::deletion(), both()))),
        AtArrow | ArrowAt | StringConcat if left.is_some() || right.is_some() => plan_symmetric(operands, left, right),
        _ => match operands.comparison() {
            Some(operator) if left.is_some() || right.is_some() => {
                require_jsonb(operands, left, right)?;
                Ok(operators::comparison(operator).map(|function| call(function, both())))
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
            (call(document::to_jsonb(), vec![operand.clone()]), JsonKind::Jsonb.data_type())
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
            Some(_) => call(document::to_text(), vec![operand.clone()]),
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
        BinaryOperator::AtArrow => call(operators::contains(), both),
        BinaryOperator::ArrowAt => call(operators::contains(), both.into_iter().rev().collect()),
        _ => call(operators::concatenation(), both),
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
        Some(JsonKind::Json) => call(document::to_jsonb(), vec![access.expr.clone()]),
        None => return Ok(None),
    };
    let key = match &access.field_access {
        GetFieldAccess::NamedStructField { name } => Expr::Literal(name.clone(), None),
        GetFieldAccess::ListIndex { key } => key.as_ref().clone(),
        GetFieldAccess::ListRange { .. } => return plan_err!("jsonb subscript does not support slices"),
    };
    Ok(Some(call(operators::subscript(), vec![document, key])))
}
