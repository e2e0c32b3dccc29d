//! The tables of a snapshot as a principal sees them.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{
    Catalog, PolicyColumn, PolicyProblem, PolicyTable, RowPolicies, TableEntry, TableStatus, TableView, ValueKind,
};

use super::mask::text_type;
use crate::embedded::files::{FileTable, FileTablesSnapshot};

/// A principal, and the policies that may restrict it.
#[derive(Debug, Clone)]
pub(crate) struct PrincipalPolicies {
    pub(crate) policies: RowPolicies,
    pub(crate) principal: Arc<Principal>,
}

/// The visible part of a table that a policy restricts.
#[derive(Debug)]
pub(crate) struct RestrictedView {
    /// The policy's view of the table. Its positions are those of the table's own columns.
    pub(super) table: TableView,
    /// The visible columns, with their types after masking.
    pub(crate) schema: SchemaRef,
    /// For each visible column, its position in the table.
    pub(crate) positions: Vec<usize>,
}

/// The columns of a table, as policies need them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicyTableColumns<'a> {
    pub(crate) schema: &'a SchemaRef,
    /// For each of the first columns, the positions of the others whose values can be read from it.
    pub(crate) revealed: &'a [Vec<usize>],
}

impl<'a> From<&'a FileTable> for PolicyTableColumns<'a> {
    fn from(table: &'a FileTable) -> Self {
        Self { schema: table.columns(), revealed: table.revealed_columns() }
    }
}

impl<'a> PolicyTableColumns<'a> {
    fn for_policies(self) -> Vec<PolicyColumn<'a>> {
        let fields = self.schema.fields().iter().enumerate();
        let column = |(position, field): (usize, &'a FieldRef)| PolicyColumn {
            name: field.name(),
            kind: value_kind(field.data_type()),
            reveals: self.revealed.get(position).map(Vec::as_slice).unwrap_or_default(),
        };
        fields.map(column).collect()
    }
}

impl RestrictedView {
    /// Whether the column called `name` is visible with its own values.
    pub(crate) fn is_unmasked(&self, name: &str) -> bool {
        let mut columns = self.schema.fields().iter().zip(&self.positions);
        columns.any(|(field, position)| field.name() == name && self.table.masks[*position].is_none())
    }
}

impl PrincipalPolicies {
    /// The view of `table`, or `None` if the principal may see all of it.
    pub(crate) fn view(
        &self,
        snapshot: &FileTablesSnapshot,
        table: &FileTable,
    ) -> Result<Option<RestrictedView>, Error> {
        self.view_of_columns(&snapshot.possible_names(&table.name), table.into())
    }

    /// The view of the table that has or may have one of `names`, with `columns`, or `None` if the principal may see
    /// all of it.
    pub(crate) fn view_of_columns(
        &self,
        names: &[&str],
        columns: PolicyTableColumns<'_>,
    ) -> Result<Option<RestrictedView>, Error> {
        if self.policies.is_empty() {
            return Ok(None);
        }
        let Some(view) = self.policies.view(names, &columns.for_policies(), &self.principal)? else {
            return Ok(None);
        };
        let schema = columns.schema;
        let fields = schema.fields();
        let positions: Vec<usize> = view.visible_columns().collect();
        let seen = positions.iter().map(|position| {
            let field = fields[*position].as_ref();
            match view.masks[*position] {
                None => field.clone(),
                Some(mask) if mask.makes_text() => Field::new(field.name(), text_type(schema), true),
                Some(_) => Field::new(field.name(), field.data_type().clone(), true),
            }
        });
        let schema = Arc::new(Schema::new(seen.collect::<Vec<Field>>()));
        Ok(Some(RestrictedView { table: view, schema, positions }))
    }

    pub(crate) fn is_restricted(&self, snapshot: &FileTablesSnapshot, name: &str) -> bool {
        !self.policies.is_empty() && self.policies.applies(&snapshot.possible_names(name), &self.principal)
    }

    pub(crate) fn table(
        &self,
        snapshot: &FileTablesSnapshot,
        name: &str,
        database: &str,
    ) -> Result<Arc<FileTable>, Error> {
        match snapshot.find(name) {
            Some((name, Err(reason))) if self.is_restricted(snapshot, name) => Err(unavailable_error(name, reason)),
            _ => snapshot.table(name, database),
        }
    }

    pub(crate) fn catalog(&self, snapshot: &FileTablesSnapshot) -> Arc<Catalog> {
        if self.policies.is_empty() {
            return snapshot.catalog.clone();
        }
        let seen = |entry: &TableEntry| {
            if !self.is_restricted(snapshot, &entry.name) {
                return entry.clone();
            }
            let status = match (&entry.status, snapshot.find(&entry.name)) {
                (TableStatus::Readable, Some((_, Ok(table)))) => match self.view(snapshot, table) {
                    Ok(_) => TableStatus::Readable,
                    Err(error) => TableStatus::Unreadable(error.message().to_owned()),
                },
                _ => TableStatus::Unreadable(UNREADABLE_NOW.to_owned()),
            };
            let comment = Some("restricted by a row policy".to_owned());
            TableEntry { name: entry.name.clone(), rows: None, comment, status }
        };
        // Notes contain the names of files and tables, which the principal may not be allowed to see.
        Arc::new(Catalog::from_tables(snapshot.catalog.tables.iter().map(seen).collect()))
    }
}

const UNREADABLE_NOW: &str = "it cannot be read now";

pub(super) fn unavailable_error(name: &str, reason: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the table {name:?} cannot be read now"))
        .with_hint("Retry. If the error persists, the server log has the reason.")
        .with_detail(format!("the table {name:?} under a row policy cannot be read: {reason}"))
}

pub(crate) fn check_policies(policies: &RowPolicies, snapshot: &FileTablesSnapshot) -> Vec<PolicyProblem> {
    let entries = snapshot.catalog.tables.iter();
    let tables: Vec<(Vec<&str>, Option<Vec<PolicyColumn<'_>>>)> = entries
        .map(|entry| {
            let table = snapshot.find(&entry.name).and_then(|(_, table)| table.as_deref().ok());
            let columns = table.map(|table| PolicyTableColumns::from(table).for_policies());
            (snapshot.stable_names(&entry.name), columns)
        })
        .collect();
    let tables: Vec<PolicyTable<'_>> =
        tables.iter().map(|(names, columns)| PolicyTable { names, columns: columns.as_deref() }).collect();
    policies.find_problems(&tables)
}

/// Returns the policies that do not fit `tables`, which have a name and columns each.
pub(crate) fn check_table_policies(
    policies: &RowPolicies,
    tables: &[(&str, PolicyTableColumns<'_>)],
) -> Vec<PolicyProblem> {
    let tables: Vec<([&str; 1], Vec<PolicyColumn<'_>>)> =
        tables.iter().map(|(name, columns)| ([*name], columns.for_policies())).collect();
    let tables: Vec<PolicyTable<'_>> =
        tables.iter().map(|(names, columns)| PolicyTable { names, columns: Some(columns) }).collect();
    policies.find_problems(&tables)
}

fn value_kind(data_type: &DataType) -> ValueKind {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ValueKind::Text,
        DataType::Dictionary(_, values) => value_kind(values),
        DataType::Boolean => ValueKind::Boolean,
        DataType::Date32 => ValueKind::Date,
        DataType::Timestamp(..) => ValueKind::Timestamp,
        // A column with only NULL so far.
        DataType::Null => ValueKind::Any,
        other if other.is_integer() => ValueKind::Integer,
        other if other.is_numeric() => ValueKind::Number,
        _ => ValueKind::Other,
    }
}
