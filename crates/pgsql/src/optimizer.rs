//! Rules of the logical optimizer.

use std::sync::Arc;

use datafusion::optimizer::OptimizerRule;

use crate::aggregate;

/// Returns DataFusion's optimizer rules, without those that do not fit PostgreSQL's types.
pub fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    aggregate::optimizer_rules()
}
