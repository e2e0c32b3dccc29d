//! Nodes whose declared rows cannot match the conditions of a statement receive no statement.

use std::sync::Arc;

use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{LogicalPlan, Union};

use super::held_rows::may_match;
use super::key_condition::{empty_of, is_empty};
use super::options::NetworkNode;
use crate::federated::MemberTable;

/// Removes the scans of nodes whose declared rows cannot pass the filters, and with them their branches of unions.
pub(super) fn remove_pruned_nodes(plan: LogicalPlan, nodes: &[NetworkNode]) -> Result<LogicalPlan> {
    if nodes.iter().all(|node| node.holds.is_none()) {
        return Ok(plan);
    }
    let pruned = plan.transform_up(|node| match &node {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source)?;
            let Some(table) = provider.downcast_ref::<MemberTable>() else { return Ok(Transformed::no(node)) };
            let holds = nodes.iter().find(|node| node.database.name() == table.member_name());
            let Some(holds) = holds.and_then(|node| node.holds.as_ref()) else { return Ok(Transformed::no(node)) };
            if may_match(holds, table.table_schema(), &scan.filters) {
                return Ok(Transformed::no(node));
            }
            Ok(Transformed::yes(empty_of(&node)))
        }
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            let is_empty = node.inputs().first().is_some_and(|input| is_empty(input));
            Ok(if is_empty { Transformed::yes(empty_of(&node)) } else { Transformed::no(node) })
        }
        LogicalPlan::Union(union) => {
            let kept: Vec<Arc<LogicalPlan>> = union.inputs.iter().filter(|input| !is_empty(input)).cloned().collect();
            if kept.len() == union.inputs.len() {
                return Ok(Transformed::no(node));
            }
            if kept.is_empty() {
                return Ok(Transformed::yes(empty_of(&node)));
            }
            // The union keeps its names, even with one input.
            let union = Union { inputs: kept, schema: union.schema.clone() };
            Ok(Transformed::yes(LogicalPlan::Union(union)))
        }
        _ => Ok(Transformed::no(node)),
    });
    Ok(pruned?.data)
}
