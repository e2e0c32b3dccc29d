//! The planner's estimate for a statement.

use serde_json::Value;
use tidegate_core::{Error, ErrorKind};
use tidegate_sql::Statement;
use tokio_postgres::types::ToSql;

use crate::error;
use crate::lease::Lease;
use crate::values::{BoundParameter, RawBytes};

/// The planner's estimate for a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlanEstimate {
    pub(crate) rows: u64,
    pub(crate) cost: f64,
    pub(crate) is_pipeline_breaking: bool,
    plan: Value,
}

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
/// The maximum depth of a rendered plan.
const DEPTH_MAX: usize = 40;

impl PlanEstimate {
    /// Requests the estimate from the server, in the transaction of `lease`.
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
        Ok(Self::from_plan(plan.pointer_mut("/0/Plan").map(Value::take).unwrap_or_default()))
    }

    fn from_plan(plan: Value) -> Self {
        let number = |name: &str| plan.get(name).and_then(Value::as_f64).unwrap_or_default();
        let (rows, cost, startup) = (number("Plan Rows"), number("Total Cost"), number("Startup Cost"));
        // If most of the cost arises before the first row, rows cannot be streamed meanwhile.
        Self { rows: rows as u64, cost, is_pipeline_breaking: cost > 0.0 && startup > 0.9 * cost, plan }
    }

    /// The plan as an indented tree.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        write_node(&self.plan, 0, &mut text);
        text
    }

    /// Rejects a statement whose estimated cost exceeds `max`; the error names the most expensive node.
    pub(crate) fn check_cost(&self, max: f64) -> Result<(), Error> {
        if self.cost <= max {
            return Ok(());
        }
        let mut worst = (0.0, String::new());
        find_costliest_node(&self.plan, 0, &mut worst);
        let message = format!(
            "the estimated cost of the statement is {:.0}, and the limit is {max:.0}; most expensive step: {}",
            self.cost, worst.1
        );
        Err(Error::new(ErrorKind::TooLarge, message)
            .with_hint("Use conditions on indexed columns, or fewer joins. The tool explain shows the whole plan."))
    }
}

fn write_node(node: &Value, depth: usize, text: &mut String) {
    if depth > DEPTH_MAX {
        return;
    }
    let indent = "  ".repeat(depth);
    text.push_str(&format!("{indent}{}\n", node_title(node)));
    for child in children(node) {
        write_node(child, depth + 1, text);
    }
}

/// One node in one line: what it does, with its estimates.
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

/// Finds the node with the highest cost of its own, without the cost of its children.
fn find_costliest_node(node: &Value, depth: usize, worst: &mut (f64, String)) {
    let cost = |node: &Value| node.get("Total Cost").and_then(Value::as_f64).unwrap_or_default();
    let own = cost(node) - children(node).iter().map(cost).sum::<f64>();
    if own >= worst.0 {
        *worst = (own, node_title(node));
    }
    if depth < DEPTH_MAX {
        children(node).iter().for_each(|child| find_costliest_node(child, depth + 1, worst));
    }
}
