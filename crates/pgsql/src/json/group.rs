//! Groups of equal documents: `1` and `1.0` are one value of `jsonb`, written in two ways.

use datafusion::common::{Column, Result};
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan, LogicalPlanBuilder};

use super::operator_functions;
use super::plan::kind_in;
use crate::function::call;
use crate::json_type::JsonKind;

/// `node`, whose types are known, with documents grouped by their keys of order. Each group shows its first document.
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

fn is_document(aggregate: &Aggregate, group: &Expr) -> bool {
    kind_in(group, aggregate.input.schema()) == Some(JsonKind::Jsonb)
}

fn has_documents(aggregate: &Aggregate) -> bool {
    aggregate.group_expr.iter().any(|group| is_document(aggregate, group))
}

fn group_by_keys(aggregate: Aggregate) -> Result<LogicalPlan> {
    let mut output: Vec<Expr> = aggregate.schema.columns().into_iter().map(Expr::Column).collect();
    let mut groups = Vec::new();
    let mut values = aggregate.aggr_expr.clone();
    for (index, group) in aggregate.group_expr.iter().enumerate() {
        if !is_document(&aggregate, group) {
            groups.push(group.clone());
            continue;
        }
        let document = group.clone().unalias();
        let name = format!("document\u{1}{index}");
        groups.push(call(operator_functions::sort_key(), vec![document.clone()]).alias(format!("key\u{1}{index}")));
        values.push(first_value(document, vec![]).alias(&name));
        let (qualifier, field) = aggregate.schema.qualified_field(index);
        output[index] = Expr::Column(Column::new_unqualified(name)).alias_qualified(qualifier.cloned(), field.name());
    }
    LogicalPlanBuilder::from(aggregate.input.as_ref().clone()).aggregate(groups, values)?.project(output)?.build()
}
