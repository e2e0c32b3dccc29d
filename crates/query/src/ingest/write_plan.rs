//! How the columns of a body are stored in an existing table.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use tidegate_core::{Error, ErrorKind, Violation};

/// A column of an existing table that takes rows. `F` is the form in which the database takes its values.
#[derive(Debug, Clone)]
pub struct TargetColumn<F> {
    /// The field of a body. It is nullable unless each row needs a value.
    pub field: Field,
    /// How its values are stored.
    pub form: F,
    /// Whether a row without a value gets a default.
    pub has_default: bool,
    /// Whether null can be stored.
    pub takes_nulls: bool,
}

/// Which columns of the batches of a write are stored in which columns of its table.
///
/// A column with a default that is null in all rows of the first batch is left out of the write, so that its default
/// applies; rows with a value after that are refused. Where such a column takes no nulls, this is decided batch by batch.
#[derive(Debug)]
pub struct WritePlan {
    table: String,
    columns: Vec<PlannedColumn>,
}

/// A column of the batches.
#[derive(Debug)]
struct PlannedColumn {
    name: String,
    /// The position among the columns of the table.
    target: usize,
    presence: Presence,
}

/// Whether a column is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Stored,
    /// The first rows decide.
    Undecided,
    /// Its default applies.
    Defaulted,
    /// Its default applies where a batch has only nulls, which it does not take.
    ByBatch,
}

/// A column of a batch that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredColumn {
    /// The position in the batch.
    pub position: usize,
    /// The position among the columns of the table.
    pub target: usize,
}

impl WritePlan {
    /// Batches with the columns of `schema` for the table `table` with these columns. `fits` says whether a column stores
    /// values of a type.
    ///
    /// # Errors
    /// `InvalidArguments` with each column that does not fit.
    pub fn new<F>(
        table: &str,
        targets: &[TargetColumn<F>],
        schema: &Schema,
        fits: impl Fn(&DataType, &TargetColumn<F>) -> bool,
    ) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let mut columns: Vec<PlannedColumn> = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let mut problem = |message: String| problems.push(Violation { path: field.name().clone(), message });
            let found = targets.iter().enumerate().find(|(_, column)| column.field.name() == field.name());
            let Some((target, column)) = found else {
                problem("the table has no such column that takes values".to_owned());
                continue;
            };
            if columns.iter().any(|planned| planned.target == target) {
                problem("the rows have the column twice".to_owned());
            } else if !fits(field.data_type(), column) {
                let expected = column.field.data_type();
                problem(format!("the rows have {}, and the column takes {expected}", field.data_type()));
            }
            let presence = match (column.has_default, column.takes_nulls) {
                (false, _) => Presence::Stored,
                (true, true) => Presence::Undecided,
                (true, false) => Presence::ByBatch,
            };
            columns.push(PlannedColumn { name: field.name().clone(), target, presence });
        }
        for (position, column) in targets.iter().enumerate() {
            if !column.field.is_nullable() && !columns.iter().any(|planned| planned.target == position) {
                let message = "each row needs a value, and the rows have no such column".to_owned();
                problems.push(Violation { path: column.field.name().clone(), message });
            }
        }
        if problems.is_empty() {
            return Ok(Self { table: table.to_owned(), columns });
        }
        Err(Error::invalid_arguments(format!("the columns do not fit the table {table:?}"), problems))
    }

    /// The name of the table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The columns of `batch`, the next one of the write, that are stored.
    ///
    /// # Errors
    /// `InvalidArguments` if a column has values whose default applied to the rows before.
    pub fn stored_columns(&mut self, batch: &RecordBatch) -> Result<Vec<StoredColumn>, Error> {
        if batch.num_columns() != self.columns.len() {
            let (count, planned) = (batch.num_columns(), self.columns.len());
            return Err(Error::internal(format!("a batch has {count} columns, not {planned}")));
        }
        let mut stored = Vec::with_capacity(self.columns.len());
        for (position, (column, array)) in self.columns.iter_mut().zip(batch.columns()).enumerate() {
            let is_empty = array.logical_null_count() == array.len();
            if column.presence == Presence::Undecided {
                column.presence = if is_empty { Presence::Defaulted } else { Presence::Stored };
            }
            match column.presence {
                Presence::Defaulted if !is_empty => {
                    let message = format!(
                        "the column {:?} of {:?} has a default, which applies to the rows before; later rows have values",
                        column.name, self.table
                    );
                    return Err(Error::new(ErrorKind::InvalidArguments, message)
                        .with_hint("Send the column in all rows, or in none."));
                }
                Presence::Defaulted => {}
                Presence::ByBatch if is_empty => {}
                Presence::Stored | Presence::ByBatch | Presence::Undecided => {
                    stored.push(StoredColumn { position, target: column.target });
                }
            }
        }
        Ok(stored)
    }
}
