//! What a principal is shown of tables to which row policies apply: views of the connection that stand before them.
//!
//! A view in `temp` has the table's name and so stands before it. It reads a second view, the barrier, whose name
//! nobody knows, and the wall lets that one alone read the table. The barrier has a LIMIT and an OFFSET that leave out
//! nothing, for SQLite moves no condition into such a query and never merges it with the one around it: nothing that a
//! caller writes is computed for a row that is hidden from it. A table that is read past its view is refused by the
//! wall.

mod explained;
mod filter;
mod generated;
mod ledger;
mod sight;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_core::{Error, Principal};
use tidegate_query::{Lookup, Mask, Moved, RowPolicies};

pub(crate) use explained::redacted;
pub(crate) use ledger::{Ledger, MASK_PREFIX, mask_code};
pub(crate) use sight::{Sight, kind_of, names, not_over_what_is_shown};

use crate::tables::Table;

/// Who asks, where policies may apply.
pub(crate) struct Asker {
    pub(crate) policies: RowPolicies,
    pub(crate) principal: Principal,
    /// What tells it from others to whom something else is shown.
    pub(crate) stamp: u64,
}

impl Asker {
    /// `principal`, where there are `policies`.
    pub(crate) fn of(policies: &RowPolicies, principal: &Principal) -> Option<Arc<Self>> {
        let asker =
            || Self { policies: policies.clone(), principal: principal.clone(), stamp: policies.stamp(principal) };
        (!policies.is_empty()).then(|| Arc::new(asker()))
    }
}

/// Schema and name of a table, in lower case, as SQLite compares them.
pub(crate) type Key = (String, String);

/// The key of the table `name` of `schema`.
pub(crate) fn key(schema: &str, name: &str) -> Key {
    (schema.to_ascii_lowercase(), name.to_ascii_lowercase())
}

/// How the tables of the files are shown to a principal.
pub(crate) struct Shown {
    pub(super) stamp: u64,
    /// The versions of the files' schemas.
    pub(super) versions: Vec<i64>,
    /// What the names of barriers end in.
    pub(crate) token: String,
    /// Tables to which a policy applies, and all that must not be read past it.
    pub(super) sights: BTreeMap<Key, Sight>,
    /// The names of the views that may read these tables as they are.
    pub(super) barriers: BTreeSet<String>,
    /// Views of the files' owners, made again over what is shown, by their keys.
    pub(super) views: BTreeMap<Key, sight::Made>,
}

impl Shown {
    /// How the table is shown; none if it is as it is.
    pub(crate) fn sight(&self, table: &Table) -> Option<&Sight> {
        self.sights.get(&key(&table.schema, &table.name))
    }

    /// Whether the table `name` (in lower case) of `schema` must not be read past a view.
    pub(crate) fn hides(&self, schema: &str, name: &str) -> bool {
        self.sights.contains_key(&key(schema, name))
    }

    /// Whether `accessor` is a view of ours that may read a table as it is.
    pub(crate) fn is_barrier(&self, accessor: &str) -> bool {
        self.barriers.contains(accessor)
    }

    /// Whether `sql` holds what nobody but us may name.
    pub(crate) fn is_named_in(&self, sql: &str) -> bool {
        sql.to_ascii_lowercase().contains(&self.token)
    }

    /// Whether any file has such a table.
    pub(crate) fn hides_any(&self, name: &str) -> bool {
        self.sights.keys().any(|(_, one)| one == name)
    }

    /// Whether what is called so is a view of ours before a table, and no owner's.
    pub(crate) fn stands_before(&self, schema: &str, name: &str) -> bool {
        let is_shadow = |sight: &Sight| matches!(sight, Sight::Guarded(one) if one.shadow.eq_ignore_ascii_case(name));
        name.ends_with(&self.token) || schema == "temp" && self.sights.values().any(is_shadow)
    }

