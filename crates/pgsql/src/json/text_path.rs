//! Finds a part of a document in its text, without making a document of it.

use std::borrow::Cow;

use datafusion::common::Result;

use super::reader::{JsonReader, JsonToken};

/// One step into a document.
#[derive(Debug, Clone)]
pub(super) enum PathStep<'a> {
    /// A member of an object.
    Key(Cow<'a, str>),
    /// An element of an array, from its end if negative.
    Index(i64),
    /// Either, by what there is: what `#>` takes.
    Any(Cow<'a, str>),
}

/// Returns the text of the value at `step` of a valid document.
pub(super) fn find_step<'d>(document: &'d str, step: &PathStep<'_>) -> Result<Option<&'d str>> {
    let mut reader = JsonReader::new(document);
    match (reader.token()?, step) {
        (JsonToken::Object, PathStep::Key(key) | PathStep::Any(key)) => member(&mut reader, key),
        (JsonToken::Array, PathStep::Index(index)) => element(document, *index),
        (JsonToken::Array, PathStep::Any(text)) => match parse_index(text) {
            Some(index) => element(document, index),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Parses an index from text.
pub(super) fn parse_index(text: &str) -> Option<i64> {
    let text = text.trim_start();
    text.parse::<i32>().ok().map(i64::from)
}

/// Returns the last member with this name. A `jsonb` has only one.
fn member<'d>(reader: &mut JsonReader<'d>, key: &str) -> Result<Option<&'d str>> {
    let mut found = None;
    each_member(reader, |name, value| {
        if name == key {
            found = Some(value);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Calls `take` for each member of the object that is next.
pub(super) fn each_member<'d>(
    reader: &mut JsonReader<'d>,
    mut take: impl FnMut(Cow<'d, str>, &'d str) -> Result<()>,
) -> Result<()> {
    reader.accept(b'{');
    if reader.accept(b'}') {
        return Ok(());
    }
    loop {
        reader.skip_space();
        let name = reader.string()?;
        reader.accept(b':');
        let value = reader.skip_value()?;
        take(name, value)?;
        if !reader.accept(b',') {
            return Ok(());
        }
    }
}

/// Calls `take` for each element of the array that is next, until it returns false.
pub(super) fn each_element<'d>(
    reader: &mut JsonReader<'d>,
    mut take: impl FnMut(&'d str) -> Result<bool>,
) -> Result<()> {
    reader.accept(b'[');
    if reader.accept(b']') {
        return Ok(());
    }
    loop {
        let value = reader.skip_value()?;
        if !take(value)? || !reader.accept(b',') {
            return Ok(());
        }
    }
}

/// Returns the number of elements of the array `document`.
pub(super) fn array_length(document: &str) -> Result<i64> {
    let mut length = 0;
    each_element(&mut JsonReader::new(document), |_| {
        length += 1;
        Ok(true)
    })?;
    Ok(length)
}

fn element(document: &str, index: i64) -> Result<Option<&str>> {
    let expected = if index < 0 { array_length(document)? + index } else { index };
    if expected < 0 {
        return Ok(None);
    }
    let (mut found, mut position) = (None, 0);
    each_element(&mut JsonReader::new(document), |value| {
        if position == expected {
            found = Some(value);
        }
        position += 1;
        Ok(found.is_none())
    })?;
    Ok(found)
}

/// Returns the result of `->>` for the text of a value: `None` for null, and strings without quotes.
pub(super) fn as_text(value: &str) -> Result<Option<Cow<'_, str>>> {
    let mut reader = JsonReader::new(value);
    match reader.token()? {
        JsonToken::Null => Ok(None),
        JsonToken::String => reader.string().map(Some),
        _ => Ok(Some(Cow::Borrowed(value))),
    }
}
