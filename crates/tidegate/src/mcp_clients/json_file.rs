//! Sets the entry of a server in a JSON file, with or without comments, in a syntax tree that keeps the rest of the text.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::catalog::ClientFileFormat;
use super::edit::{EditError, EditPosition, FileEdit, check_only_entry_differs};

/// Sets `name` in the object `section`, which may be new. Of several members with one name, the last one counts.
pub(super) fn set_entry(
    text: &str,
    format: ClientFileFormat,
    section: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<FileEdit, EditError> {
    let file = parse(text, format)?;
    let not_a_table = |what: &str| EditError::NotATable { what: what.to_owned() };
    let before = file.to_serde_value().unwrap_or_default();
    let root = file.object_value().ok_or_else(|| not_a_table("what stands"))?;
    let edited = |is_new: bool| {
        let after = file.to_string();
        let reread = parse(&after, format).ok().and_then(|file| file.to_serde_value()).unwrap_or_default();
        check_only_entry_differs(before.clone(), &reread, section, name, entry)?;
        Ok(if is_new { FileEdit::Added(after) } else { FileEdit::Replaced(after) })
    };
    let Some(member) = find(&root, section) else {
        root.append(section, CstInputValue::Object(vec![(name.to_owned(), to_input(&Value::Object(entry.clone())))]));
        return edited(true);
    };
    let servers = member.object_value().ok_or_else(|| not_a_table(section))?;
    let new = to_input(&Value::Object(entry.clone()));
    let Some(member) = find(&servers, name) else {
        servers.append(name, new);
        return edited(true);
    };
    let old = member.value();
    if old.as_ref().and_then(CstNode::to_serde_value).is_some_and(|old| old.as_object() == Some(entry)) {
        return Ok(FileEdit::Unchanged);
    }
    if old.is_some_and(|old| has_comment(&old)) {
        return Err(EditError::Comments { name: name.to_owned() });
    }
    member.set_value(new);
    edited(false)
}

fn parse(text: &str, format: ClientFileFormat) -> Result<CstRootNode, EditError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let root = CstRootNode::parse(text, &options);
    if format == ClientFileFormat::Json
        && let Err(error) = serde_json::from_str::<IgnoredAny>(text)
    {
        // The parser ends its message with the position, which is a separate field here.
        let parser_message = error.to_string();
        let message = match root {
            Ok(_) => "a comment or a trailing comma, which this file's format does not have",
            Err(_) => parser_message.split(" at line ").next().unwrap_or_default(),
        };
        let position = EditPosition { line: error.line(), column: error.column().max(1) };
        return Err(EditError::Syntax { position, message: message.to_owned() });
    }
    let root = root.map_err(|error| EditError::Syntax {
        position: EditPosition::from_offset(text, error.range().start),
        message: error.kind().to_string(),
    })?;
    if root.value().is_none() {
        let position = EditPosition::from_offset(text, text.len());
        return Err(EditError::Syntax { position, message: "the file holds no value".to_owned() });
    }
    Ok(root)
}

fn find(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    object.properties().into_iter().rev().find(|member| member.decoded_name().as_deref() == Some(name))
}

fn has_comment(node: &CstNode) -> bool {
    node.is_comment() || node.children().iter().any(has_comment)
}

fn to_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(to_input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), to_input(value))).collect())
        }
    }
}
