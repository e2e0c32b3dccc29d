//! The wall inside SQLite: an authorizer that lets through what reads and nothing else.
//!
//! It does not look at the text. SQLite asks it about each thing that a statement would do, views and virtual tables
//! included, so it holds whatever the parser in front of it was made to believe.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

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
}

impl Wall {
    /// Lets everything through as long as the guard lives.
    pub(super) fn open(&self) -> Opened<'_> {
        self.is_ours.store(true, Ordering::Release);
        Opened(self)
    }

    /// Forgets what the last statement did.
    pub(super) fn begin(&self) {
        self.reads.lock().clear();
        *self.refused.lock() = None;
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
        match refusal(&context.action) {
            None => Authorization::Allow,
            Some(what) => {
                self.refused.lock().get_or_insert(what);
                Authorization::Deny
            }
        }
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
