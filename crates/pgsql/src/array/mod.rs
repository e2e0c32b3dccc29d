//! Arrays.

use arrow::array::{ArrayRef, StringArray};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::sql::sqlparser::ast;

use crate::operator::Operands;

/// The scalar functions of this family. One with the name of a function of DataFusion takes its place.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    Vec::new()
}

/// The expression that the operator means for operands of these types; none if it is not of this family.
pub(crate) fn plan_operator(_operands: &Operands<'_>) -> Result<Option<Expr>> {
    Ok(None)
}

/// Rewrites syntax that DataFusion's planner lacks, or means otherwise, into calls of functions of this family.
/// Inner expressions were rewritten before.
pub(crate) fn rewrite_syntax(_expression: &mut ast::Expr) -> Result<()> {
    Ok(())
}

/// The text of arrays, as `{1,2,NULL}`.
pub(crate) fn output(values: &ArrayRef) -> Result<StringArray> {
    plan_err!("the text of {} is not known yet; write array_to_string(x, ',')", values.data_type())
}
