//! Reads SQLite's description of a plan before it runs.

use std::collections::HashMap;

/// A summary of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlanSummary {
    /// The steps as an indented tree.
    pub(super) text: String,
    /// Whether the first row requires the whole input.
    pub(super) is_pipeline_breaking: bool,
    /// The maximum number of rows, if the statement limits it.
    pub(super) rows_max: Option<u64>,
}

impl PlanSummary {
    /// Summarises the `steps` (number, number of the parent, text) of `sql`.
    pub(super) fn from_steps(sql: &str, steps: &[(i64, i64, String)]) -> Self {
        Self {
            text: format_tree(steps),
            is_pipeline_breaking: is_pipeline_breaking(sql, steps),
            rows_max: trailing_limit(sql),
        }
    }
}

/// Parents precede their children.
fn format_tree(steps: &[(i64, i64, String)]) -> String {
    let mut depths = HashMap::new();
    let mut lines = Vec::with_capacity(steps.len());
    for (number, parent, text) in steps {
        let depth = depths.get(parent).map_or(0, |depth| depth + 1);
        depths.insert(number, depth);
        lines.push(format!("{}{text}", "  ".repeat(depth)));
    }
    lines.join("\n")
}

/// Functions that need all rows before they return one.
const AGGREGATES: &[&str] =
    &["avg(", "count(", "group_concat(", "json_group_array(", "json_group_object(", "string_agg(", "sum(", "total("];

/// Whether the plan sorts or aggregates. A false match in the text only delays the rows of a result that is small
/// anyway.
fn is_pipeline_breaking(sql: &str, steps: &[(i64, i64, String)]) -> bool {
    let sorts = |text: &str| {
        text.starts_with("USE TEMP B-TREE FOR ORDER BY") || text.starts_with("USE TEMP B-TREE FOR GROUP BY")
    };
    let sql = sql.to_lowercase();
    steps.iter().any(|(_, parent, text)| *parent == 0 && sorts(text))
        || AGGREGATES.iter().any(|name| sql.contains(name))
}

/// The number of a LIMIT at the end of the statement, which therefore applies to the whole statement.
fn trailing_limit(sql: &str) -> Option<u64> {
    // A comment could contain the LIMIT.
    if sql.contains("--") || sql.contains("/*") {
        return None;
    }
    let (before, number) = sql.trim_end().rsplit_once(char::is_whitespace)?;
    let number = number.parse().ok()?;
    let (_, word) = before.trim_end().rsplit_once(char::is_whitespace)?;
    word.eq_ignore_ascii_case("LIMIT").then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_limit_bounds_the_rows() {
        assert_eq!(trailing_limit("SELECT a FROM t LIMIT 20"), Some(20));
        assert_eq!(trailing_limit("SELECT a FROM t limit\n 20 "), Some(20));
        assert_eq!(trailing_limit("SELECT a FROM t LIMIT 20 OFFSET 5"), None);
        assert_eq!(trailing_limit("SELECT * FROM (SELECT a FROM t LIMIT 20)"), None);
        assert_eq!(trailing_limit("SELECT a FROM t -- LIMIT 20"), None);
        assert_eq!(trailing_limit("SELECT 'LIMIT 20'"), None);
        assert_eq!(trailing_limit("SELECT a FROM t LIMIT $1"), None);
    }
}
