//! Which rows and columns of a table a principal may see: policies, and what they come to for somebody.
//!
//! A policy is written in the configuration. It is parsed once ([`RowCondition`]), fitted to a table's columns and
//! resolved for a principal into a [`TableView`], in which nothing but literals is left; an engine shows the table
//! through it and does nothing else with policies. Whatever cannot be applied shows nothing.

mod binding;
mod condition;
mod conversion;
mod hash;
mod mask;
mod resolve;
mod validation;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, Principal};

pub use binding::{Comparator, RowFilter, RowValue, ValueKind};
pub use condition::RowCondition;
pub use hash::HashKey;
pub use mask::Mask;
pub use validation::{PolicyPart, PolicyProblem, PolicyTable};

use crate::stable_hash::StableHasher;

/// One policy of a database's tables.
#[derive(Debug, Clone, PartialEq)]
pub struct RowPolicy {
    /// The table that it is for, whatever the case of its letters, and what is below it (`orders.2024`); `*` is every
    /// table.
    pub table: String,
    /// The rows that are shown; all unless said.
    pub rows: Option<RowCondition>,
    /// How columns are shown, by their names, whatever the case of their letters.
    pub columns: BTreeMap<String, Mask>,
    /// Whoever holds one of these roles is not bound by it.
    pub except_roles: BTreeSet<String>,
}

impl RowPolicy {
    /// Whether it is for every table.
    pub fn covers_all_tables(&self) -> bool {
        self.table == "*"
    }

    /// Whether it is for a table with one of `names`, or for one of which such a table is a part, or that is a part of
    /// it: `orders` and `orders.2024` may become one table, or one become several, when files come and go.
    fn covers(&self, names: &[&str]) -> bool {
        let expected = self.table.to_lowercase();
        let is_below = |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('.'));
        let means = |name: String| name == expected || is_below(&name, &expected) || is_below(&expected, &name);
        self.covers_all_tables() || names.iter().any(|name| means(name.to_lowercase()))
    }

    fn applies_to(&self, principal: &Principal) -> bool {
        self.except_roles.is_disjoint(&principal.roles)
    }
}

/// A column that a policy is fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyColumn<'a> {
    /// Its name, unquoted.
    pub name: &'a str,
    /// What its values are.
    pub kind: ValueKind,
}

/// The policies of a database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RowPolicies {
    policies: Arc<[RowPolicy]>,
    key: HashKey,
}

impl Default for RowPolicies {
    fn default() -> Self {
        Self::new(Vec::new(), HashKey::process_key())
    }
}

/// What a principal sees of a table to which at least one policy applies.
#[derive(Debug, Clone, PartialEq)]
pub struct TableView {
    /// Which rows. Positions in it are those of the columns that the view was asked for.
    pub rows: RowFilter,
    /// How each of these columns is shown, in their order; none is as it is.
    pub masks: Vec<Option<Mask>>,
}

impl TableView {
    /// Whether the column at `position` exists for the principal.
    pub fn is_visible(&self, position: usize) -> bool {
        !matches!(self.masks.get(position), None | Some(Some(Mask::Deny)))
    }

    /// The positions of the columns that exist for the principal.
    pub fn visible_columns(&self) -> impl Iterator<Item = usize> {
        (0..self.masks.len()).filter(|position| self.is_visible(*position))
    }
}

impl RowPolicies {
    /// `policies`, which hash with `key`.
    pub fn new(policies: Vec<RowPolicy>, key: HashKey) -> Self {
        Self { policies: policies.into(), key }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// What values are hashed with.
    pub fn key(&self) -> &HashKey {
        &self.key
    }

    fn applicable<'a>(&'a self, names: &'a [&'a str], principal: &'a Principal) -> impl Iterator<Item = &'a RowPolicy> {
        self.policies.iter().filter(move |policy| policy.covers(names) && policy.applies_to(principal))
    }

    /// Whether a policy keeps something of the table called `names` from `principal`.
    pub fn applies(&self, names: &[&str], principal: &Principal) -> bool {
        self.applicable(names, principal).next().is_some()
    }

