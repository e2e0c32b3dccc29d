//! A cache of parsed and checked statements.

use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::Error;

use crate::dialect::SqlDialect;
use crate::statement::Statement;

/// Longer texts are not cached, so that the memory of the cache is bounded.
const CACHED_TEXT_BYTES_MAX: usize = 8 * 1024;
const STATEMENTS_MAX: NonZeroUsize = NonZeroUsize::new(512).unwrap();

/// The statements that were accepted recently, by dialect and text. Refused statements are not cached.
#[derive(Debug)]
pub struct StatementCache {
    statements: Mutex<LruCache<(SqlDialect, Box<str>), Statement>>,
}

impl Default for StatementCache {
    fn default() -> Self {
        Self::new(STATEMENTS_MAX)
    }
}

impl StatementCache {
    /// A cache of at most `statements_max` statements; the least recently used one is evicted first.
    pub fn new(statements_max: NonZeroUsize) -> Self {
        Self { statements: Mutex::new(LruCache::new(statements_max)) }
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
        if let Some(statement) = self.statements.lock().get(&key) {
            return Ok(statement.clone());
        }
        let statement = Statement::parse(sql, dialect)?;
        self.statements.lock().put(key, statement.clone());
        Ok(statement)
    }

    /// The number of cached statements.
    pub fn len(&self) -> usize {
        self.statements.lock().len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
