//! Casts: PostgreSQL's input, output and conversion functions.
//!
//! A cast that Arrow performs differently from PostgreSQL becomes a call of [`Conversion`] once types are known
//! ([`convert`]). Types that DataFusion's planner does not support are rewritten before that ([`rewrite_syntax`]). Where a
//! cast column is compared with a constant, the constant is cast instead ([`ConstantCastRule`]).

mod character;
mod compared_constant;
mod conversion;
mod from_text;
mod numeric;
mod to_text;
mod types;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF};

use crate::list::{dimensions, innermost_type, list_type};

pub(crate) use character::{rewrite_character_columns, rewrite_character_keys, rewrite_characters};
pub(crate) use compared_constant::ConstantCastRule;
pub(crate) use conversion::{Conversion, name_conversions};
pub(crate) use from_text::parse_texts;
pub(crate) use types::rewrite_syntax;

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    vec![numeric::function(), types::uuid_function()]
}

/// Replaces a cast of arrays with one of their elements. An array keeps its dimensions, however many the type has.
pub(crate) fn convert_arrays(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Cast(Cast { expr, field }) = expression else { return Ok(Transformed::no(expression)) };
    let (from, to) = (expr.get_type(schema)?, field.data_type());
    let (own, element) = (innermost_type(&from), innermost_type(to));
    let (depth, to_depth) = (dimensions(&from), dimensions(to));
    let is_of_arrays = depth > 0 && to_depth > 0;
    if !is_of_arrays || (depth == to_depth && !conversion::needs_postgres_cast(own, element)?) {
        return Ok(Transformed::no(Expr::Cast(Cast { expr, field })));
    }
    let to = (0..depth).fold(element.clone(), |element, _| list_type(element));
    Ok(Transformed::yes(ScalarUDF::new_from_impl(Conversion::new(to)).call(vec![*expr])))
}

/// Replaces a cast that DataFusion performs differently with PostgreSQL's conversion function.
pub(crate) fn convert(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Cast(Cast { expr, field }) = expression else { return Ok(Transformed::no(expression)) };
    let from = expr.get_type(schema)?;
    if !conversion::needs_postgres_cast(&from, field.data_type())? {
        return Ok(Transformed::no(Expr::Cast(Cast { expr, field })));
    }
    Ok(Transformed::yes(ScalarUDF::new_from_impl(Conversion::new(field.data_type().clone())).call(vec![*expr])))
}
