//! Casts: PostgreSQL's input, output and conversion functions.
//!
//! A cast that Arrow performs differently from PostgreSQL becomes a call of [`Conversion`] once types are known
//! ([`convert`]). Types that DataFusion's planner does not support are rewritten before that ([`rewrite_syntax`]).

mod character;
mod conversion;
mod from_text;
mod numeric;
mod to_text;
mod types;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF};

pub(crate) use character::{rewrite_character_columns, rewrite_character_keys, rewrite_characters};
pub(crate) use conversion::{Conversion, name_conversions};
pub(crate) use from_text::parse_texts;
pub(crate) use types::rewrite_syntax;

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    vec![numeric::function(), types::uuid_function()]
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
