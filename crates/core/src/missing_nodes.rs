//! The nodes of a network whose rows an answer lacks.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::name_pattern::shorten;

/// The number of nodes that a sentence names with their reasons.
const NODES_NAMED_MAX: usize = 10;
/// The number of characters of a reason in a sentence.
const REASON_CHARS_MAX: usize = 160;

/// The nodes whose rows an answer lacks. It is never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingNodes {
    /// The nodes, ordered by name.
    pub nodes: Vec<MissingNode>,
    /// The number of rows of the tables of the statement on all nodes, as last known, if it is known of each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_total: Option<u64>,
}

/// A node whose rows an answer lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingNode {
    /// The name.
    pub name: String,
    /// Why, for the caller.
    pub reason: String,
    /// The number of rows of the tables of the statement that it holds, as last known.
    #[serde(default)]
    pub rows: Option<u64>,
}

impl MissingNodes {
    /// The part of the rows that is missing, from 0 to 1, as last known.
    pub fn share(&self) -> Option<f64> {
        let missing = self.nodes.iter().try_fold(0_u64, |sum, node| Some(sum.saturating_add(node.rows?)))?;
        let total = self.rows_total.filter(|total| *total > 0)?;
        // The two numbers may be of different times.
        Some((missing as f64 / total as f64).min(1.0))
    }

    /// The names, separated by commas.
    pub fn names(&self) -> String {
        self.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The nodes of both. A number of rows that differs is unknown: the two may be about different tables.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut nodes: BTreeMap<&str, MissingNode> = BTreeMap::new();
        for node in self.nodes.iter().chain(&other.nodes) {
            let known = nodes.entry(&node.name).or_insert_with(|| node.clone());
            known.rows = known.rows.filter(|rows| node.rows == Some(*rows));
        }
        let rows_total = self.rows_total.filter(|total| other.rows_total == Some(*total));
        Self { nodes: nodes.into_values().collect(), rows_total }
    }

    /// The members of a JSON object that describes the answer: `partial`, `missing_nodes`, and `missing_rows_share` if
    /// it is known.
    pub fn to_json_members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("partial".to_owned(), true.into());
        members.insert("missing_nodes".to_owned(), self.nodes_as_json());
        if let Some(share) = self.share() {
            members.insert("missing_rows_share".to_owned(), ((share * 10_000.0).round() / 10_000.0).into());
        }
        members
    }

    /// `[{"name":…,"reason":…,"rows":…},…]`; `rows` is null if it is unknown.
    pub fn nodes_as_json(&self) -> Value {
        // The members are texts and numbers.
        serde_json::to_value(&self.nodes).unwrap_or_default()
    }
}

impl fmt::Display for MissingNodes {
    /// A sentence for people and models.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.nodes.len();
        let nodes = if count == 1 { "node" } else { "nodes" };
        write!(f, "This answer is partial: it lacks the rows of {count} {nodes}")?;
        match self.share() {
            Some(share) if share < 0.01 => f.write_str(", less than 1 % of all rows")?,
            Some(share) => write!(f, ", about {:.0} % of all rows", share * 100.0)?,
            None => {}
        }
        for (index, node) in self.nodes.iter().take(NODES_NAMED_MAX).enumerate() {
            f.write_str(if index == 0 { ": " } else { ", " })?;
            write!(f, "{} ({})", node.name, reason_line(&node.reason))?;
        }
        match count.saturating_sub(NODES_NAMED_MAX) {
            0 => f.write_str("."),
            more => write!(f, " and {more} more."),
        }
    }
}

/// The reason as a part of a sentence: one line without its full stop.
fn reason_line(reason: &str) -> String {
    let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(line.trim_end_matches('.'), REASON_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(nodes: &[(&str, &str, Option<u64>)], rows_total: Option<u64>) -> MissingNodes {
        let node = |(name, reason, rows): &(&str, &str, Option<u64>)| MissingNode {
            name: (*name).to_owned(),
            reason: (*reason).to_owned(),
            rows: *rows,
        };
        MissingNodes { nodes: nodes.iter().map(node).collect(), rows_total }
    }

    #[test]
    fn a_sentence_names_nodes_reasons_and_the_share() {
        let many: Vec<String> = (0..12).map(|index| format!("n{index:02}")).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), "is away", None)).collect();
        let sentences = [
            missing(&[("oslo", "did not answer within 20 s.", Some(30))], Some(80)),
            missing(&[("oslo", "first line\nsecond line", Some(1)), ("rome", "refused", Some(0))], Some(1_000)),
            missing(&[("oslo", &"x".repeat(200), None)], Some(80)),
            missing(&many, None),
        ];
        insta::assert_snapshot!(sentences.map(|sentence| sentence.to_string()).join("\n"), @"
        This answer is partial: it lacks the rows of 1 node, about 38 % of all rows: oslo (did not answer within 20 s).
        This answer is partial: it lacks the rows of 2 nodes, less than 1 % of all rows: oslo (first line second line), rome (refused).
        This answer is partial: it lacks the rows of 1 node: oslo (xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…).
        This answer is partial: it lacks the rows of 12 nodes: n00 (is away), n01 (is away), n02 (is away), n03 (is away), n04 (is away), n05 (is away), n06 (is away), n07 (is away), n08 (is away), n09 (is away) and 2 more.
        ");
    }

    #[test]
    fn json_members_have_the_share_if_it_is_known() {
        let known = missing(&[("oslo", "is away", Some(1))], Some(3));
        let unknown = missing(&[("oslo", "is away", None)], Some(3));
        let members = [known, unknown].map(|missing| Value::Object(missing.to_json_members()).to_string());
        insta::assert_snapshot!(members.join("\n"), @r#"
        {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":1}],"missing_rows_share":0.3333}
        {"partial":true,"missing_nodes":[{"name":"oslo","reason":"is away","rows":null}]}
        "#);
    }

    #[test]
    fn a_union_keeps_only_numbers_that_agree() {
        let one = missing(&[("oslo", "is away", Some(1)), ("rome", "refuses", Some(2))], Some(9));
        let other = missing(&[("bern", "is slow", Some(5)), ("rome", "is away", Some(3))], Some(9));
        let union = one.union(&other);
        let expected =
            missing(&[("bern", "is slow", Some(5)), ("oslo", "is away", Some(1)), ("rome", "refuses", None)], Some(9));
        assert_eq!(union, expected);
        assert_eq!(one.union(&one), one);
        assert_eq!(one.union(&missing(&[("rome", "refuses", Some(2))], Some(8))).rows_total, None);
    }

    #[test]
    fn reads_what_it_wrote() {
        let written = missing(&[("oslo", "is away", Some(1)), ("rome", "\"refuses\"", None)], Some(9));
        let text = serde_json::to_string(&written).unwrap();
        assert_eq!(serde_json::from_str::<MissingNodes>(&text).unwrap(), written);
        let nodes: Vec<MissingNode> = serde_json::from_value(written.nodes_as_json()).unwrap();
        assert_eq!(nodes, written.nodes);
    }
}
