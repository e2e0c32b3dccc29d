//! The planner's estimate for a statement.

use serde_json::Value;
use tidegate_core::{Error, ErrorKind};
use tidegate_sql::Statement;
use tokio_postgres::types::ToSql;

use crate::error;
use crate::pool::Lease;
use crate::values::{BoundParameter, RawBytes};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlanEstimate {
    rows: u64,
    cost: f64,
    is_pipeline_breaking: bool,
    plan: Value,
    /// Whether the statistics behind the plan contain what the role may not read. Then nothing of it goes to the caller:
    /// each number, and each choice between two ways to join, would show how often a value occurs in the rows of others.
    is_hidden: bool,
}

/// Instead of a plan that is hidden.
pub(crate) const HIDDEN_PLAN: &str = "The plan is hidden: it depends on all rows and columns of the tables that the \
    statement reads, and your role may not read all of them.";

/// Whether the role may not read some rows or columns of a table that the transaction has locked to plan a statement, also
/// behind views. A partition is read with the privileges and policies of its parents. The tables of the server itself
/// have object identifiers below 16384.
const HAS_UNREADABLE_PARTS_SQL: &str = "
WITH RECURSIVE line AS (
  SELECT c.oid AS relation, c.oid AS ancestor
  FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation
  WHERE l.locktype = 'relation' AND l.pid = pg_catalog.pg_backend_pid()
    AND c.relkind IN ('r', 'p', 'm', 'f') AND c.oid >= 16384
  UNION SELECT line.relation, i.inhparent FROM line JOIN pg_catalog.pg_inherits i ON i.inhrelid = line.ancestor)
SELECT EXISTS (
  SELECT FROM line GROUP BY relation
  HAVING pg_catalog.bool_or(pg_catalog.row_security_active(ancestor))
    OR NOT pg_catalog.bool_or(pg_catalog.has_table_privilege(ancestor, 'SELECT')))";

/// Members of a plan node that describe it, in addition to its type.
const DETAILS: [(&str, &str); 8] = [
    ("Relation Name", "on "),
    ("Index Name", "using "),
    ("CTE Name", "of "),
    ("Join Type", "join: "),
    ("Strategy", ""),
    ("Hash Cond", "where "),
    ("Index Cond", "where "),
    ("Filter", "filter: "),
];
const DEPTH_MAX: usize = 40;

impl PlanEstimate {
    /// Requests the estimate from the server, in the transaction of `lease`, which keeps the locks of the tables.
    pub(crate) async fn request(lease: &Lease, statement: &Statement, database: &str) -> Result<Self, Error> {
        let text = format!("EXPLAIN (FORMAT JSON) {}", statement.text());
        let bound = BoundParameter::bind_all(statement.parameters())?;
        let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        let client = lease.session()?.client();
        let requested = client.query_one(&text, &bound).await;
        let row = requested.map_err(|error| error::statement_error(&error, database, &text))?;
        let unreadable = |error: &dyn std::fmt::Display| Error::internal(format!("a plan of {database}: {error}"));
        let RawBytes(json) = row.try_get(0).map_err(|error| unreadable(&error))?;
        let mut plan: Value = serde_json::from_slice(json.unwrap_or_default()).map_err(|error| unreadable(&error))?;
        let locked = client.query_typed(HAS_UNREADABLE_PARTS_SQL, &[]).await;
        let locked = locked.map_err(|error| error::internal_statement_error(&error, database))?;
        let is_hidden = locked.first().is_none_or(|row| row.try_get(0).unwrap_or(true));
        Ok(Self::from_plan(plan.pointer_mut("/0/Plan").map(Value::take).unwrap_or_default(), is_hidden))
    }

    fn from_plan(plan: Value, is_hidden: bool) -> Self {
        let number = |name: &str| plan.get(name).and_then(Value::as_f64).unwrap_or_default();
        let (rows, cost, startup) = (number("Plan Rows"), number("Total Cost"), number("Startup Cost"));
        // If most of the cost arises before the first row, rows cannot be streamed meanwhile.
        Self { rows: rows as u64, cost, is_pipeline_breaking: cost > 0.0 && startup > 0.9 * cost, plan, is_hidden }
    }

    /// The expected number of rows; `None` if it is hidden.
    pub(crate) fn rows(&self) -> Option<u64> {
        (!self.is_hidden).then_some(self.rows)
    }

    /// Whether most of the cost arises before the first row; `None` if it is hidden.
    pub(crate) fn is_pipeline_breaking(&self) -> Option<bool> {
        (!self.is_hidden).then_some(self.is_pipeline_breaking)
    }

    /// The plan as an indented tree, or why it is hidden.
    pub(crate) fn render(&self) -> String {
        if self.is_hidden {
            return HIDDEN_PLAN.to_owned();
        }
        let line = |(depth, node): (usize, &Value)| format!("{}{}\n", "  ".repeat(depth), node_title(node));
        nodes(&self.plan).into_iter().map(line).collect()
    }

    /// Rejects a statement whose estimated cost exceeds `max`; the error names the most expensive node of a plan that is not
    /// hidden.
    pub(crate) fn check_cost(&self, max: f64) -> Result<(), Error> {
        if self.cost <= max {
            return Ok(());
        }
        let hint = "Use conditions on indexed columns, or fewer joins.";
        if self.is_hidden {
            let message = format!("the estimated cost of the statement exceeds the limit, which is {max:.0}");
            return Err(Error::new(ErrorKind::TooLarge, message).with_hint(hint));
        }
        let cost = |node: &Value| node.get("Total Cost").and_then(Value::as_f64).unwrap_or_default();
        let own_cost = |node: &Value| cost(node) - children(node).iter().map(cost).sum::<f64>();
        let costliest = nodes(&self.plan).into_iter().max_by(|(_, a), (_, b)| own_cost(a).total_cmp(&own_cost(b)));
        let message = format!(
            "the estimated cost of the statement is {:.0}, and the limit is {max:.0}; most expensive step: {}",
            self.cost,
            costliest.map(|(_, node)| node_title(node)).unwrap_or_default()
        );
        Err(Error::new(ErrorKind::TooLarge, message)
            .with_hint(format!("{hint} The tool explain shows the whole plan.")))
    }
}

/// The nodes of a plan with their depths, parents first, up to the maximum depth.
fn nodes(plan: &Value) -> Vec<(usize, &Value)> {
    let (mut nodes, mut stack) = (Vec::new(), vec![(0, plan)]);
    while let Some((depth, node)) = stack.pop() {
        nodes.push((depth, node));
        if depth < DEPTH_MAX {
            stack.extend(children(node).iter().rev().map(|child| (depth + 1, child)));
        }
    }
    nodes
}

fn node_title(node: &Value) -> String {
    let member = |name: &str| node.get(name).and_then(Value::as_str);
    let mut title = member("Node Type").unwrap_or("Step").to_owned();
    for (name, words) in DETAILS {
        if let Some(value) = member(name).filter(|value| *value != "Plain" && *value != "Inner") {
            title.push_str(&format!(" {words}{value}"));
        }
    }
    let number = |name: &str| node.get(name).and_then(Value::as_f64).unwrap_or_default();
    format!("{title} (rows {:.0}, cost {:.0})", number("Plan Rows"), number("Total Cost"))
}

fn children(node: &Value) -> &[Value] {
    node.get("Plans").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
