//! The authorizer of SQLite: allows reading and nothing else.
//!
//! It does not depend on the text of a statement. SQLite calls it for each action of a statement, including those of
//! views and virtual tables. Therefore it protects the files even if the parser in front of it was deceived.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use super::functions::SERIES;
use crate::policy_views::{MASK_PREFIX, PolicyViews};

/// Functions that do more than compute. Most of them exist only in other builds of SQLite.
const DENIED_FUNCTIONS: &[&str] = &[
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

/// Functions whose time grows with the product of the lengths of their arguments and cannot be interrupted.
const UNBOUNDED_FUNCTIONS: &[&str] = &["json_patch", "jsonb_patch"];

/// Built-in tables that expose the file itself instead of its rows.
const DENIED_TABLES: &[&str] =
    &["dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode", "tables_used", "fsdir", "zipfile"];

/// Pragmas that full-text search executes while it reads. Each only returns a number.
const ALLOWED_PRAGMAS: &[&str] = &["data_version", "page_size"];

/// The hidden columns of `generate_series`.
const SERIES_ARGUMENT_COLUMNS: &[&str] = &["start", "stop", "step"];

#[derive(Default)]
pub(super) struct Authorizer {
    is_internal: AtomicBool,
    reads: Mutex<BTreeSet<(String, String)>>,
    refused_action: Mutex<Option<String>>,
    /// The visibility of tables for the caller, where policies apply, and the names of the active views.
    active_policy: Mutex<Option<(Arc<PolicyViews>, BTreeSet<String>)>>,
    /// Whether a caller's SQL is being prepared. Modules prepare their own SQL while rows are read.
    is_planning: AtomicBool,
}

impl Authorizer {
    /// Allows everything while the returned scope exists.
    pub(super) fn allow_internal(&self) -> FlagScope<'_> {
        FlagScope::new(&self.is_internal)
    }

    /// Forgets the last statement. A caller's SQL is prepared while the returned scope exists.
    pub(super) fn begin_planning(&self) -> FlagScope<'_> {
        self.reads.lock().clear();
        *self.refused_action.lock() = None;
        FlagScope::new(&self.is_planning)
    }

    pub(super) fn set_policy_views(&self, policy_views: Option<Arc<PolicyViews>>) {
        *self.active_policy.lock() = policy_views.map(|policy_views| (policy_views, BTreeSet::new()));
    }

    /// Sets the names of the active views, in lower case.
    pub(super) fn set_active_views(&self, names: BTreeSet<String>) {
        if let Some((_, active_views)) = self.active_policy.lock().as_mut() {
            *active_views = names;
        }
    }

    fn policy_refusal(&self, context: &AuthContext<'_>) -> Option<String> {
        let active_policy = self.active_policy.lock();
        let Some((policy_views, active_views)) = active_policy.as_ref() else {
            return mask_function_refusal(&context.action);
        };
        if !self.is_planning.load(Ordering::Acquire) {
            return None;
        }
        let is_of_barrier = context.accessor.is_some_and(|accessor| policy_views.is_security_barrier(accessor));
        match context.action {
            AuthAction::Read { table_name, .. } if is_of_barrier => {
                let is_internal = table_name.to_ascii_lowercase().starts_with("sqlite_");
                is_internal.then(|| format!("reading {table_name} past its row policy"))
            }
            _ if is_of_barrier => None,
            AuthAction::Read { table_name, .. } => {
                let name = table_name.to_ascii_lowercase();
                let bypasses_policy = match context.database_name {
                    // Without a schema, only the name is available: SQLite reports no more for a table of which no
                    // column is read.
                    None => policy_views.has_policy_on_name(&name) && !active_views.contains(&name),
                    Some(schema) => policy_views.has_policy(schema, &name),
                };
                let is_refused = name.starts_with("sqlite_") || bypasses_policy;
                is_refused.then(|| format!("reading {table_name} past its row policy"))
            }
            AuthAction::Function { .. } => mask_function_refusal(&context.action),
            AuthAction::Pragma { pragma_name, .. } => Some(format!("PRAGMA {pragma_name}")),
            _ => None,
        }
    }

    pub(super) fn tables_read(&self) -> BTreeSet<(String, String)> {
        self.reads.lock().clone()
    }

    pub(super) fn last_refusal(&self) -> Option<String> {
        self.refused_action.lock().clone()
    }

    /// Decides about an action. SQLite calls this.
    pub(super) fn authorize(&self, context: AuthContext<'_>) -> Authorization {
        if self.is_internal.load(Ordering::Acquire) {
            return Authorization::Allow;
        }
        if let AuthAction::Read { table_name, .. } = context.action {
            let schema = context.database_name.unwrap_or_default();
            self.reads.lock().insert((schema.to_owned(), table_name.to_owned()));
        }
        match action_refusal(&context.action).or_else(|| self.policy_refusal(&context)) {
            None => Authorization::Allow,
            Some(subject) => {
                self.refused_action.lock().get_or_insert(subject);
                Authorization::Deny
            }
        }
    }
}

pub(super) struct FlagScope<'a>(&'a AtomicBool);

impl<'a> FlagScope<'a> {
    fn new(flag: &'a AtomicBool) -> Self {
        flag.store(true, Ordering::Release);
        Self(flag)
    }
}

impl Drop for FlagScope<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The forbidden part of `action`, in words for the caller; `None` if the action only reads.
fn action_refusal(action: &AuthAction<'_>) -> Option<String> {
    let is_among = |names: &[&str], name: &str| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    match action {
        AuthAction::Select | AuthAction::Recursive => None,
        // Its arguments are in parentheses only, where they are converted.
        AuthAction::Read { table_name, column_name }
            if table_name.eq_ignore_ascii_case(SERIES) && is_among(SERIES_ARGUMENT_COLUMNS, column_name) =>
        {
            Some(format!("the column {column_name} of {SERIES}"))
        }
        AuthAction::Read { table_name, .. } => {
            is_among(DENIED_TABLES, table_name).then(|| format!("reading {table_name}"))
        }
        AuthAction::Function { function_name } if is_among(UNBOUNDED_FUNCTIONS, function_name) => {
            Some(format!("the function {function_name}, which cannot be interrupted,"))
        }
        AuthAction::Function { function_name } => {
            is_among(DENIED_FUNCTIONS, function_name).then(|| format!("the function {function_name}"))
        }
        AuthAction::Pragma { pragma_name, pragma_value } => {
            let is_harmless = pragma_value.is_none() && is_among(ALLOWED_PRAGMAS, pragma_name);
            (!is_harmless).then(|| format!("PRAGMA {pragma_name}"))
        }
        other => Some(action_name(other).to_owned()),
    }
}

/// Refuses the mask function, which only policy views may call.
fn mask_function_refusal(action: &AuthAction<'_>) -> Option<String> {
    let AuthAction::Function { function_name } = action else { return None };
    let is_mask = function_name.to_ascii_lowercase().starts_with(MASK_PREFIX);
    is_mask.then(|| "an internal function of row policies".to_owned())
}

fn action_name(action: &AuthAction<'_>) -> &'static str {
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
        AuthAction::Unknown { .. } => "an unknown action",
        _ => "DROP",
    }
}
