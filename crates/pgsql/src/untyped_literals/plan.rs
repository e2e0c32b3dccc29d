//! Types the untyped literals of a plan: in CASE, `ARRAY[…]` and UNION.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, exec_err};
use datafusion::logical_expr::{Case, Expr, ExprSchemable, LogicalPlan, Operator, Projection, Union};

use super::{becomes_float, choice, is_untyped, literal_target, type_literal, type_operand, values};
use crate::data_type::is_text_or_dictionary;
use crate::{number, time};

/// Types the literals of `expression` if its operands must have a common type.
pub(crate) fn type_literals(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expression {
        Expr::Case(case) => type_case(case, schema),
        Expr::ScalarFunction(call) => match values::resolve_value(&call, schema)? {
            Some(value) => Ok(Transformed::yes(value)),
            None => choice::resolve_choice(call, schema),
        },
        other => Ok(Transformed::no(other)),
    }
}

fn type_case(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut is_changed = false;
    if let Some(operand) = &mut case.expr {
        let compared = operand.get_type(schema)?;
        let has_type = !is_untyped(operand) && !compared.is_null() && !is_text_or_dictionary(&compared);
        for (when, _) in case.when_then_expr.iter_mut().filter(|(when, _)| has_type && is_untyped(when)) {
            **when = type_literal(std::mem::take(when.as_mut()), &compared)?;
            is_changed = true;
        }
        let whens = case.when_then_expr.iter().map(|(when, _)| when.get_type(schema));
        let types = std::iter::once(Ok(compared)).chain(whens).collect::<Result<Vec<_>>>()?;
        if let [compared, whens @ ..] = types.as_slice() {
            whens.iter().try_for_each(|when| time::check_comparable(compared, Operator::Eq, when))?;
        }
        if let Some(wide) = number::wide_type(&types) {
            let whens = case.when_then_expr.iter_mut().map(|(when, _)| when);
            for compared in std::iter::once(operand).chain(whens) {
                **compared = number::widen_operand(std::mem::take(compared.as_mut()), &wide);
            }
            is_changed = true;
        }
    }
    let results = || case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
    let types = results().filter(|result| !is_untyped(result)).map(|result| result.get_type(schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    if let Some(common) = literal_target("CASE", &types)? {
        for result in case.when_then_expr.iter_mut().map(|(_, then)| then).chain(&mut case.else_expr) {
            let typed = type_operand(std::mem::take(result.as_mut()), &common, schema)?;
            is_changed |= typed.transformed;
            **result = typed.data;
        }
    }
    Ok(Transformed::new_transformed(Expr::Case(case), is_changed))
}

/// Types the literals among the elements of an array.
pub(crate) fn plan_array(elements: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    check_lengths(&elements)?;
    if !elements.iter().any(is_untyped) && elements.iter().all(|element| matches!(element, Expr::Literal(..))) {
        return Ok(elements);
    }
    let types = elements.iter().filter(|element| !is_untyped(element)).map(|element| element.get_type(schema));
    let Ok(types) = types.collect::<Result<Vec<_>>>() else { return Ok(elements) };
    match literal_target("ARRAY", &types)? {
        Some(common) => {
            let typed = |element| type_operand(element, &common, schema).map(|typed| typed.data);
            elements.into_iter().map(typed).collect()
        }
        None => Ok(elements),
    }
}

/// Fails if array constructors among `elements` have different lengths.
pub(super) fn check_lengths(elements: &[Expr]) -> Result<()> {
    let mut shapes = elements.iter().map(shape).filter(|shape| !shape.is_empty());
    let first = shapes.next();
    if shapes.any(|other| Some(other) != first) {
        return exec_err!("multidimensional arrays must have array expressions with matching dimensions");
    }
    Ok(())
}

/// Returns the length of each dimension of an array constructor.
fn shape(expression: &Expr) -> Vec<usize> {
    match expression {
        Expr::ScalarFunction(call) if call.func.name() == "make_array" => {
            let inner = call.args.first().map(shape).unwrap_or_default();
            [vec![call.args.len()], inner].concat()
        }
        _ => Vec::new(),
    }
}

/// Types the literals in the columns of a UNION.
pub(crate) fn type_union(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(Union { mut inputs, schema }) = node else { return Ok(Transformed::no(node)) };
    // A UNION within this one may have got other types, and DataFusion's coercion begins with those of the schema.
    let mut is_changed = inputs.first().is_some_and(|first| {
        let mut types = first.schema().fields().iter().zip(schema.fields());
        types.any(|(own, planned)| own.data_type() != planned.data_type())
    });
    for column in 0..schema.fields().len() {
        let typed = inputs.iter().filter(|input| !is_literal(input, column));
        let types: Vec<_> = typed.map(|input| input.schema().field(column).data_type().clone()).collect();
        let Some(common) = literal_target("UNION", &types)? else { continue };
        for input in inputs.iter_mut().filter(|input| becomes_float(input.schema().field(column).data_type(), &common))
        {
            *input = Arc::new(widen_column(input, column, &common)?);
            is_changed = true;
        }
        for input in inputs.iter_mut().filter(|input| is_literal(input, column)) {
            let projection = Arc::unwrap_or_clone(input.clone());
            let LogicalPlan::Projection(Projection { mut expr, input: below, .. }) = projection else { continue };
            let literal = std::mem::take(&mut expr[column]);
            let replaced = literal.transform_up(|part| {
                if is_untyped(&part) {
                    type_literal(part, &common).map(Transformed::yes)
                } else {
                    Ok(Transformed::no(part))
                }
            })?;
            expr[column] = replaced.data;
            *input = Arc::new(LogicalPlan::Projection(Projection::try_new(expr, below)?));
            is_changed = true;
        }
    }
    if !is_changed {
        return Ok(Transformed::no(LogicalPlan::Union(Union { inputs, schema })));
    }
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// Converts a column of numerics to the floating-point type `common`.
fn widen_column(plan: &Arc<LogicalPlan>, column: usize, common: &DataType) -> Result<LogicalPlan> {
    let output = plan.schema().iter().enumerate().map(|(position, (qualifier, field))| {
        let value = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        if position != column {
            return value;
        }
        number::widen_operand(value, common).alias_qualified(qualifier.cloned(), field.name())
    });
    Ok(LogicalPlan::Projection(Projection::try_new(output.collect(), plan.clone())?))
}

/// Whether a column of `plan` is an untyped literal.
fn is_literal(plan: &LogicalPlan, column: usize) -> bool {
    let LogicalPlan::Projection(projection) = plan else { return false };
    let mut expression = projection.expr.get(column);
    while let Some(Expr::Alias(alias)) = expression {
        expression = Some(&alias.expr);
    }
    expression.is_some_and(is_untyped)
}
