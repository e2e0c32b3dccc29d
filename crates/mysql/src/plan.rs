//! A prepared statement, and how it runs.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use tidegate_core::Error;
use tidegate_query::{Plan, QueryRows};
use tidegate_runtime::Job;
use tokio::sync::Mutex;

use crate::pool::Lease;
use crate::row_policies::RestrictedStatement;
use crate::running_statement::{StatementRequest, StatementRun};
use crate::server::MySqlServer;

pub(crate) struct MySqlPlan {
    pub(crate) server: Arc<MySqlServer>,
    /// Its statement is prepared, and it is in no transaction.
    pub(crate) lease: Mutex<Lease>,
    pub(crate) request: StatementRequest,
    /// The statement of a caller whom row policies restrict.
    pub(crate) restricted: Option<RestrictedStatement>,
    /// The columns that the server expects. Those of placeholders may have other types when it runs.
    pub(crate) schema: SchemaRef,
}

#[async_trait]
impl Plan for MySqlPlan {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn is_pipeline_breaking(&self) -> Option<bool> {
        None
    }

    async fn explain(&self) -> Result<String, Error> {
        let mut lease = self.lease.lock().await;
        let StatementRequest { text, parameters, .. } = &self.request;
        match &self.restricted {
            Some(restricted) => {
                self.server.explain(&mut lease, &restricted.explained_text()?, parameters.clone(), true).await
            }
            None => self.server.explain(&mut lease, text, parameters.clone(), false).await,
        }
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        let Self { server, lease, request, .. } = *self;
        StatementRun { server, lease: lease.into_inner(), request }.start(job).await
    }
}
