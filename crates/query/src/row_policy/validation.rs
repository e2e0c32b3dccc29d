//! Validates policies against the tables of a database when a configuration is loaded.

use tidegate_core::nearest_names;

use super::filter::PolicyColumn;
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

/// A mismatch between a policy and the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// The index of the policy, from 0.
    pub policy: usize,
    /// The part of the policy.
    pub part: PolicyPart,
    /// The message for the administrator.
    pub message: String,
    /// Whether this is only a warning: tables that a policy for all tables does not match cannot be read.
    pub is_warning: bool,
}

impl RowPolicies {
    /// The mismatches between these policies and `tables`, which are all tables of the database.
    pub fn find_problems(&self, tables: &[PolicyTable<'_>]) -> Vec<PolicyProblem> {
        let mut problems = Vec::new();
        for (index, policy) in self.policies.iter().enumerate() {
            policy.report_problems(tables, |part, message| {
                problems.push(PolicyProblem { policy: index, part, message, is_warning: policy.covers_all_tables() });
            });
        }
        problems
    }
}

impl RowPolicy {
    fn report_problems(&self, tables: &[PolicyTable<'_>], mut complain: impl FnMut(PolicyPart, String)) {
        let mut meant = tables.iter().filter(|table| self.covers(table.names)).peekable();
        if meant.peek().is_none() && !self.covers_all_tables() {
            let near = nearest_names(&self.table, tables.iter().filter_map(|table| table.names.first().copied()));
            let meant = near.first().map(|near| format!("; {near} is one")).unwrap_or_default();
            complain(PolicyPart::Table, format!("there is no table {:?}{meant}", self.table));
        }
        for table in meant {
            let name = table.names.first().copied().unwrap_or_default();
            let Some(columns) = table.columns else { continue };
            let mut mismatch = |part: PolicyPart, reason: String| {
                complain(part, format!("it does not match the table {name}, which cannot be read: {reason}"));
            };
            if let Some(Err(reason)) = self.rows.as_ref().map(|rows| rows.resolve(columns, &|_| None)) {
                mismatch(PolicyPart::Rows, reason);
            }
            for (column, mask) in &self.columns {
                let checked = self.matching_columns(column, columns);
                let checked = checked.and_then(|found| found.iter().try_for_each(|at| mask.check(&columns[*at])));
                if let Err(reason) = checked {
                    mismatch(PolicyPart::Column(column.clone()), reason);
                }
            }
        }
    }
}
