//! A statement that a node has described.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use tidegate_core::{Error, Principal};
use tidegate_query::{Plan, QueryRows};
use tidegate_runtime::Job;
use tidegate_sql::Statement;

use super::node_client::NodeClient;

pub(super) struct FlightPlan {
    pub(super) client: Arc<NodeClient>,
    pub(super) statement: Statement,
    pub(super) principal: Arc<Principal>,
    pub(super) schema: SchemaRef,
}

#[async_trait]
impl Plan for FlightPlan {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    async fn explain(&self) -> Result<String, Error> {
        let url = self.client.replicas.preferred().address.to_string();
        let database = self.client.database.as_ref().map(|database| format!(", database {database}"));
        Ok(format!("Statement of {url}{}:\n{}", database.unwrap_or_default(), self.statement.text()))
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        self.client.run(&self.statement, &self.principal, job).await
    }
}