    /// The mask of a column of a table; none when it is shown as it is.
    pub(crate) fn mask(&self, table: &Table, column: &str) -> Option<Mask> {
        match self.sight(table)? {
            Sight::Guarded(guarded) => {
                guarded.masks.iter().find(|(name, _)| name == column).and_then(|(_, mask)| *mask)
            }
            Sight::Barred(_) => Some(Mask::Deny),
        }
    }

    /// Whether nothing may be told of `column` of the table `name` of `schema`, or of the table where none is given.
    pub(crate) fn denies(&self, schema: &str, name: &str, column: Option<&str>) -> bool {
        match (self.sights.get(&key(schema, name)), column) {
            (Some(Sight::Guarded(guarded)), Some(column)) => {
                let is_it = |(name, _): &&(String, Option<Mask>)| name.eq_ignore_ascii_case(column);
                guarded.masks.iter().find(is_it).is_none_or(|(_, mask)| *mask == Some(Mask::Deny))
            }
            (Some(Sight::Barred(_)), _) => true,
            _ => false,
        }
    }

    /// Where the table `name` of `schema` is read instead.
    pub(crate) fn moved(&self, schema: &str, name: &str) -> Option<Moved> {
        let key = key(schema, name);
        let shadow = match self.sights.get(&key) {
            Some(Sight::Guarded(guarded)) => guarded.shadow.clone(),
            Some(Sight::Barred(_)) => return None,
            None => self.views.get(&key)?.name.clone(),
        };
        Some(("temp".to_owned(), shadow))
    }

    /// Why those of `tables` that are not read at all are not.
    pub(crate) fn barred(&self, tables: &[String]) -> Option<&Error> {
        let is_named = |(schema, name): &Key| names_one(tables, schema, name);
        self.sights.iter().find_map(|(key, sight)| match sight {
            Sight::Barred(error) if is_named(key) => Some(error),
            _ => None,
        })
    }

    /// The key of the table that `lookup` reads, and the name of its view that is no barrier; none if it must stay
    /// behind one.
    pub(crate) fn open(&self, lookup: &Lookup) -> Option<(Key, String)> {
        let mut meant =
            self.sights.iter().filter(|((schema, name), _)| names_one(&[lookup.table.join(".")], schema, name));
        let (Some((key, Sight::Guarded(guarded))), None) = (meant.next(), meant.next()) else { return None };
        let is_shown_as_it_is = |compared: &String| {
            let mut columns = guarded.masks.iter().filter(|(name, _)| name.eq_ignore_ascii_case(compared));
            matches!((columns.next(), columns.next()), (Some((_, None)), None))
        };
        let open = guarded.open.as_ref().filter(|_| lookup.compared.iter().all(is_shown_as_it_is))?;
        Some((key.clone(), open.name.clone()))
    }

    /// The keys of the tables that must stand in `temp` for a statement that reads `tables`; all for one that may read
    /// any.
    pub(crate) fn wanted(&self, tables: Option<&[String]>) -> BTreeSet<Key> {
        let all = || self.sights.keys().chain(self.views.keys()).cloned().collect();
        let Some(tables) = tables else { return all() };
        let is_named = |(schema, name): &&Key| names_one(tables, schema, name);
        // A view of the owner's may read whatever there is.
        let is_view = |sight: &Sight| matches!(sight, Sight::Guarded(guarded) if guarded.open.is_none());
        let guarded = self.sights.iter().filter(|(_, sight)| is_view(sight)).map(|(key, _)| key);
        if self.views.keys().chain(guarded).any(|key| is_named(&key)) {
            return all();
        }
        self.sights.keys().filter(is_named).cloned().collect()
    }
}

/// Whether one of `tables` may be the table `name` of `schema`.
fn names_one(tables: &[String], schema: &str, name: &str) -> bool {
    tables.iter().any(|table| {
        let table = table.to_ascii_lowercase();
        table == name || table.strip_suffix(name).is_some_and(|rest| rest == format!("{schema}."))
    })
}
