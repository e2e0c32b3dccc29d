//! Whether a table exists now, for sources whose table comes with its first rows.

use std::fmt;
use std::sync::Arc;

/// Whether a table exists. The default is a table that always does, as far as the node knows.
#[derive(Clone, Default)]
pub struct TablePresence(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl TablePresence {
    /// A table that exists while `check` returns true. It is called for each list of tools, so that it must be fast.
    pub fn new(check: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Whether the table exists now.
    pub fn exists(&self) -> bool {
        self.0.as_ref().is_none_or(|check| check())
    }
}

impl fmt::Debug for TablePresence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TablePresence").field(&self.exists()).finish()
    }
}

impl PartialEq for TablePresence {
    /// Whether both have the same check.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for TablePresence {}
