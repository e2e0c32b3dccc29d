//! The database of system tables as the functions of the built-in tools.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_core::{Error, Principal};
use tidegate_engines::{FunctionAnswer, SystemDatabase};
use tidegate_query::Database as _;
use tidegate_runtime::Job;
use tidegate_system::{FunctionRequest, RequestViolations, SystemTableDescription};
use tidegate_tools::{FunctionRows, FunctionSource};

/// The functions of a database.
pub(crate) struct SystemFunctions(Arc<SystemDatabase>);

impl SystemFunctions {
    pub(crate) fn offer(database: Arc<SystemDatabase>) -> Arc<dyn FunctionSource> {
        Arc::new(Self(database))
    }
}

#[async_trait]
impl FunctionSource for SystemFunctions {
    fn database(&self) -> &str {
        self.0.name()
    }

    fn functions(&self, principal: &Principal) -> Vec<&SystemTableDescription> {
        self.0.functions(principal)
    }

    fn validate(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        principal: &Principal,
    ) -> Result<Result<FunctionRequest, RequestViolations>, Error> {
        self.0.validate_request(name, arguments, principal)
    }

    async fn run(&self, name: &str, request: FunctionRequest, job: &Arc<Job>) -> Result<FunctionRows, Error> {
        let FunctionAnswer { batch, selected, is_truncated } = self.0.run_function(name, request, job).await?;
        Ok(FunctionRows { batch, selected, is_truncated })
    }
}
