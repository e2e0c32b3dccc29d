//! PostgreSQL's `jsonlog`, since version 15. Keys that are unknown become members.

use super::json_text::{JsonText, JsonValue};
use super::postgres_csv::typed_value;
use crate::column::{EntryColumnRole as Role, EntryColumnType as Type, FixedColumn};
use crate::defect::Misfit;
use crate::entry::EntryFields;
use crate::time::TimeResolver;

/// The columns in the order in which PostgreSQL writes them.
pub(crate) const COLUMNS: &[FixedColumn] = &[
    ("timestamp", Type::Timestamp, Role::Time),
    ("user", Type::Text, Role::Field),
    ("dbname", Type::Text, Role::Field),
    ("pid", Type::Integer, Role::Field),
    ("remote_host", Type::Text, Role::Field),
    ("remote_port", Type::Integer, Role::Field),
    ("session_id", Type::Text, Role::Field),
    ("line_num", Type::Integer, Role::Field),
    ("ps", Type::Text, Role::Field),
    ("session_start", Type::Timestamp, Role::Field),
    ("vxid", Type::Text, Role::Field),
    ("txid", Type::Integer, Role::Field),
    ("error_severity", Type::Text, Role::Severity),
    ("state_code", Type::Text, Role::Field),
    ("message", Type::Text, Role::Message),
    ("detail", Type::Text, Role::Field),
    ("hint", Type::Text, Role::Field),
    ("internal_query", Type::Text, Role::Field),
    ("internal_position", Type::Integer, Role::Field),
    ("context", Type::Text, Role::Field),
    ("statement", Type::Text, Role::Field),
    ("cursor_position", Type::Integer, Role::Field),
    ("func_name", Type::Text, Role::Field),
    ("file_name", Type::Text, Role::Field),
    ("file_line_num", Type::Integer, Role::Field),
    ("application_name", Type::Text, Role::Field),
    ("backend_type", Type::Text, Role::Field),
    ("leader_pid", Type::Integer, Role::Field),
    ("query_id", Type::Integer, Role::Field),
];

/// The session ID is the start of the session and the process ID as hexadecimal numbers.
pub(crate) const OVERLAPPING_COLUMNS: &[(&str, &str)] = &[("session_id", "pid"), ("session_id", "session_start")];

pub(crate) fn parse(line: &str, times: &mut TimeResolver, fields: &mut EntryFields) -> Result<(), Misfit> {
    let mut json = JsonText::new(line);
    json.skip_blanks();
    json.expect(b'{', "a JSON object")?;
    let mut next_column = 0;
    loop {
        json.skip_blanks();
        let name = json.string(fields)?;
        json.skip_blanks();
        json.expect(b':', "a colon after the name")?;
        json.skip_blanks();
        let start = json.position();
        // Objects are not written by any version, so that one is a member as a whole.
        let JsonValue::Scalar(value) = json.value(true, fields)? else {
            return Err(Misfit::expected("a JSON value", start));
        };
        match column_index(fields.resolve(name, line), next_column) {
            Some(column) => {
                let column_type = COLUMNS.get(column).map_or(Type::Text, |(_, column_type, _)| *column_type);
                let value = typed_value(value, column_type, line, start, times, fields)?;
                fields.set(column, value);
                next_column = column + 1;
            }
            None => fields.push_member(name, value),
        }
        json.skip_blanks();
        if json.take(b'}') {
            break;
        }
        json.expect(b',', "a comma or the end of the object")?;
    }
    json.skip_blanks();
    if json.position() < line.len() {
        return Err(Misfit::expected("the end of the line after the object", json.position()));
    }
    Ok(())
}

/// The index of a column, which is usually one of the next.
fn column_index(name: &str, next: usize) -> Option<usize> {
    let (before, after) = COLUMNS.split_at_checked(next).unwrap_or((COLUMNS, &[]));
    let position = |columns: &[FixedColumn]| columns.iter().position(|(column, _, _)| *column == name);
    position(after).map(|index| index + next).or_else(|| position(before))
}
