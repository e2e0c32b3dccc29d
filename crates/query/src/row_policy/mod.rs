//! Row policies: which rows and columns of a table a principal may see.
//!
//! A policy is parsed once from the configuration ([`RowCondition`]), and resolved for the columns of a table and a
//! principal into a [`TableView`], which contains only literals. Engines apply only this view. A policy that cannot be
//! applied hides the table.

mod condition;
mod filter;
mod parse;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, Principal, nearest_names};

use self::condition::unknown_column_message;
use crate::stable_hash::StableHasher;

pub use self::condition::RowCondition;
pub use self::filter::{HashKey, Mask, PolicyColumn, RowFilter, RowValue, ValueKind};

/// One row policy of a database.
#[derive(Debug, Clone, PartialEq)]
pub struct RowPolicy {
    /// The table, case-insensitive, and the tables below it (`orders.2024`); `*` is every table.
    pub table: String,
    /// The visible rows; all by default.
    pub rows: Option<RowCondition>,
    /// The masks of columns by name, case-insensitive.
    pub columns: BTreeMap<String, Mask>,
    /// Principals with one of these roles are exempt.
    pub except_roles: BTreeSet<String>,
}

impl RowPolicy {
    /// Whether the policy is for every table.
    pub fn covers_all_tables(&self) -> bool {
        self.table == "*"
    }

    /// Whether the policy covers a table with one of `names`, or a table above or below it: `orders` and `orders.2024`
    /// may become one table, or one become several, when files change.
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

/// The row policies of a database. Cheap to clone.
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

/// The view of a principal on a table with at least one applicable policy.
#[derive(Debug, Clone, PartialEq)]
pub struct TableView {
    /// The visible rows. Positions refer to the columns that the view was created with.
    pub rows: RowFilter,
    /// The masks of these columns, in order; `None` leaves the column unchanged.
    pub masks: Vec<Option<Mask>>,
}

impl TableView {
    /// Whether the column at `position` is visible to the principal.
    pub fn is_visible(&self, position: usize) -> bool {
        !matches!(self.masks.get(position), None | Some(Some(Mask::Deny)))
    }

    /// The positions of the visible columns.
    pub fn visible_columns(&self) -> impl Iterator<Item = usize> {
        (0..self.masks.len()).filter(|position| self.is_visible(*position))
    }
}

impl RowPolicies {
    /// Creates the policies, with `key` for hashes.
    pub fn new(policies: Vec<RowPolicy>, key: HashKey) -> Self {
        Self { policies: policies.into(), key }
    }

    /// Whether there are no policies.
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// The key of hashes.
    pub fn key(&self) -> &HashKey {
        &self.key
    }

    fn applicable<'a>(&'a self, names: &'a [&'a str], principal: &'a Principal) -> impl Iterator<Item = &'a RowPolicy> {
        self.policies.iter().filter(move |policy| policy.covers(names) && policy.applies_to(principal))
    }

    /// Whether a policy is for the table called `names`, for any caller.
    pub fn covers(&self, names: &[&str]) -> bool {
        self.policies.iter().any(|policy| policy.covers(names))
    }

    /// Whether a policy restricts the table called `names` for `principal`.
    pub fn applies(&self, names: &[&str], principal: &Principal) -> bool {
        self.applicable(names, principal).next().is_some()
    }

    /// The view of `principal` on the table that has or may have one of `names`, with `columns`. `None` if it is
    /// unrestricted.
    ///
    /// # Errors
    /// `Forbidden` when a policy does not match the table. The message reveals nothing; the detail has the reason.
    /// The table must not be read then.
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

    /// A fingerprint of the policies that apply to `principal` and the attributes that they use. It reveals nothing
    /// about them. Zero where no policy applies.
    pub fn fingerprint(&self, principal: &Principal) -> u64 {
        let mut applicable = self.policies.iter().filter(|policy| policy.applies_to(principal)).peekable();
        if applicable.peek().is_none() {
            return 0;
        }
        let mut hasher = StableHasher::default();
        // The key may change after a restart, which matters only where a hash is visible.
        if applicable.clone().any(|policy| policy.columns.values().any(|mask| *mask == Mask::Hash)) {
            hasher.add(self.key.hash("stamp"));
        }
        for policy in applicable {
            hasher.add(format!("{policy:?}"));
            let brought = policy.rows.iter().flat_map(|rows| rows.caller_attributes());
            brought.for_each(|caller_attribute| hasher.add(format!("{:?}", caller_attribute.value_for(principal))));
        }
        hasher.finish()
    }
}

