//! Types of columns in the data files of Delta tables.
//!
//! A cast that loses nothing reads what was written before a column became wider. DataFusion would also cast where the file
//! has something else, and change values without an error.

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{DataFusionError, Result};
use thiserror::Error;
use tidegate_delta::is_readable_type;
use tidegate_query::type_name;

/// Why a data file cannot be read.
#[derive(Debug, Error)]
#[error("column {column:?} has the type {in_file}, and {in_table} in the Delta table")]
pub(super) struct TypeMismatch {
    column: String,
    in_file: String,
    in_table: String,
}

/// Refuses a file whose columns do not have the types of the table.
pub(super) fn check_delta_types(table: &Schema, file: &Schema) -> Result<()> {
    for declared in table.fields() {
        if let Ok(found) = file.field_with_name(declared.name())
            && !is_readable_type(found.data_type(), declared.data_type())
        {
            let (in_file, in_table) = (type_name(found.data_type()), type_name(declared.data_type()));
            let mismatch = TypeMismatch { column: declared.name().clone(), in_file, in_table };
            return Err(DataFusionError::External(Box::new(mismatch)));
        }
    }
    Ok(())
}
