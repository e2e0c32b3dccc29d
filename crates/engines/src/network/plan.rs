//! A planned statement of a network. All nodes receive their statements at once, before any of its operators runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use futures::future::join_all;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{MissingNode, MissingNodes, Plan, QueryRows, is_node_failure};
use tidegate_runtime::Job;

use super::nodes::nodes_failed_error;
use super::options::PartialAnswers;
use super::part_reader::{PartReader, ReducedPlan};
use super::tables::node_queries;
use crate::embedded::{EmbeddedPlan, QueryCancellation};
use crate::federated::{MemberExec, StartOutcome};

/// Maximum number of statements that one statement of a caller sends to nodes at the same time.
const NODE_STATEMENTS_MAX: usize = 1_024;

pub(super) struct NetworkPlan {
    pub(super) plan: EmbeddedPlan,
    pub(super) cancellation: QueryCancellation,
    pub(super) starter: NodeStarter,
    /// The parts that are read first.
    pub(super) part_reader: Option<PartReader>,
}

/// The nodes of a plan, or of several parts of a statement.
#[derive(Debug, Default)]
pub(super) struct StartedNodes {
    /// The nodes whose rows are missing.
    pub(super) missing: Vec<MissingNode>,
    /// The number of statements for nodes.
    statements: usize,
    /// The number of those that are answered.
    answering: usize,
}

impl StartedNodes {
    pub(super) fn add(&mut self, other: Self) {
        self.missing.extend(other.missing);
        self.statements += other.statements;
        self.answering += other.answering;
    }
}

/// Starts the statements of a plan on the nodes.
pub(super) struct NodeStarter {
    pub(super) network: Arc<str>,
    pub(super) partial: PartialAnswers,
    /// The nodes that failed before the statement: their tables were never known, or they cannot read one of it.
    pub(super) failed: Vec<MissingNode>,
    /// The rows of the tables of the statement by node, as last known.
    pub(super) rows: BTreeMap<String, Option<u64>>,
}

impl NodeStarter {
    /// Starts the statements of all nodes, and waits until each has its first rows or has failed.
    ///
    /// # Errors
    /// The error of a statement; the failure of nodes if answers must be whole; `TooLarge` beyond a limit.
    pub(super) async fn start(&self, plan: &EmbeddedPlan, job: &Arc<Job>) -> Result<StartedNodes, Error> {
        let leaves = node_queries(plan.operators());
        let leaves: Vec<&MemberExec> = leaves.iter().filter_map(|leaf| leaf.downcast_ref::<MemberExec>()).collect();
        if leaves.len() > NODE_STATEMENTS_MAX {
            let message = format!(
                "the statement would send {} statements to the nodes of {}; the limit is {NODE_STATEMENTS_MAX}",
                leaves.len(),
                self.network
            );
            return Err(Error::new(ErrorKind::TooLarge, message)
                .with_hint("Name fewer tables, or fewer nodes by a condition on the column _node."));
        }
        let starting: Vec<_> = leaves.iter().map(|leaf| leaf.start(job)).collect();
        let mut failures = BTreeMap::new();
        for missing in &self.failed {
            failures.insert(missing.name.clone(), missing.reason.clone());
        }
        let mut missing = Vec::new();
        for (leaf, outcome) in leaves.iter().zip(join_all(starting).await) {
            let outcome: StartOutcome =
                outcome.unwrap_or_else(|_| Err(Error::new(ErrorKind::Cancelled, "the query was cancelled")));
            match outcome {
                Ok(None) => {}
                Ok(Some(inner)) => missing.extend(
                    inner
                        .nodes
                        .iter()
                        .map(|node| MissingNode { name: format!("{}.{}", leaf.member(), node.name), ..node.clone() }),
                ),
                Err(error) if is_node_failure(&error) && !job.is_cancelled() => {
                    failures.entry(leaf.member().to_owned()).or_insert_with(|| error.message().to_owned());
                }
                Err(error) => return Err(error),
            }
        }
        let rows = |name: &str| self.rows.get(name).copied().flatten();
        missing.extend(failures.into_iter().map(|(name, reason)| MissingNode { rows: rows(&name), name, reason }));
        missing.sort_by(|left, right| left.name.cmp(&right.name));
        missing.dedup_by(|left, right| left.name == right.name);
        let is_missing = |leaf: &&MemberExec| missing.iter().any(|node| node.name == leaf.member());
        if self.partial == PartialAnswers::Forbid && !missing.is_empty() {
            return Err(nodes_failed_error(&self.network, &missing)
                .with_hint("Ask again when it is back, or exclude it by a condition on the column _node."));
        }
        for leaf in leaves.iter().filter(|leaf| is_missing(leaf)) {
            leaf.leave_out();
        }
        let answering = leaves.iter().filter(|leaf| !is_missing(leaf)).count();
        Ok(StartedNodes { statements: leaves.len(), answering, missing })
    }
}

#[async_trait]
impl Plan for NetworkPlan {
    tidegate_pgsql::delegate_to! { plan =>
        fn schema(&self) -> SchemaRef;
        fn estimated_rows(&self) -> Option<u64>;
        fn is_pipeline_breaking(&self) -> Option<bool>;
    }

    async fn explain(&self) -> Result<String, Error> {
        let first = match &self.part_reader {
            Some(reader) => reader.explain().await?,
            None => String::new(),
        };
        Ok(first + &self.plan.explain().await?)
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        self.cancellation.set_job(job.clone());
        let Self { plan, starter, part_reader, .. } = *self;
        let reduced = match part_reader {
            Some(reader) => reader.read(&starter, job).await?,
            None => None,
        };
        let (plan, mut started) = match reduced {
            Some(ReducedPlan { plan, started }) => (plan, started),
            None => (plan, StartedNodes::default()),
        };
        started.add(starter.start(&plan, job).await?);
        let StartedNodes { mut missing, statements, answering } = started;
        if statements > 0 && answering == 0 {
            return Err(nodes_failed_error(&starter.network, &missing));
        }
        missing.sort_by(|left, right| left.name.cmp(&right.name));
        missing.dedup_by(|left, right| left.name == right.name);
        let answer = Box::new(plan).run(job).await?;
        if missing.is_empty() {
            return Ok(answer);
        }
        let rows_total = starter.rows.into_values().sum();
        Ok(QueryRows { missing: Some(Arc::new(MissingNodes { nodes: missing, rows_total })), ..answer })
    }
}
