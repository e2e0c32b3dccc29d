//! The structured data of RFC 5424, whose parameters become members `id.name`.

use crate::defect::Misfit;
use crate::entry::{EntryFields, Piece, Slot};

/// Reads the elements `[id name="value" …]` that begin at `start`, or `-`. Gives the position after them.
pub(crate) fn parse(line: &str, start: usize, fields: &mut EntryFields) -> Result<usize, Misfit> {
    let bytes = line.as_bytes();
    if bytes.get(start) == Some(&b'-') {
        return Ok(start + 1);
    }
    if bytes.get(start) != Some(&b'[') {
        return Err(Misfit::expected("structured data in brackets or -", start));
    }
    let mut position = start;
    while bytes.get(position) == Some(&b'[') {
        position = element(line, position + 1, fields)?;
    }
    Ok(position)
}

/// Longer names of elements are refused, so that the names of members do not fill the memory. RFC 5424 allows 32 bytes.
const NAME_BYTES_MAX: usize = 128;

fn element(line: &str, start: usize, fields: &mut EntryFields) -> Result<usize, Misfit> {
    let bytes = line.as_bytes();
    let id_end = name_end(bytes, start).ok_or(Misfit::expected("the name of an element of structured data", start))?;
    let id = Piece::of_text(start, id_end);
    let mut position = id_end;
    let mut has_parameters = false;
    loop {
        match bytes.get(position) {
            Some(b']') => {
                if !has_parameters {
                    fields.push_member(id, Slot::Boolean(true));
                }
                return Ok(position + 1);
            }
            Some(b' ') => position += 1,
            _ => return Err(Misfit::expected("] at the end of structured data", position)),
        }
        if matches!(bytes.get(position), Some(b']' | b' ')) {
            continue;
        }
        let name_start = position;
        let end = name_end(bytes, name_start).ok_or(Misfit::expected("the name of a parameter", name_start))?;
        if bytes.get(end..end + 2) != Some(b"=\"") {
            return Err(Misfit::expected("=\" after the name of a parameter", end));
        }
        let (value, value_end) = value(line, end + 2, fields)?;
        let start = fields.scratch_len();
        fields.append_piece(id, line);
        fields.scratch_mut().push('.');
        fields.append_piece(Piece::of_text(name_start, end), line);
        let name = fields.scratch_since(start);
        fields.push_member(name, Slot::Text(value));
        has_parameters = true;
        position = value_end + 1;
    }
}

fn name_end(bytes: &[u8], start: usize) -> Option<usize> {
    let is_name = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"');
    let length = bytes.get(start..)?.iter().take_while(|byte| is_name(byte)).count();
    (1..=NAME_BYTES_MAX).contains(&length).then_some(start + length)
}

/// A value and the position of its closing quote. `\"`, `\\` and `\]` are escapes; other backslashes are themselves.
fn value(line: &str, start: usize, fields: &mut EntryFields) -> Result<(Piece, usize), Misfit> {
    let bytes = line.as_bytes();
    let mut end = start;
    let mut has_escapes = false;
    loop {
        let rest = bytes.get(end..).unwrap_or_default();
        let found = memchr::memchr2(b'"', b'\\', rest);
        end += found.ok_or(Misfit::expected("a closing quote", bytes.len()))?;
        if bytes.get(end) == Some(&b'"') {
            break;
        }
        has_escapes = true;
        end += 2;
    }
    if !has_escapes {
        return Ok((Piece::of_text(start, end), end));
    }
    let raw = line.get(start..end).unwrap_or_default();
    let piece = fields.write_scratch(|scratch| {
        let mut characters = raw.chars().peekable();
        while let Some(character) = characters.next() {
            let escaped = characters.next_if(|next| character == '\\' && matches!(next, '"' | '\\' | ']'));
            scratch.push(escaped.unwrap_or(character));
        }
    });
    Ok((piece, end))
}
