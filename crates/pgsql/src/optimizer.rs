//! Rules of the optimizer.

use std::sync::Arc;

use datafusion::optimizer::OptimizerRule;

use crate::aggregate;

/// DataFusion's rules, less what PostgreSQL's types do not allow.
pub fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    aggregate::optimizer_rules()
}
