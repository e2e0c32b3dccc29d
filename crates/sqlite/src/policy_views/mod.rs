//! Policy views: temporary views that replace tables with row policies for a principal.
//!
//! A view in `temp` has the name of the table, so SQLite finds it first. It reads a second view, the security barrier,
//! whose name is secret. The authorizer allows only that view to read the table, and refuses every other read of it.
//! The barrier has a LIMIT and an OFFSET that remove no rows. SQLite pushes no condition into such a query and never
//! merges it with the outer query. Therefore nothing that a caller writes is evaluated for a row that is hidden from
//! the caller.

mod filter_sql;
mod generated_columns;
mod policy_view_cache;
mod visibility;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_core::{Error, Principal};
use tidegate_query::{Mask, RowPolicies};
use tidegate_sql::{PointQuery, TableLocation};

pub(crate) use generated_columns::find_source_columns;
pub(crate) use policy_view_cache::PolicyViewCache;
pub(crate) use visibility::{MASK_PREFIX, TableVisibility, policy_names, unreadable_under_policy_error};

use crate::tables::SqliteTable;

pub(crate) struct PolicyCaller {
    pub(crate) policies: RowPolicies,
    pub(crate) principal: Principal,
    /// Distinguishes callers with different policies.
    pub(crate) fingerprint: u64,
}

impl PolicyCaller {
    /// The caller for `principal`; `None` without `policies`.
    pub(crate) fn for_principal(policies: &RowPolicies, principal: &Principal) -> Option<Arc<Self>> {
        let (policies, principal) = (policies.clone(), principal.clone());
        (!policies.is_empty())
            .then(|| Arc::new(Self { fingerprint: policies.fingerprint(&principal), policies, principal }))
    }
}

/// Schema and name of a table, in lower case: SQLite ignores the case.
pub(crate) type TableKey = (String, String);

pub(crate) fn table_key(schema: &str, name: &str) -> TableKey {
    (schema.to_ascii_lowercase(), name.to_ascii_lowercase())
}

/// The visibility of all tables of the files for one principal.
pub(crate) struct PolicyViews {
    pub(super) fingerprint: u64,
    pub(super) versions: Vec<i64>,
    /// The secret suffix of the names of security barriers.
    pub(crate) token: String,
    /// Tables with a policy, and all others that must be read through a view only.
    pub(super) visibilities: BTreeMap<TableKey, TableVisibility>,
    /// The names of the views that may read these tables directly.
    pub(super) security_barriers: BTreeSet<String>,
    /// Views of the owner, created again over policy views, by their keys.
    pub(super) views: BTreeMap<TableKey, visibility::ViewDefinition>,
}

impl PolicyViews {
    pub(crate) fn visibility(&self, table: &SqliteTable) -> Option<&TableVisibility> {
        self.visibilities.get(&table_key(&table.schema, &table.name))
    }

    /// Whether the table `name` (in lower case) of `schema` must be read through a view only.
    pub(crate) fn has_policy(&self, schema: &str, name: &str) -> bool {
        self.visibilities.contains_key(&table_key(schema, name))
    }

    /// Whether `accessor` is a policy view that may read a table directly.
    pub(crate) fn is_security_barrier(&self, accessor: &str) -> bool {
        self.security_barriers.contains(accessor)
    }

    pub(crate) fn contains_reserved_name(&self, sql: &str) -> bool {
        sql.to_ascii_lowercase().contains(&self.token)
    }

    pub(crate) fn has_policy_on_name(&self, name: &str) -> bool {
        self.visibilities.keys().any(|(_, table)| table == name)
    }

    pub(crate) fn is_policy_view(&self, schema: &str, name: &str) -> bool {
        let has_name = |visibility: &TableVisibility| match visibility {
            TableVisibility::Filtered(filtered) => filtered.view_name.eq_ignore_ascii_case(name),
            TableVisibility::Denied(_) => false,
        };
        name.ends_with(&self.token) || schema == "temp" && self.visibilities.values().any(has_name)
    }

    /// The mask of a column of a table; `None` if it is visible as it is.
    pub(crate) fn mask(&self, table: &SqliteTable, column: &str) -> Option<Mask> {
        match self.visibility(table)? {
            TableVisibility::Filtered(filtered) => {
                filtered.masks.iter().find(|(name, _)| name == column).and_then(|(_, mask)| *mask)
            }
            TableVisibility::Denied(_) => Some(Mask::Deny),
        }
    }

