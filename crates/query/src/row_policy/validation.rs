//! Validates policies against the tables of a database when a configuration is loaded.

use std::collections::BTreeSet;

use tidegate_core::nearest_names;

use super::filter::PolicyColumn;
use super::mask::Mask;
use super::policies::{RowPolicies, RowPolicy};

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
