//! The wall inside SQLite: an authorizer that lets through what reads and nothing else.
//!
//! It does not look at the text. SQLite asks it about each thing that a statement would do, views and virtual tables
//! included, so it holds whatever the parser in front of it was made to believe.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use crate::shown::{MASK_PREFIX, Shown};

/// Functions that do more than compute; most of them exist only in builds of SQLite other than ours.
const FUNCTIONS_REFUSED: &[&str] = &[
    "load_extension",
    "readfile",
    "writefile",
    "edit",
    "fts3_tokenizer",
    "sqlite_log",
    "optimize",
    "rtreecheck",
    "fsdir",
    "zipfile",
    "shell_putsnl",
];

/// Functions that take a time with the product of their arguments' lengths, within which nothing can end them.
const FUNCTIONS_UNBOUNDED: &[&str] = &["json_patch", "jsonb_patch"];

/// Tables that SQLite has without anybody having made them, and that show the file instead of what is in it.
const TABLES_REFUSED: &[&str] =
    &["dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode", "tables_used", "fsdir", "zipfile"];

/// Settings that full-text search asks for by itself while it reads. Each only tells a number.
const PRAGMAS_READ: &[&str] = &["data_version", "page_size"];

/// The wall of one connection.
#[derive(Default)]
pub(super) struct Wall {
    /// Whether it is our own SQL that is prepared.
    is_ours: AtomicBool,
    reads: Mutex<BTreeSet<(String, String)>>,
    refused: Mutex<Option<String>>,
    /// How tables are shown to whoever asks, where policies apply, and the names that stand before them.
    guard: Mutex<Option<(Arc<Shown>, BTreeSet<String>)>>,
    /// Whether a caller's SQL is being prepared. Modules prepare their own while rows are read.
    is_planning: AtomicBool,
}

impl Wall {
    /// Lets everything through as long as the guard lives.
    pub(super) fn open(&self) -> Opened<'_> {
        self.is_ours.store(true, Ordering::Release);
        Opened(self)
    }

    /// Forgets what the last statement did; a caller's is being prepared as long as the guard lives.
    pub(super) fn begin(&self) -> Planning<'_> {
        self.reads.lock().clear();
        *self.refused.lock() = None;
        self.is_planning.store(true, Ordering::Release);
        Planning(self)
    }

    /// From now on tables are read as they are `shown`.
    pub(super) fn guard(&self, shown: Option<Arc<Shown>>) {
        *self.guard.lock() = shown.map(|shown| (shown, BTreeSet::new()));
    }

    /// Views called `names` (in lower case) stand before tables.
    pub(super) fn stands(&self, names: BTreeSet<String>) {
        if let Some((_, standing)) = self.guard.lock().as_mut() {
            *standing = names;
        }
    }

    /// What is refused since policies apply.
    fn guarded(&self, context: &AuthContext<'_>) -> Option<String> {
        let guard = self.guard.lock();
        let Some((shown, standing)) = guard.as_ref() else { return masked(&context.action) };
        if !self.is_planning.load(Ordering::Acquire) {
            return None;
        }
        let is_of_barrier = context.accessor.is_some_and(|accessor| shown.is_barrier(accessor));
        match context.action {
            AuthAction::Read { table_name, .. } if is_of_barrier => {
                let tells = table_name.to_ascii_lowercase().starts_with("sqlite_");
                tells.then(|| format!("reading {table_name} past its row policy"))
            }
            _ if is_of_barrier => None,
            AuthAction::Read { table_name, .. } => {
                let name = table_name.to_ascii_lowercase();
                let is_read_past = match context.database_name {
                    // A part of the name of what is read: SQLite says no more of a table of which no column is wanted.
                    None => shown.hides_any(&name) && !standing.contains(&name),
                    Some(schema) => shown.hides(schema, &name),
                };
                let tells = name.starts_with("sqlite_") || is_read_past;
                tells.then(|| format!("reading {table_name} past its row policy"))
            }
            AuthAction::Function { .. } => masked(&context.action),
            AuthAction::Pragma { pragma_name, .. } => Some(format!("PRAGMA {pragma_name}")),
            _ => None,
        }
    }

    /// The schemas and names of the tables and views that the last statement reads.
    pub(super) fn reads(&self) -> BTreeSet<(String, String)> {
        self.reads.lock().clone()
    }

    /// What the last statement was refused for.
    pub(super) fn refused(&self) -> Option<String> {
        self.refused.lock().clone()
    }

    /// Answers SQLite.
    pub(super) fn judge(&self, context: AuthContext<'_>) -> Authorization {
        if self.is_ours.load(Ordering::Acquire) {
            return Authorization::Allow;
        }
        if let AuthAction::Read { table_name, .. } = context.action {
            let schema = context.database_name.unwrap_or_default();
            self.reads.lock().insert((schema.to_owned(), table_name.to_owned()));
        }
        match refusal(&context.action).or_else(|| self.guarded(&context)) {
            None => Authorization::Allow,
            Some(what) => {
                self.refused.lock().get_or_insert(what);
                Authorization::Deny
            }
        }
    }
}

