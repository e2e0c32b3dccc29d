//! Reuses earlier answers: the same statement, by a caller with the same rights, over unchanged data.

use std::sync::Arc;

use super::Executor;
use crate::freshness::Freshness;
use crate::request::{OutputOptions, OverflowPolicy, QueryRequest};
use tidegate_core::{CallerIdentity, Error};
use tidegate_results::{CacheKey, StoredResult};
use tidegate_runtime::{AnswerMeta, Job, ReplySender};
use tidegate_sql::Statement;

impl Executor {
    /// The key to cache the answer under, unless it must not be reused, and an earlier answer that is still valid.
    pub(super) async fn look_up_cache(
        &self,
        request: &QueryRequest,
        job: &Job,
    ) -> (Option<CacheKey>, Option<Arc<StoredResult>>) {
        let QueryRequest { database, statement, output } = request;
        let (Some(store), OverflowPolicy::Store { cached: true, .. }) = (&self.store, output.overflow) else {
            return (None, None);
        };
        if statement.transaction().writes {
            return (None, None);
        }
        let (version, age) = match database.freshness(statement, job.principal()).await {
            Freshness::Never => return (None, None),
            Freshness::UntilChanged(version) => (version, None),
            Freshness::MaxAge(age) => (0, Some(age)),
        };
        let policies = database.row_policy_fingerprint(job.principal());
        let rules = job.protection().redactor().map_or("", |redactor| redactor.rules_id());
        let shape = format!("{:?} {:?} {policies} {rules}", output.rows_max, output.extract);
        let key = statement_cache_key(statement, database.name(), version, &shape, job);
        let result = store.cached_answer(&key, age, job.caller());
        // An answer from before a table changed may not conform to the current output schema.
        (Some(key), result.filter(|result| output.check_columns(result.schema()).is_ok()))
    }

    pub(super) async fn replay_answer(
        &self,
        result: &Arc<StoredResult>,
        output: &OutputOptions,
        reply: &ReplySender,
    ) -> Result<AnswerMeta, Error> {
        reply.job().set_result_uri(result.header().id.uri());
        reply.job().set_answer_age(result.age());
        let output = OutputOptions { rows_max: None, ..output.clone() };
        let metadata = self.write_page(result, 0, output, reply).await?;
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
    let ast = statement.ast().filter(|_| statement.dialect().has_complete_ast());
    let text = ast.map_or_else(|| statement.text().to_owned(), ToString::to_string);
    let owner = CallerIdentity::from_caller(job.caller()).to_text();
    let roles: Vec<&str> = principal.roles.iter().map(String::as_str).collect();
    let claims = serde_json::to_string(&principal.claims).unwrap_or_default();
    let parameters = format!("{:?}", statement.parameters());
    let numbers = format!("{} {version} {}", principal.generation, statement.dialect().name());
    CacheKey::from_parts(&[&owner, &roles.join("\n"), &claims, database, &numbers, &text, &parameters, shape])
}
