//! JSON lines: one object per line, whose nested objects become members with names such as `a.b`.

use super::json_text::{JsonText, JsonValue};
use crate::defect::Misfit;
use crate::entry::{EntryFields, Piece};

/// Objects with a longer name are one member too, so that the names of their members do not fill the memory.
const PREFIX_BYTES_MAX: usize = 128;
/// Objects below this depth are one member with JSON as text.
const FLATTENED_DEPTH_MAX: usize = 5;

pub(crate) fn parse(line: &str, fields: &mut EntryFields) -> Result<(), Misfit> {
    let mut json = JsonText::new(line);
    json.skip_blanks();
    if json.peek() != Some(b'{') {
        return Err(Misfit::expected("a JSON object", json.position()));
    }
    members(&mut json, line, None, 1, fields)?;
    json.skip_blanks();
    if json.position() < line.len() {
        return Err(Misfit::expected("the end of the line after the object", json.position()));
    }
    Ok(())
}

fn members(
    json: &mut JsonText<'_>,
    line: &str,
    prefix: Option<Piece>,
    depth: usize,
    fields: &mut EntryFields,
) -> Result<(), Misfit> {
    json.expect(b'{', "a JSON object")?;
    json.skip_blanks();
    if json.take(b'}') {
        return Ok(());
    }
    loop {
        json.skip_blanks();
        let name = json.string(fields)?;
        let name = match prefix {
            None => name,
            Some(_) if fields.is_full() => name,
            Some(prefix) => {
                let start = fields.scratch_len();
                fields.append_piece(prefix, line);
                fields.scratch_mut().push('.');
                fields.append_piece(name, line);
                fields.scratch_since(start)
            }
        };
        json.skip_blanks();
        json.expect(b':', "a colon after the name")?;
        json.skip_blanks();
        let is_whole = depth >= FLATTENED_DEPTH_MAX || name.len() > PREFIX_BYTES_MAX;
        match json.value(is_whole, fields)? {
            JsonValue::Object => members(json, line, Some(name), depth + 1, fields)?,
            JsonValue::Scalar(value) => fields.push_member(name, value),
        }
        json.skip_blanks();
        if json.take(b'}') {
            return Ok(());
        }
        json.expect(b',', "a comma or the end of the object")?;
    }
}
