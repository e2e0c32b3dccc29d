//! The values of entries, with a bounded cache of those that several entries share.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::journal::file::{JournalError, ObjectReader};

/// The bytes of cached values of one file, of which there are two generations.
const CACHED_BYTES_MAX: usize = 2 << 20;
/// The bytes that a cached value needs besides its text.
const CACHED_VALUE_BYTES: usize = 64;

/// The fields that a reading needs.
#[derive(Debug, Clone)]
pub enum FieldSelection {
    /// All fields.
    All,
    /// The fields with these names.
    Names(Vec<String>),
}

/// A value of an entry.
#[derive(Debug, Clone)]
pub struct FieldValue {
    /// `NAME=value`.
    payload: Arc<[u8]>,
    name_bytes: u32,
    /// The position of the field in [`FieldSelection::Names`]; 0 for all fields.
    pub field: u32,
}

impl FieldValue {
    /// The name of the field.
    pub fn name(&self) -> &str {
        self.payload.get(..self.name_bytes as usize).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }

    /// The value, which may be any bytes.
    pub fn bytes(&self) -> &[u8] {
        self.payload.get(self.name_bytes as usize + 1..).unwrap_or_default()
    }
}

#[derive(Clone)]
enum CachedValue {
    Needed(FieldValue),
    NotNeeded,
}

/// The values of the entries of one file.
pub(crate) struct ValueReader {
    fields: Arc<FieldSelection>,
    recent: HashMap<u64, CachedValue, FixedState>,
    older: HashMap<u64, CachedValue, FixedState>,
    recent_bytes: usize,
    items: Vec<u64>,
}

impl ValueReader {
    pub(crate) fn new(fields: Arc<FieldSelection>) -> Self {
        Self { fields, recent: HashMap::default(), older: HashMap::default(), recent_bytes: 0, items: Vec::new() }
    }

    /// Replaces `values` by the needed values of the entry at `offset`, and returns how many values are too large.
    pub(crate) fn read(
        &mut self,
        reader: &mut ObjectReader,
        offset: u64,
        values: &mut Vec<FieldValue>,
    ) -> Result<usize, JournalError> {
        values.clear();
        if matches!(&*self.fields, FieldSelection::Names(names) if names.is_empty()) {
            return Ok(0);
        }
        let mut items = std::mem::take(&mut self.items);
        items.clear();
        let mut oversized = 0;
        let read = reader.entry_items(offset, &mut items).and_then(|()| {
            for item in &items {
                match self.value(reader, *item)? {
                    Some(CachedValue::Needed(value)) => values.push(value),
                    Some(CachedValue::NotNeeded) => {}
                    None => oversized += 1,
                }
            }
            Ok(oversized)
        });
        self.items = items;
        read
    }

    /// The value at `offset`; `None` if it is too large.
    fn value(&mut self, reader: &mut ObjectReader, offset: u64) -> Result<Option<CachedValue>, JournalError> {
        if let Some(value) = self.recent.get(&offset) {
            return Ok(Some(value.clone()));
        }
        if let Some(value) = self.older.remove(&offset) {
            self.store(offset, value.clone());
            return Ok(Some(value));
        }
        let data = reader.data(offset)?;
        let fields = self.fields.clone();
        let field = match &*fields {
            FieldSelection::All => Some(0),
            FieldSelection::Names(names) => {
                reader.data_field(&data, |field| names.iter().position(|name| name == field))?
            }
        };
        let value = match field {
            None => CachedValue::NotNeeded,
            Some(field) => {
                let Some(payload) = reader.whole_payload(&data)? else { return Ok(None) };
                let name = memchr::memchr(b'=', &payload);
                let Some(name) = name.and_then(|end| u32::try_from(end).ok()) else {
                    return Err(reader.defect(offset, "a value has no name"));
                };
                CachedValue::Needed(FieldValue { payload, name_bytes: name, field: field as u32 })
            }
        };
        // A value of one entry is not needed again.
        if data.entries != 1 {
            self.store(offset, value.clone());
        }
        Ok(Some(value))
    }

    fn store(&mut self, offset: u64, value: CachedValue) {
        let bytes = match &value {
            CachedValue::Needed(value) => value.payload.len(),
            CachedValue::NotNeeded => 0,
        };
        if bytes + CACHED_VALUE_BYTES > CACHED_BYTES_MAX / 4 {
            return;
        }
        self.recent_bytes += bytes + CACHED_VALUE_BYTES;
        if self.recent_bytes > CACHED_BYTES_MAX / 2 {
            self.older = std::mem::take(&mut self.recent);
            self.recent_bytes = bytes + CACHED_VALUE_BYTES;
        }
        self.recent.insert(offset, value);
    }
}
