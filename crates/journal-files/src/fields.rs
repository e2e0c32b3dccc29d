//! The fields of a file and their values, without reading its entries.

use crate::error::JournalError;
use crate::file::{JournalFile, ObjectReader};

/// The maximum number of fields of one file.
const FIELDS_MAX: usize = 100_000;

impl JournalFile {
    /// The names of the fields that entries of this file contain.
    ///
    /// # Errors
    /// If the file is corrupted.
    pub fn field_names(&self) -> Result<Vec<String>, JournalError> {
        let mut reader = self.reader();
        let mut names = Vec::new();
        for_each_field(&mut reader, |name, _| names.push(name))?;
        Ok(names)
    }

    /// Passes each value of `field` and the number of entries that contain it to `on_value`, the newest first, until
    /// that returns `false`. Values that are too large are left out.
    ///
    /// # Errors
    /// If the file is corrupted.
    pub fn field_values(&self, field: &str, mut on_value: impl FnMut(&[u8], u64) -> bool) -> Result<(), JournalError> {
        let mut reader = self.reader();
        let mut head = 0;
        for_each_field(&mut reader, |name, head_data_offset| {
            if name == field {
                head = head_data_offset;
            }
        })?;
        let (mut offset, mut previous) = (head, u64::MAX);
        while offset != 0 {
            // New values are at the beginning of the list, so that one that does not descend is a loop.
            if offset >= previous {
                return Err(reader.defect(offset, "the list of values is a loop"));
            }
            previous = offset;
            let data = reader.data(offset)?;
            if let Some(payload) = reader.whole_payload(&data)?
                && !on_value(payload.get(field.len() + 1..).unwrap_or_default(), data.entries)
            {
                return Ok(());
            }
            offset = data.next_field_offset;
        }
        Ok(())
    }
}

/// Passes the name of each field and the position of its newest value to `on_field`.
fn for_each_field(reader: &mut ObjectReader, mut on_field: impl FnMut(String, u64)) -> Result<(), JournalError> {
    let (table, table_bytes) = reader.file.header.field_hash_table;
    let mut fields = 0;
    for bucket in 0..table_bytes / 16 {
        let (mut offset, mut previous) = (reader.word(table + bucket * 16)?, 0);
        while offset != 0 {
            fields += 1;
            if offset <= previous || fields > FIELDS_MAX {
                return Err(reader.defect(offset, "the index of fields is a loop"));
            }
            previous = offset;
            let field = reader.field(offset)?;
            offset = field.next_hash_offset;
            on_field(field.name, field.head_data_offset);
        }
    }
    Ok(())
}
