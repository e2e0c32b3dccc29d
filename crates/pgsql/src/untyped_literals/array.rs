//! Literals in `ARRAY[…]`.

use datafusion::common::{DFSchema, Result, exec_err};
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::{common_type, is_text, is_untyped, type_literal};

/// The elements of an array, with the type that literals among them take.
///
/// # Errors
/// If the elements have no type in common, a literal names no value of it, or inner arrays have different lengths.
pub(crate) fn plan_array(elements: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    check_lengths(&elements)?;
    if !elements.iter().any(is_untyped) && elements.iter().all(|element| matches!(element, Expr::Literal(..))) {
        return Ok(elements);
    }
    let types = elements.iter().filter(|element| !is_untyped(element)).map(|element| element.get_type(schema));
    let Ok(types) = types.collect::<Result<Vec<_>>>() else { return Ok(elements) };
    match common_type("ARRAY", &types)?.filter(|common| !is_text(common)) {
        Some(common) => elements.into_iter().map(|element| type_literal(element, &common)).collect(),
        None => Ok(elements),
    }
}

/// Arrays that are written out must be as long as each other.
fn check_lengths(elements: &[Expr]) -> Result<()> {
    let mut shapes = elements.iter().map(shape).filter(|shape| !shape.is_empty());
    let first = shapes.next();
    if shapes.any(|other| Some(other) != first) {
        return exec_err!("multidimensional arrays must have array expressions with matching dimensions");
    }
    Ok(())
}

/// The lengths of an array that is written out, of each dimension.
fn shape(expression: &Expr) -> Vec<usize> {
    match expression {
        Expr::ScalarFunction(call) if call.func.name() == "make_array" => {
            let inner = call.args.first().map(shape).unwrap_or_default();
            [vec![call.args.len()], inner].concat()
        }
        _ => Vec::new(),
    }
}
