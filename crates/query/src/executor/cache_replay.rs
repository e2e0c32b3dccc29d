//! Reuses earlier answers: the same statement, by a caller with the same rights, over unchanged data.

use std::sync::Arc;

use super::Executor;
use super::continuation::{ResultPage, no_store_error};
use crate::freshness::Freshness;
use crate::request::{OverflowPolicy, PageOptions, QueryRequest};
use tidegate_core::{CallerIdentity, Error};
use tidegate_results::{CacheKey, StoredResult};
use tidegate_runtime::{AnswerMeta, Job, ReplySender};
use tidegate_sql::{SqlDialect, Statement};

#[derive(Default)]
pub(super) struct CacheLookup {
    /// The key to cache the answer under; `None` if it must not be reused.
    pub(super) key: Option<CacheKey>,
    /// An earlier answer that is still valid.
    pub(super) result: Option<Arc<StoredResult>>,
}

impl Executor {
    pub(super) async fn look_up_cache(&self, request: &QueryRequest, job: &Job) -> CacheLookup {
        let (Some(store), OverflowPolicy::Store { cached: true, .. }) = (&self.store, request.overflow) else {
            return CacheLookup::default();
        };
        if request.statement.transaction().writes {
            return CacheLookup::default();
        }
        let (version, age) = match request.database.freshness(&request.statement, job.principal()).await {
            Freshness::Never => return CacheLookup::default(),
            Freshness::UntilChanged(version) => (version, None),
            Freshness::MaxAge(age) => (0, Some(age)),
        };
        let policies = request.database.row_policy_fingerprint(job.principal());
        let rules = job.protection().redactor().map_or("", |redactor| redactor.rules_id());
        let shape = format!("{:?} {:?} {policies} {rules}", request.max_rows, request.extract);
        let key = statement_cache_key(&request.statement, request.database.name(), version, &shape, job);
        let result = store.cached_answer(&key, age, job.caller());
        // An answer from before a table changed may not conform to the current output schema.
        let result = result.filter(|result| request.check_output_schema(result.schema()).is_ok());
        CacheLookup { key: Some(key), result }
    }

    pub(super) async fn replay_answer(
        &self,
        result: &Arc<StoredResult>,
        request: &QueryRequest,
        reply: &ReplySender,
    ) -> Result<AnswerMeta, Error> {
        let store = self.store.as_ref().ok_or_else(no_store_error)?;
        let page = PageOptions {
            format: request.format,
            is_list: request.extract.is_some(),
            rows_max: None,
            is_structured: request.structured.is_some(),
        };
        let is_linked = matches!(request.overflow, OverflowPolicy::Store { linked: true, .. });
        reply.job().set_result_uri(result.header().id.uri());
        reply.job().set_answer_age(result.age());
        let metadata = ResultPage { store, result, row: 0, is_linked, page }.answer(reply).await?;
        Ok(AnswerMeta { is_cached: true, ..metadata })
    }
}

/// The key of `statement` for `database`, whose data is in the state `version`. The key contains everything that
/// the answer may depend on: the caller with its roles and claims, and the generation of the configuration. `shape`
/// describes the other options of the rows.
fn statement_cache_key(statement: &Statement, database: &str, version: u64, shape: &str, job: &Job) -> CacheKey {
    let principal = job.principal();
    // The text is rendered from the AST, so that whitespace and comments do not matter. The AST of PostgreSQL's SQL may
    // lack clauses, and its text has no comments.
    let ast = statement.ast().filter(|_| statement.dialect() != SqlDialect::Postgres);
    let text = ast.map_or_else(|| statement.text().to_owned(), ToString::to_string);
    let owner = CallerIdentity::from_caller(job.caller()).to_text();
    let roles: Vec<&str> = principal.roles.iter().map(String::as_str).collect();
    let claims = serde_json::to_string(&principal.claims).unwrap_or_default();
    let parameters = format!("{:?}", statement.parameters());
    let numbers = format!("{} {version} {}", principal.generation, statement.dialect().name());
    CacheKey::from_parts(&[&owner, &roles.join("\n"), &claims, database, &numbers, &text, &parameters, shape])
}
