//! What an owner declares about the tables of a folder, against each other and against the tables that exist.

use std::collections::BTreeMap;

use super::IngestError;
use super::columns::merge_columns;
use super::folder_handle::IngestFolder;
use super::maintenance::retention_column;
use super::names::{check_new_table_name, table_key};
use super::options::{SchemaEvolution, TableDeclaration};
use crate::delta::{DeltaSnapshot, PartitionBy};

impl IngestFolder {
    /// Checks that `tables` can be declared now.
    ///
    /// # Errors
    /// `Declaration` if they contradict each other or the tables that exist.
    pub fn check_declarations(&self, tables: &BTreeMap<String, TableDeclaration>) -> Result<(), IngestError> {
        check_declarations(tables)?;
        let state = self.shared.state.lock();
        for (name, declaration) in tables {
            let Some(table) = state.tables.get(&table_key(name)) else { continue };
            if table.name != *name {
                return Err(name_differs_in_case(name, &table.name));
            }
            if let Some(snapshot) = &table.snapshot {
                check_stored(name, declaration, snapshot)?;
            }
        }
        Ok(())
    }

    /// Declares `tables` in place of those before. Writes that have begun are not affected. The declarations have been
    /// checked ([`IngestFolder::check_declarations`]).
    pub fn set_declarations(&self, tables: &BTreeMap<String, TableDeclaration>, create_tables: bool) {
        let mut state = self.shared.state.lock();
        state.set_declarations(tables, create_tables);
        self.shared.version.send_replace(state.version);
    }
}

pub(super) fn name_differs_in_case(name: &str, other: &str) -> IngestError {
    let problem = format!("its name differs from that of table \"{other}\" only in case");
    IngestError::Declaration { table: name.to_owned(), problem }
}

/// Checks declarations against each other.
pub(super) fn check_declarations(tables: &BTreeMap<String, TableDeclaration>) -> Result<(), IngestError> {
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for (name, declaration) in tables {
        let problem = |problem: String| IngestError::Declaration { table: name.clone(), problem };
        check_new_table_name(name).map_err(|error| problem(error.to_string()))?;
        if let Some(other) = names.insert(table_key(name), name) {
            return Err(name_differs_in_case(name, other));
        }
        if let (Some(_), Some(columns)) = (declaration.retention, &declaration.columns)
            && retention_column(declaration, columns).is_none()
        {
            let text =
                "\"retention\" needs a partition by day, month or hour, or a column \"time\" that is a time or date";
            return Err(problem(text.to_owned()));
        }
    }
    Ok(())
}

/// Checks the declaration of a table against the table.
pub(super) fn check_stored(
    name: &str,
    declaration: &TableDeclaration,
    snapshot: &DeltaSnapshot,
) -> Result<(), IngestError> {
    let problem = |problem: String| IngestError::Declaration { table: name.to_owned(), problem };
    if let Some(columns) = &declaration.columns {
        merge_columns(name, &snapshot.schema, columns, SchemaEvolution::AddColumns)
            .map_err(|error| problem(error.to_string()))?;
    }
    let stored: Vec<&PartitionBy> = snapshot.partition_columns.iter().map(|column| &column.partition_by).collect();
    if !stored.iter().copied().eq(&declaration.partition_by) {
        let declared = &declaration.partition_by;
        return Err(problem(format!("the table is partitioned by {stored:?}, and declared with {declared:?}")));
    }
    Ok(())
}