impl RowPolicy {
    /// The rows that are visible to `principal`; `None` if all.
    fn row_filter(&self, columns: &[PolicyColumn<'_>], principal: &Principal) -> Result<Option<RowFilter>, String> {
        let Some(rows) = &self.rows else { return Ok(None) };
        let filter = rows.resolve(columns, &|attribute| attribute.value_for(principal))?;
        // A missing attribute hides all rows, under NOT and OR too.
        Ok(Some(filter.unwrap_or(RowFilter::Constant(false))))
    }

    /// Makes `masks` at least as strict as this policy.
    fn tighten_masks(&self, columns: &[PolicyColumn<'_>], masks: &mut [Option<Mask>]) -> Result<(), String> {
        let mut tighten = |position: usize, mask: Mask| {
            masks[position] = Some(masks[position].map_or(mask, |other| mask.stricter(other)));
        };
        for (name, mask) in &self.columns {
            for position in self.matching_columns(name, columns)? {
                mask.check(&columns[position])?;
                tighten(position, *mask);
                for revealing in self.revealing_columns(position, columns) {
                    tighten(revealing, mask.for_revealing_column());
                }
            }
        }
        Ok(())
    }

    /// The columns from which the value of the column at `position` can be read, and for which this policy has no mask.
    fn revealing_columns(&self, position: usize, columns: &[PolicyColumn<'_>]) -> Vec<usize> {
        let has_mask = |column: &PolicyColumn<'_>| {
            let folded = column.name.to_lowercase();
            self.columns.keys().any(|name| name.to_lowercase() == folded)
        };
        let is_revealing = |column: &PolicyColumn<'_>| column.reveals.contains(&position) && !has_mask(column);
        let revealing = columns.iter().enumerate().filter(|(_, column)| is_revealing(column));
        revealing.map(|(position, _)| position).collect()
    }

    fn matching_columns(&self, name: &str, columns: &[PolicyColumn<'_>]) -> Result<Vec<usize>, String> {
        let folded = name.to_lowercase();
        let alike = columns.iter().enumerate().filter(|(_, column)| column.name.to_lowercase() == folded);
        let found: Vec<usize> = alike.map(|(position, _)| position).collect();
        // A policy for all tables ignores tables without the column.
        if found.is_empty() && !self.covers_all_tables() {
            return Err(unknown_column_message(name, columns));
        }
        Ok(found)
    }
}

/// What the caller of a table learns whose row policy does not fit it. The columns of a policy are not for callers.
pub const UNFIT_POLICY_HINT: &str = "The owner of the server corrects the policy: its log, tidegate doctor and tidegate \
                                     config check name the policy and the column.";

/// The error for a table that must not be read. It is the same for every table and reason.
fn unfit_policy_error(names: &[&str], reason: &str) -> Error {
    let name = names.first().copied().unwrap_or_default();
    Error::new(ErrorKind::Forbidden, format!("the table {name:?} cannot be read: its row policy does not fit it"))
        .with_detail(format!("the row policy of the table {name:?} does not match its columns: {reason}"))
        .with_hint(UNFIT_POLICY_HINT)
        .mark_configuration_fault()
}

/// A table for the validation of policies.
#[derive(Debug, Clone, Copy)]
pub struct PolicyTable<'a> {
    /// The names that the table has or may have, the visible name first.
    pub names: &'a [&'a str],
    /// The columns; `None` where they are unknown.
    pub columns: Option<&'a [PolicyColumn<'a>]>,
}

/// The part of a policy that does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyPart {
    /// Its table.
    Table,
    /// Its condition.
    Rows,
    /// The mask of the column of that name.
    Column(String),
}

/// A mismatch between a policy and the tables, or an effect that the policy does not name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// The index of the policy, from 0.
    pub policy: usize,
    /// The part of the policy.
    pub part: PolicyPart,
    /// The message for the administrator.
    pub message: String,
    /// Whether this is only a warning: a mask has an effect on further columns, or a policy for all tables does not
    /// match a table, which cannot be read.
    pub is_warning: bool,
}

impl RowPolicies {
    /// The mismatches between these policies and `tables`, which are all tables of the database, and the columns that
    /// are masked because the values of others can be read from them.
    pub fn find_problems(&self, tables: &[PolicyTable<'_>]) -> Vec<PolicyProblem> {
        let mut problems = Vec::new();
        for (index, policy) in self.policies.iter().enumerate() {
            policy.report_problems(tables, |part, message, is_warning| {
                problems.push(PolicyProblem { policy: index, part, message, is_warning });
            });
        }
        problems
    }
}

impl RowPolicy {
    fn report_problems(&self, tables: &[PolicyTable<'_>], mut report: impl FnMut(PolicyPart, String, bool)) {
        let covers_all_tables = self.covers_all_tables();
        let mut meant = tables.iter().filter(|table| self.covers(table.names)).peekable();
        if meant.peek().is_none() && !covers_all_tables {
            let near = nearest_names(&self.table, tables.iter().filter_map(|table| table.names.first().copied()));
            let meant = near.first().map(|near| format!("; {near} is one")).unwrap_or_default();
            report(PolicyPart::Table, format!("there is no table {:?}{meant}", self.table), false);
        }
        for table in meant {
            let name = table.names.first().copied().unwrap_or_default();
            let Some(columns) = table.columns else { continue };
            let mismatch =
                |reason: String| format!("it does not match the table {name}, which cannot be read: {reason}");
            if let Some(Err(reason)) = self.rows.as_ref().map(|rows| rows.resolve(columns, &|_| None)) {
                report(PolicyPart::Rows, mismatch(reason), covers_all_tables);
            }
            for (column, mask) in &self.columns {
                let part = PolicyPart::Column(column.clone());
                match self.check_mask(column, *mask, columns) {
                    Ok(revealing) if revealing.is_empty() => {}
                    Ok(revealing) => report(part, describe_further_masks(*mask, &revealing, name), true),
                    Err(reason) => report(part, mismatch(reason), covers_all_tables),
                }
            }
        }
    }

    /// The names of the further columns that are masked with `column`. The error is why the mask does not match.
    fn check_mask<'a>(
        &self,
        column: &str,
        mask: Mask,
        columns: &[PolicyColumn<'a>],
    ) -> Result<BTreeSet<&'a str>, String> {
        let mut further = BTreeSet::new();
        for position in self.matching_columns(column, columns)? {
            mask.check(&columns[position])?;
            let revealing = self.revealing_columns(position, columns).into_iter();
            further.extend(revealing.map(|revealing| columns[revealing].name));
        }
        Ok(further)
    }
}

fn describe_further_masks(mask: Mask, columns: &BTreeSet<&str>, table: &str) -> String {
    let effect = if mask == Mask::Deny { "denies" } else { "masks" };
    let names = columns.iter().copied().collect::<Vec<_>>().join(", ");
    format!(
        "also {effect} {names} of the table {table}, from which its values can be read; a mask of its own in this \
         policy overrides that"
    )
}
