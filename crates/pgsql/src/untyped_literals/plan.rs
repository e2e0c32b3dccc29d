//! Literals in expressions of a plan.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Case, Expr, ExprSchemable};

use super::{choice, common_type, is_text, is_untyped, type_literal, values};

/// `expression` with the types that its literals take, if it is one whose operands have a common type.
pub(crate) fn type_literals(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expression {
        Expr::Case(case) => type_case(case, schema),
        Expr::ScalarFunction(call) => match values::resolve_literal(&call, schema)? {
            Some(literal) => Ok(Transformed::yes(literal)),
            None => choice::resolve_choice(call, schema),
        },
        other => Ok(Transformed::no(other)),
    }
}

fn type_case(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut is_changed = false;
    if let Some(operand) = &mut case.expr {
        let compared = operand.get_type(schema)?;
        let has_type = !is_untyped(operand) && !compared.is_null() && !is_text(&compared);
        for (when, _) in case.when_then_expr.iter_mut().filter(|(when, _)| has_type && is_untyped(when)) {
            **when = type_literal(std::mem::take(when.as_mut()), &compared)?;
            is_changed = true;
        }
    }
    let results = || case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
    let types = results().filter(|result| !is_untyped(result)).map(|result| result.get_type(schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    if let Some(common) = common_type("CASE", &types)?.filter(|common| !is_text(common)) {
        for result in case.when_then_expr.iter_mut().map(|(_, then)| then).chain(&mut case.else_expr) {
            if is_untyped(result) {
                **result = type_literal(std::mem::take(result.as_mut()), &common)?;
                is_changed = true;
            }
        }
    }
    let case = Expr::Case(case);
    Ok(if is_changed { Transformed::yes(case) } else { Transformed::no(case) })
}