/// A caller's SQL is being prepared.
pub(super) struct Planning<'a>(&'a Wall);

impl Drop for Planning<'_> {
    fn drop(&mut self) {
        self.0.is_planning.store(false, Ordering::Release);
    }
}

/// Closes the wall again.
pub(super) struct Opened<'a>(&'a Wall);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.is_ours.store(false, Ordering::Release);
    }
}

/// What is refused of `action`, as the caller reads it; none when it only reads.
fn refusal(action: &AuthAction<'_>) -> Option<String> {
    let is_among = |names: &[&str], name: &str| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    match action {
        AuthAction::Select | AuthAction::Recursive => None,
        AuthAction::Read { table_name, .. } => {
            is_among(TABLES_REFUSED, table_name).then(|| format!("reading {table_name}"))
        }
        AuthAction::Function { function_name } if is_among(FUNCTIONS_UNBOUNDED, function_name) => {
            Some(format!("the function {function_name}, whose time has no bound,"))
        }
        AuthAction::Function { function_name } => {
            is_among(FUNCTIONS_REFUSED, function_name).then(|| format!("the function {function_name}"))
        }
        AuthAction::Pragma { pragma_name, pragma_value } => {
            let is_harmless = pragma_value.is_none() && is_among(PRAGMAS_READ, pragma_name);
            (!is_harmless).then(|| format!("PRAGMA {pragma_name}"))
        }
        other => Some(what(other).to_owned()),
    }
}

/// What is refused of calls of the function of row policies, which views of ours alone may call.
fn masked(action: &AuthAction<'_>) -> Option<String> {
    let AuthAction::Function { function_name } = action else { return None };
    let is_ours = function_name.to_ascii_lowercase().starts_with(MASK_PREFIX);
    is_ours.then(|| "a function of row policies".to_owned())
}

/// The SQL that asks for what changes something.
fn what(action: &AuthAction<'_>) -> &'static str {
    match action {
        AuthAction::Attach { .. } => "ATTACH",
        AuthAction::Detach { .. } => "DETACH",
        AuthAction::Insert { .. } => "INSERT",
        AuthAction::Update { .. } => "UPDATE",
        AuthAction::Delete { .. } => "DELETE",
        AuthAction::Transaction { .. } => "controlling the transaction",
        AuthAction::Savepoint { .. } => "SAVEPOINT",
        AuthAction::CreateVtable { .. } => "CREATE VIRTUAL TABLE",
        AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTable { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateTrigger { .. } => "CREATE",
        AuthAction::AlterTable { .. } => "ALTER TABLE",
        AuthAction::Reindex { .. } => "REINDEX",
        AuthAction::Analyze { .. } => "ANALYZE",
        AuthAction::Unknown { .. } => "an action that is not known here",
        _ => "DROP",
    }
}