    /// What `principal` sees of the table that has or might have one of `names`, with `columns`. None if all of it.
    ///
    /// # Errors
    /// `Unavailable` when a policy does not fit the table, in words that tell nothing of it; why is in the detail. The
    /// table must not be read then.
    pub fn view(
        &self,
        names: &[&str],
        columns: &[PolicyColumn<'_>],
        principal: &Principal,
    ) -> Result<Option<TableView>, Error> {
        let mut policies = self.applicable(names, principal).peekable();
        if policies.peek().is_none() {
            return Ok(None);
        }
        let mut filters = Vec::new();
        let mut masks = vec![None; columns.len()];
        for policy in policies {
            filters.extend(policy.row_filter(columns, principal).map_err(|reason| unfit_policy_error(names, &reason))?);
            policy.tighten_masks(columns, &mut masks).map_err(|reason| unfit_policy_error(names, &reason))?;
        }
        Ok(Some(TableView { rows: RowFilter::all(filters), masks }))
    }

    /// What an answer depends on beside the data and the statement: which policies bind `principal`, and what it brings
    /// to them. Nothing of that can be learned from it. Zero where no policy binds it.
    pub fn stamp(&self, principal: &Principal) -> u64 {
        let mut binding = self.policies.iter().filter(|policy| policy.applies_to(principal)).peekable();
        if binding.peek().is_none() {
            return 0;
        }
        let mut stamp = StableHasher::default();
        // The key may be another after a restart, which is nothing to whom no hash is shown.
        if binding.clone().any(|policy| policy.columns.values().any(|mask| *mask == Mask::Hash)) {
            stamp.add(self.key.hash("stamp"));
        }
        for policy in binding {
            stamp.add(format!("{policy:?}"));
            let brought = policy.rows.iter().flat_map(|rows| rows.caller_attributes());
            brought.for_each(|caller_attribute| stamp.add(format!("{:?}", caller_attribute.value_for(principal))));
        }
        stamp.finish()
    }
}

impl RowPolicy {
    /// The rows that it leaves to `principal`; none if all.
    fn row_filter(&self, columns: &[PolicyColumn<'_>], principal: &Principal) -> Result<Option<RowFilter>, String> {
        let Some(rows) = &self.rows else { return Ok(None) };
        let fitted = rows.bind(columns)?;
        // What a principal does not bring is nobody's, under NOT and OR too.
        Ok(Some(fitted.resolve(principal).unwrap_or(RowFilter::Constant(false))))
    }

    /// Makes `masks` as strict as it wants.
    fn tighten_masks(&self, columns: &[PolicyColumn<'_>], masks: &mut [Option<Mask>]) -> Result<(), String> {
        for (name, mask) in &self.columns {
            for position in self.matching_columns(name, columns)? {
                mask.check(&columns[position])?;
                masks[position] = Some(masks[position].map_or(*mask, |other| mask.stricter(other)));
            }
        }
        Ok(())
    }

    /// The positions of the columns that are called `name`.
    fn matching_columns(&self, name: &str, columns: &[PolicyColumn<'_>]) -> Result<Vec<usize>, String> {
        let folded = name.to_lowercase();
        let alike = columns.iter().enumerate().filter(|(_, column)| column.name.to_lowercase() == folded);
        let found: Vec<usize> = alike.map(|(position, _)| position).collect();
        // Of a policy for all tables, those without the column have nothing to hide in it.
        if found.is_empty() && !self.covers_all_tables() {
            return Err(condition::unknown_column_message(name, columns));
        }
        Ok(found)
    }
}

/// A table that must not be read. What it says is the same for every table and reason.
fn unfit_policy_error(names: &[&str], reason: &str) -> Error {
    let name = names.first().copied().unwrap_or_default();
    Error::new(ErrorKind::Unavailable, format!("the table {name:?} cannot be read: its row policy does not fit it"))
        .with_detail(format!("the row policy of the table {name:?} does not match its columns: {reason}"))
        .with_hint("The server log has the reason.")
}
