//! The planner of type names in statements.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast;

use crate::time;

/// Returns the type planner, which maps type names as PostgreSQL does where DataFusion differs.
pub fn type_planner() -> Arc<dyn TypePlanner> {
    Arc::new(PostgresTypePlanner)
}

#[derive(Debug)]
struct PostgresTypePlanner;

impl TypePlanner for PostgresTypePlanner {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        let planned = time::plan_type(sql_type)?;
        Ok(planned.map(|data_type| Arc::new(Field::new("", data_type, true))))
    }
}
