//! Plans as text, and estimates before execution.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, displayable};

/// Maximum number of characters of a plan's text. Plans over many files are long.
const EXPLAIN_CHARACTERS_MAX: usize = 20_000;

/// The queries sent to other databases, then the logical and the physical plan, indented. Files appear with their
/// location in the database.
pub(crate) fn format_plan(logical: &LogicalPlan, physical: &dyn ExecutionPlan, member_queries: &[String]) -> String {
    let member_queries = match member_queries {
        [] => String::new(),
        queries => format!("Queries sent to the databases:\n  {}\n\n", queries.join("\n  ")),
    };
    let text = format!(
        "{member_queries}Logical plan:\n{}\n\nPhysical plan:\n{}",
        logical.display_indent(),
        displayable(physical).indent(false)
    );
    match text.char_indices().nth(EXPLAIN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}\n… (cut off)", &text[..end]),
        None => text.trim_end().to_owned(),
    }
}

pub(crate) fn estimated_rows(physical: &dyn ExecutionPlan) -> Option<u64> {
    let statistics = StatisticsContext::new().compute(physical, &StatisticsArgs::new()).ok()?;
    statistics.num_rows.get_value().and_then(|rows| u64::try_from(*rows).ok())
}

pub(crate) fn estimated_bytes(physical: &std::sync::Arc<dyn ExecutionPlan>) -> Option<u64> {
    let mut bytes = None;
    let walked = physical.apply(|node| {
        if let Some(scan) = node.downcast_ref::<DataSourceExec>()
            && let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>()
        {
            let files = config.file_groups.iter().flat_map(FileGroup::iter);
            *bytes.get_or_insert(0) += files.map(|file| file.effective_size()).sum::<u64>();
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.ok()?;
    bytes
}
