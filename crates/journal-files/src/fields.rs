//! The fields of a file, without reading its entries.

use crate::error::JournalError;
use crate::file::JournalFile;

/// The maximum number of fields of one file.
const FIELDS_MAX: usize = 100_000;

impl JournalFile {
    /// The names of the fields that entries of this file contain.
    ///
    /// # Errors
    /// If the file is corrupted.
    pub fn field_names(&self) -> Result<Vec<String>, JournalError> {
        let mut reader = self.reader();
        let (table, table_bytes) = self.header.field_hash_table;
        let mut names = Vec::new();
        for bucket in 0..table_bytes / 16 {
            let (mut offset, mut previous) = (reader.word(table + bucket * 16)?, 0);
            while offset != 0 {
                if offset <= previous || names.len() >= FIELDS_MAX {
                    return Err(reader.defect(offset, "the index of fields is a loop"));
                }
                previous = offset;
                let (name, next) = reader.field(offset)?;
                names.push(name);
                offset = next;
            }
        }
        Ok(names)
    }
}
