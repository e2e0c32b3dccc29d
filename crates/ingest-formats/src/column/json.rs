//! Values from JSON.

use std::collections::HashSet;

use super::{ColumnBuffer, ColumnValues, NameIndex, offset_of};
use crate::error::{CellError, CellResult};
use crate::json::cursor::{JsonCursor, JsonKind};
use crate::value::number::{NumberParts, NumberSyntax, special_float};
use crate::value::quoted;

/// Maps with fewer keys are searched for a key that occurs twice; others are hashed.
const SEARCHED_KEYS_MAX: usize = 16;

impl ColumnBuffer {
    /// Appends the next value of `cursor`. After an error, the column must be truncated.
    #[inline]
    pub(crate) fn append_json(&mut self, cursor: &mut JsonCursor<'_>) -> CellResult<()> {
        if let ColumnValues::Text { is_json: true, .. } = &self.values {
            return self.append_document(cursor);
        }
        match cursor.kind()? {
            JsonKind::Null => self.append_null(),
            JsonKind::Number => self.append_number(cursor.number()?, NumberSyntax::Json),
            JsonKind::String => self.append_json_string(cursor.string()?),
            JsonKind::Boolean(value) => self.append_boolean(value),
            JsonKind::Array => self.append_array(cursor),
            JsonKind::Object => self.append_object(cursor),
        }
    }

    fn append_json_string(&mut self, text: &str) -> CellResult<()> {
        match &mut self.values {
            ColumnValues::Text { text: texts, .. } => {
                texts.push(text.as_bytes());
                self.nulls.append_non_null();
                Ok(())
            }
            ColumnValues::Float32(_) | ColumnValues::Float64(_) => match special_float(text) {
                Some(value) => {
                    self.append_float(value);
                    Ok(())
                }
                None => Err(self.string_misfit(text)),
            },
            ColumnValues::Integer { .. }
            | ColumnValues::Unsigned(_)
            | ColumnValues::Decimal { .. }
            | ColumnValues::WideDecimal { .. }
            | ColumnValues::Boolean(_) => Err(self.string_misfit(text)),
            _ => self.append_written(text),
        }
    }

    /// The error of a string where the column takes numbers or booleans.
    fn string_misfit(&self, text: &str) -> Box<CellError> {
        let (kind, is_one) = match &self.values {
            ColumnValues::Boolean(_) => ("boolean", matches!(text, "true" | "false")),
            _ => ("number", NumberParts::parse(text.as_bytes(), NumberSyntax::Json).is_some()),
        };
        if !is_one {
            return self.misfit(text);
        }
        CellError::new(format!(
            "{} is a string, and the column is {}; send a {kind} without quotes",
            quoted(text),
            self.description()
        ))
    }

    /// Appends any value as it is written.
    fn append_document(&mut self, cursor: &mut JsonCursor<'_>) -> CellResult<()> {
        let document = cursor.raw_value()?;
        if document == "null" {
            return self.append_null();
        }
        let ColumnValues::Text { text, .. } = &mut self.values else { return Err(self.misfit(document)) };
        text.push(document.as_bytes());
        self.nulls.append_non_null();
        Ok(())
    }

    fn append_array(&mut self, cursor: &mut JsonCursor<'_>) -> CellResult<()> {
        let ColumnValues::List { offsets, item, size } = &mut self.values else {
            return Err(CellError::new(format!("it is an array; the column is {}", self.description())));
        };
        let start = item.len();
        let mut is_first = true;
        while cursor.next_item(&mut is_first)? {
            let index = item.len() - start;
            item.check_room().and_then(|()| item.append_json(cursor)).map_err(|error| error.in_item(index))?;
        }
        let length = item.len() - start;
        if let Some(size) = size.filter(|size| *size != length) {
            return Err(CellError::new(format!("it has {length} items; the column is a list of {size}")));
        }
        offsets.push(offset_of(item.len()));
        self.nulls.append_non_null();
        Ok(())
    }

    /// Checks that a list may have one more of these items.
    #[inline]
    fn check_room(&self) -> CellResult<()> {
        match self.len() < self.items_max {
            true => Ok(()),
            false => Err(CellError::new("the lists of the row take more memory than a row may have; split the row")),
        }
    }

    fn append_object(&mut self, cursor: &mut JsonCursor<'_>) -> CellResult<()> {
        match &mut self.values {
            ColumnValues::Struct { names, members } => append_members(names, members, self.nulls.len(), cursor)?,
            ColumnValues::Map { offsets, key, value } => {
                append_entries(key, value, cursor)?;
                offsets.push(offset_of(key.len()));
            }
            _ => return Err(CellError::new(format!("it is an object; the column is {}", self.description()))),
        }
        self.nulls.append_non_null();
        Ok(())
    }
}

/// Appends one object to the members of a struct. All of them have `len` values before.
fn append_members(
    names: &NameIndex,
    members: &mut [ColumnBuffer],
    len: usize,
    cursor: &mut JsonCursor<'_>,
) -> CellResult<()> {
    let (mut is_first, mut expected) = (true, 0);
    while let Some(name) = cursor.next_name(&mut is_first)? {
        let Some(position) = names.find(name, expected) else {
            return Err(CellError::new(names.unknown("member", name)));
        };
        expected = position + 1;
        let Some(member) = members.get_mut(position) else { continue };
        if member.len() > len {
            return Err(CellError::new("it occurs twice").in_member(names.name(position)));
        }
        member.append_json(cursor).map_err(|error| error.in_member(names.name(position)))?;
    }
    for (position, member) in members.iter_mut().enumerate().filter(|(_, member)| member.len() == len) {
        member.append_missing().map_err(|error| error.in_member(names.name(position)))?;
    }
    Ok(())
}

/// Appends one object to the entries of a map. Keys that are not text have the form that they have in CSV.
fn append_entries(key: &mut ColumnBuffer, value: &mut ColumnBuffer, cursor: &mut JsonCursor<'_>) -> CellResult<()> {
    let mut is_first = true;
    let mut seen: Vec<String> = Vec::new();
    let mut hashed: HashSet<String> = HashSet::new();
    while let Some(name) = cursor.next_name(&mut is_first)? {
        let is_new = if seen.len() < SEARCHED_KEYS_MAX {
            let is_new = !seen.iter().any(|other| other == name);
            seen.push(name.to_owned());
            is_new
        } else {
            !seen.iter().any(|other| other == name) && hashed.insert(name.to_owned())
        };
        if !is_new {
            return Err(CellError::new("the key occurs twice").in_member(name));
        }
        let name = name.to_owned();
        // The same number in another form would be the same key twice.
        if !key.is_text() && !name.parse::<i128>().is_ok_and(|number| number.to_string() == name) {
            return Err(key.misfit(&name).in_member(&name));
        }
        key.append_text(&name).map_err(|error| error.in_member(&name))?;
        value.check_room().and_then(|()| value.append_json(cursor)).map_err(|error| error.in_member(&name))?;
    }
    Ok(())
}
