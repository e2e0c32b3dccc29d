//! `json_to_record` and its siblings in FROM, whose columns the alias defines.

use datafusion::common::{Column, Result, plan_err};
use datafusion::common::{NullHandling, UnnestOptions};
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{Expr, Ident, TableAlias};

use super::rewrite_expression;
use crate::json::column_value;
use crate::set_returning::list_function;
use crate::syntax::call;

/// The column with the documents of the rows.
const RECORDS: &str = "rows 0";

/// Whether the function, whose name is in lower case, returns rows of which the alias defines the columns.
pub(super) fn is_record_function(name: &str) -> bool {
    matches!(name, "json_to_record" | "jsonb_to_record" | "json_to_recordset" | "jsonb_to_recordset")
}

/// The rows that `function` of `args` returns.
pub(super) fn plan(
    function: &str,
    args: Vec<Expr>,
    alias: Option<&TableAlias>,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let columns = alias.map_or(&[][..], |alias| alias.columns.as_slice());
    if columns.is_empty() || columns.iter().any(|column| column.data_type.is_none()) {
        return plan_err!(
            "{function} needs the names and types of its columns; write FROM {function}(…) AS t(id int, name text)"
        );
    }
    let none = datafusion::common::DFSchema::empty();
    let records = context.sql_to_expr(call(&list_function(function), args), &none)?;
    let options = UnnestOptions::new().with_null_handling(NullHandling::Drop);
    let rows = LogicalPlanBuilder::empty(true)
        .project([records.alias(RECORDS)])?
        .unnest_columns_with_options(vec![Column::new_unqualified(RECORDS)], options)?
        .build()?;
    let mut output = Vec::new();
    for column in columns {
        let Some(data_type) = &column.data_type else { continue };
        // A name without quotes is one in lower case.
        let name = &column.name;
        let key = if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() };
        let mut value = column_value(Expr::Identifier(Ident::with_quote('"', RECORDS)), &key, data_type)?;
        rewrite_expression(&mut value)?;
        output.push(context.sql_to_expr(value, rows.schema())?.alias(&name.value));
    }
    LogicalPlanBuilder::from(rows).project(output)?.build()
}
