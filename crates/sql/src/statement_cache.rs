//! A cache of parsed and checked statements.

use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;
use sqlparser::ast;
use tidegate_core::Error;

use crate::dialect::SqlDialect;
use crate::parameter::Parameter;
use crate::statement::Statement;

/// Longer texts are not cached, so that the memory of the cache is bounded.
const CACHED_TEXT_BYTES_MAX: usize = 8 * 1024;
/// The key of a generated statement is its AST, which takes some 20 times the memory of its text.
const GENERATED_TEXT_BYTES_MAX: usize = 1024;
const STATEMENTS_MAX: NonZeroUsize = NonZeroUsize::new(512).unwrap();

/// The statements that were accepted recently, without parameters. Refused statements are not cached.
#[derive(Debug)]
pub struct StatementCache {
    parsed: Mutex<LruCache<(SqlDialect, Box<str>), Statement>>,
    generated: Mutex<LruCache<(SqlDialect, ast::Query), Statement>>,
}

impl Default for StatementCache {
    fn default() -> Self {
        Self::new(STATEMENTS_MAX)
    }
}

impl StatementCache {
    /// A cache of at most `statements_max` parsed and as many generated statements; the least recently used one is evicted
    /// first.
    pub fn new(statements_max: NonZeroUsize) -> Self {
        let (parsed, generated) = (LruCache::new(statements_max), LruCache::new(statements_max));
        Self { parsed: Mutex::new(parsed), generated: Mutex::new(generated) }
    }

    /// The statement of `sql`, without parameters; parsed only if it is not cached.
    ///
    /// # Errors
    /// As [`Statement::parse`].
    pub fn parse(&self, sql: &str, dialect: SqlDialect) -> Result<Statement, Error> {
        if sql.len() > CACHED_TEXT_BYTES_MAX {
            return Statement::parse(sql, dialect);
        }
        let key = (dialect, Box::from(sql));
        if let Some(statement) = self.parsed.lock().get(&key) {
            return Ok(statement.clone());
        }
        let statement = Statement::parse(sql, dialect)?;
        self.parsed.lock().put(key, statement.clone());
        Ok(statement)
    }

    /// The statement of the generated AST `query`; checked only if it is not cached.
    ///
    /// # Errors
    /// As [`Statement::from_query`].
    pub fn generated(
        &self,
        query: ast::Query,
        parameters: Vec<Parameter>,
        dialect: SqlDialect,
    ) -> Result<Statement, Error> {
        let key = (dialect, query);
        if let Some(statement) = self.generated.lock().get(&key) {
            return statement.with_parameters(parameters);
        }
        let statement = Statement::from_query(key.1.clone(), parameters, dialect)?;
        if statement.text().len() <= GENERATED_TEXT_BYTES_MAX {
            self.generated.lock().put(key, statement.without_parameters());
        }
        Ok(statement)
    }

    /// The number of cached statements.
    pub fn len(&self) -> usize {
        self.parsed.lock().len() + self.generated.lock().len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
