//! Values from fields of CSV and from the keys of maps.

use super::{ColumnBuffer, ColumnValues};
use crate::error::CellResult;
use crate::json::cursor::JsonCursor;
use crate::value::number::{NumberSyntax, special_float};

impl ColumnBuffer {
    /// Appends the value that `text` stands for. Null is not a text; see [`Self::append_null`].
    #[inline]
    pub(crate) fn append_text(&mut self, text: &str) -> CellResult<()> {
        match &mut self.values {
            ColumnValues::Text { text: texts, is_json: false } => {
                texts.push(text.as_bytes());
                self.nulls.append_non_null();
                Ok(())
            }
            ColumnValues::Text { is_json: true, .. }
            | ColumnValues::List { .. }
            | ColumnValues::Struct { .. }
            | ColumnValues::Map { .. } => {
                let mut cursor = JsonCursor::new(text);
                self.append_json(&mut cursor)?;
                Ok(cursor.expect_end()?)
            }
            ColumnValues::Boolean(_) => match parse_boolean(text) {
                Some(value) => self.append_boolean(value),
                None => Err(self.misfit(text)),
            },
            ColumnValues::Float32(_) | ColumnValues::Float64(_) => match special_float(text) {
                Some(value) => {
                    self.append_float(value);
                    Ok(())
                }
                None => self.append_number(text, NumberSyntax::Text),
            },
            ColumnValues::Timestamp { epoch_unit: Some(_), .. } if !text.contains(':') => {
                self.append_number(text, NumberSyntax::Text)
            }
            ColumnValues::Date(_)
            | ColumnValues::Time { .. }
            | ColumnValues::Timestamp { .. }
            | ColumnValues::Binary { .. } => self.append_written(text),
            _ => self.append_number(text, NumberSyntax::Text),
        }
    }
}

fn parse_boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("t") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") || text.eq_ignore_ascii_case("f") {
        Some(false)
    } else {
        None
    }
}
