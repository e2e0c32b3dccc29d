//! Casts: PostgreSQL's input, output and conversion functions.

mod number;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::sql::sqlparser::ast;

pub(crate) use number::{float, integer};

/// The scalar functions of this family. One with the name of a function of DataFusion takes its place.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    Vec::new()
}

/// Rewrites syntax that DataFusion's planner lacks, or means otherwise, into calls of functions of this family.
/// Inner expressions were rewritten before.
pub(crate) fn rewrite_syntax(_expression: &mut ast::Expr) -> Result<()> {
    Ok(())
}

/// The conversion function of PostgreSQL that `expression` means, if it is a cast that DataFusion does otherwise.
pub(crate) fn convert(expression: Expr, _schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(Transformed::no(expression))
}