    /// Whether `column` of the table `name` of `schema` is hidden, or the whole table if no column is given.
    pub(crate) fn denies(&self, schema: &str, name: &str, column: Option<&str>) -> bool {
        match (self.visibilities.get(&table_key(schema, name)), column) {
            (Some(TableVisibility::Filtered(filtered)), Some(column)) => {
                let has_name = |(name, _): &&(String, Option<Mask>)| name.eq_ignore_ascii_case(column);
                filtered.masks.iter().find(has_name).is_none_or(|(_, mask)| *mask == Some(Mask::Deny))
            }
            (Some(TableVisibility::Denied(_)), _) => true,
            _ => false,
        }
    }

    /// The table or view from which the table `name` of `schema` is read.
    pub(crate) fn replacement_for(&self, schema: &str, name: &str) -> Option<TableLocation> {
        let key = table_key(schema, name);
        let view = match self.visibilities.get(&key) {
            Some(TableVisibility::Filtered(filtered)) => filtered.view_name.clone(),
            Some(TableVisibility::Denied(_)) => return None,
            None => self.views.get(&key)?.name.clone(),
        };
        Some(("temp".to_owned(), view))
    }

    /// The error of the first of `tables` that cannot be read.
    pub(crate) fn denial_for(&self, tables: &[String]) -> Option<&Error> {
        let is_named = |(schema, name): &TableKey| matches_any(tables, schema, name);
        self.visibilities.iter().find_map(|(key, visibility)| match visibility {
            TableVisibility::Denied(error) if is_named(key) => Some(error),
            _ => None,
        })
    }

    /// The table that `lookup` reads, and its mergeable view; `None` if it must stay behind a security barrier.
    pub(crate) fn mergeable_view_for(&self, lookup: &PointQuery) -> Option<(TableKey, String)> {
        let names = [lookup.table.join(".")];
        let mut matches = self.visibilities.iter().filter(|((schema, name), _)| matches_any(&names, schema, name));
        let (Some((key, TableVisibility::Filtered(filtered))), None) = (matches.next(), matches.next()) else {
            return None;
        };
        let is_unmasked = |compared: &String| {
            let mut columns = filtered.masks.iter().filter(|(name, _)| name.eq_ignore_ascii_case(compared));
            matches!((columns.next(), columns.next()), (Some((_, None)), None))
        };
        let view = filtered.mergeable_view.as_ref().filter(|_| lookup.filter_columns.iter().all(is_unmasked))?;
        Some((key.clone(), view.name.clone()))
    }

    /// The tables whose views must exist for a statement over `tables`; all tables if it may read any.
    pub(crate) fn required_views(&self, tables: Option<&[String]>) -> BTreeSet<TableKey> {
        let all = || self.visibilities.keys().chain(self.views.keys()).cloned().collect();
        let Some(tables) = tables else { return all() };
        let is_named = |(schema, name): &&TableKey| matches_any(tables, schema, name);
        // A view of the owner may read any table.
        let filtered_views = self.visibilities.iter().filter(|(_, visibility)| match visibility {
            TableVisibility::Filtered(filtered) => filtered.mergeable_view.is_none(),
            TableVisibility::Denied(_) => false,
        });
        if self.views.keys().chain(filtered_views.map(|(key, _)| key)).any(|key| is_named(&key)) {
            return all();
        }
        self.visibilities.keys().filter(is_named).cloned().collect()
    }
}

fn matches_any(tables: &[String], schema: &str, name: &str) -> bool {
    tables.iter().any(|table| {
        let table = table.to_ascii_lowercase();
        table == name || table.strip_suffix(name).is_some_and(|rest| rest == format!("{schema}."))
    })
}

/// Replaces each security barrier by one step with the name of its table. `token` is the suffix of such names.
pub(crate) fn redact_plan(steps: Vec<(i64, i64, String)>, token: &str) -> Vec<(i64, i64, String)> {
    let mut hidden = BTreeSet::new();
    let mut visible = Vec::with_capacity(steps.len());
    for (number, parent, text) in steps {
        // Parents precede their children.
        let is_barrier = (text.starts_with("CO-ROUTINE ") || text.starts_with("MATERIALIZE ")) && text.contains(token);
        if hidden.contains(&parent) {
            hidden.insert(number);
            continue;
        }
        if is_barrier {
            hidden.insert(number);
        }
        visible.push((number, parent, strip_token(&text, token)));
    }
    visible
}

fn strip_token(text: &str, token: &str) -> String {
    let words = text.split(' ').map(|word| match word.find(token) {
        Some(at) => word[..at].trim_end_matches('#').trim_start_matches("temp.").to_owned() + &word[at + token.len()..],
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}
