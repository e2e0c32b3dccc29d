//! What becomes of the text around an entry.

use serde_json::{Map, Value, json};

use crate::mcp_clients::catalog::ClientFileFormat;
use crate::mcp_clients::edit::{EditError, EditPosition, FileEdit};
use crate::mcp_clients::{json_file, toml_file};

fn entry() -> Map<String, Value> {
    let Value::Object(entry) = json!({ "url": "http://h/mcp" }) else { unreachable!() };
    entry
}

fn set_entry_in(text: &str) -> Result<FileEdit, EditError> {
    json_file::set_entry(text, ClientFileFormat::JsonWithComments, "servers", "tidegate", &entry())
}

#[track_caller]
fn added_text(text: &str) -> String {
    match set_entry_in(text) {
        Ok(FileEdit::Added(after)) => after,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn replaced_text(text: &str) -> String {
    match set_entry_in(text) {
        Ok(FileEdit::Replaced(after)) => after,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn syntax_error_position(text: &str, format: ClientFileFormat) -> (usize, usize) {
    match json_file::set_entry(text, format, "servers", "tidegate", &entry()) {
        Err(EditError::Syntax { position: EditPosition { line, column }, .. }) => (line, column),
        other => panic!("{other:?}"),
    }
}

#[test]
fn adds_section_after_other_settings() {
    let before = "{\n  \"theme\": \"dark\",\n  \"scale\": 1.50\n}\n";
    let after = "{\n  \"theme\": \"dark\",\n  \"scale\": 1.50,\n  \"servers\": {\n    \"tidegate\": {\n      \
                 \"url\": \"http://h/mcp\"\n    }\n  }\n}\n";
    assert_eq!(added_text(before), after);
}

#[test]
fn adds_entry_after_siblings_with_their_indentation() {
    for indent in ["  ", "    ", "\t", "   "] {
        let i = indent;
        let before = format!("{{\n{i}\"servers\": {{\n{i}{i}\"a\": {{}}\n{i}}},\n{i}\"z\": [1,2]\n}}");
        let after = format!(
            "{{\n{i}\"servers\": {{\n{i}{i}\"a\": {{}},\n{i}{i}\"tidegate\": {{\n{i}{i}{i}\"url\": \"http://h/mcp\"\n\
             {i}{i}}}\n{i}}},\n{i}\"z\": [1,2]\n}}"
        );
        assert_eq!(added_text(&before), after);
    }
}

#[test]
fn adds_entry_to_an_empty_object() {
    let whole = "{\n  \"servers\": {\n    \"tidegate\": {\n      \"url\": \"http://h/mcp\"\n    }\n  }\n}";
    assert_eq!(added_text("{}"), whole);
    assert_eq!(added_text("{\n  \"servers\": {}\n}"), whole);
    assert_eq!(added_text("{\n  \"servers\": {\n  }\n}"), whole);
}

#[test]
fn objects_on_one_line_gain_line_breaks() {
    assert_eq!(
        added_text(r#"{"servers":{"a":{}},"b":2}"#),
        "{\"servers\":{\n    \"a\":{},\n    \"tidegate\": {\n      \"url\": \"http://h/mcp\"\n    }\n  },\"b\":2}"
    );
}

#[test]
fn keeps_comments_beside_their_values() {
    let before = "// Mine.\n{\n  // Servers.\n  \"servers\": {\n    \"a\": {} // the first\n    // the end\n  }, /* x */\n  \
                  \"b\": \"// no comment\", // b\n}\n// Last.\n";
    let after = "// Mine.\n{\n  // Servers.\n  \"servers\": {\n    \"a\": {}, // the first\n    \"tidegate\": {\n      \
                 \"url\": \"http://h/mcp\"\n    }\n    // the end\n  }, /* x */\n  \
                 \"b\": \"// no comment\", // b\n}\n// Last.\n";
    assert_eq!(added_text(before), after);
}

#[test]
fn keeps_trailing_comma() {
    let before = "{\n  \"servers\": {\n    \"a\": {}, // first\n  },\n}\n";
    let after = "{\n  \"servers\": {\n    \"a\": {}, // first\n    \"tidegate\": {\n      \"url\": \"http://h/mcp\",\n    \
                 },\n  },\n}\n";
    assert_eq!(added_text(before), after);
}

#[test]
fn keeps_comments_of_an_otherwise_empty_object() {
    let before = "{\n  // none yet\n}\n";
    let after =
        "{\n  // none yet\n  \"servers\": {\n    \"tidegate\": {\n      \"url\": \"http://h/mcp\"\n    }\n  }\n}\n";
    assert_eq!(added_text(before), after);
}

#[test]
fn keeps_multi_line_block_comment() {
    let before = "{\n  \"a\": 1 /* one\n  two */\n}\n";
    let after = added_text(before);
    assert!(after.starts_with("{\n  \"a\": 1, /* one\n  two */\n  \"servers\": {\n"), "{after}");
}

#[test]
fn replaces_only_the_named_entry() {
    let before =
        "{\n  \"servers\": {\n    \"tidegate\": { \"url\": \"old\", \"x\": [{}] }, // mine\n    \"b\": {}\n  }\n}\n";
    let after = "{\n  \"servers\": {\n    \"tidegate\": {\n      \"url\": \"http://h/mcp\"\n    }, // mine\n    \
                 \"b\": {}\n  }\n}\n";
    assert_eq!(replaced_text(before), after);
    assert_eq!(set_entry_in(after), Ok(FileEdit::Unchanged));
}

#[test]
fn refuses_to_replace_entry_with_comments() {
    let before =
        "{\n  \"servers\": {\n    \"tidegate\": {\n      // the old one\n      \"url\": \"old\"\n    }\n  }\n}\n";
    assert_eq!(set_entry_in(before), Err(EditError::Comments { name: "tidegate".to_owned() }));
    // What is the same already stays with its comments.
    assert_eq!(set_entry_in(&before.replace("old\"", "http://h/mcp\"")), Ok(FileEdit::Unchanged));
}

#[test]
fn key_order_does_not_count_as_a_change() {
    let Value::Object(entry) = json!({ "a": 1, "b": 2 }) else { unreachable!() };
    let text = r#"{"servers": {"tidegate": {"b": 2, "a": 1}}}"#;
    assert_eq!(
        json_file::set_entry(text, ClientFileFormat::Json, "servers", "tidegate", &entry),
        Ok(FileEdit::Unchanged)
    );
}

#[test]
fn compares_keys_after_unescaping() {
    let text = r#"{"serv\u0065rs": {"tidegate": {"url": "http:\/\/h/mcp"}}}"#;
    assert_eq!(set_entry_in(text), Ok(FileEdit::Unchanged));
}

#[test]
fn numbers_and_strings_keep_their_spelling() {
    let before = "{\n  \"n\": 12345678901234567890123,\n  \"f\": 1.0e+02,\n  \"s\": \"\\u00e9 {\\\"[,é\"\n}";
    let after = added_text(before);
    assert!(after.starts_with(&before[..before.len() - 2]), "{after}");
}

#[test]
fn rejects_non_object_sections() {
    let refused =
        |text, subject: &str| assert_eq!(set_entry_in(text), Err(EditError::NotATable { what: subject.to_owned() }));
    refused("[]", "what stands");
    refused("null", "what stands");
    refused(r#"{"servers": []}"#, "servers");
    refused(r#"{"servers": null}"#, "servers");
}

#[test]
fn a_syntax_error_is_named_by_its_place() {
    assert_eq!(syntax_error_position("{\n  \"a\": 1\n  \"b\": 2\n}", ClientFileFormat::Json), (3, 3));
    assert_eq!(syntax_error_position("{\n  \"a\": 1,\n}", ClientFileFormat::Json), (3, 1));
    assert_eq!(syntax_error_position("{\n  // no\n}", ClientFileFormat::Json), (2, 3));
    assert_eq!(syntax_error_position("{\n  \"ä\": /* x\n}", ClientFileFormat::JsonWithComments), (2, 8));
    assert_eq!(syntax_error_position("{\"a\": \"b", ClientFileFormat::JsonWithComments), (1, 7));
    assert_eq!(syntax_error_position("{} {}", ClientFileFormat::JsonWithComments), (1, 4));
    assert_eq!(syntax_error_position("// only\n", ClientFileFormat::JsonWithComments), (2, 1));
}

#[test]
fn truncated_json_never_parses_as_another_document() {
    let whole = "// é\n{ \"a\": [1, {\"b\": \"}\\\"\"},], /* ] */ \"servers\": {\"x\": {\"url\": \"u\"}, }, }";
    assert!(matches!(set_entry_in(whole), Ok(FileEdit::Added(_))));
    for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        assert!(set_entry_in(&whole[..end]).is_err(), "{}", &whole[..end]);
    }
}

fn set_toml(text: &str) -> Result<FileEdit, EditError> {
    toml_file::set_entry(text, "mcp_servers", "tidegate", &entry())
}

#[track_caller]
fn edited_toml_text(text: &str) -> String {
    match set_toml(text) {
        Ok(FileEdit::Added(after) | FileEdit::Replaced(after)) => after,
        other => panic!("{other:?}"),
    }
}

#[test]
fn toml_keeps_comments_and_order() {
    let before = "# Mine.\nmodel = \"m\" # which\n\n[mcp_servers.b] # sibling\ncommand = 'b'\n\n[z]\nx = 1\n# y = 2\n";
    let after = &format!("{before}\n[mcp_servers.tidegate]\nurl = \"http://h/mcp\"\n");
    assert_eq!(&edited_toml_text(before), after);
    assert_eq!(set_toml(after), Ok(FileEdit::Unchanged));
}

#[test]
fn toml_without_servers_gets_the_table_alone() {
    for before in ["model = \"m\"\n", "# nothing yet\n", "[mcp_servers]\n", "mcp_servers.b.command = \"b\"\n"] {
        assert_eq!(edited_toml_text(before), format!("{before}\n[mcp_servers.tidegate]\nurl = \"http://h/mcp\"\n"));
    }
    assert_eq!(edited_toml_text("a = 1"), "a = 1\n\n[mcp_servers.tidegate]\nurl = \"http://h/mcp\"\n");
}

#[test]
fn toml_inline_tables_stay_inline() {
    let before = "mcp_servers = { b = { command = \"b\" } }\n";
    let after = edited_toml_text(before);
    assert!(after.contains("b = { command = \"b\" }"), "{after}");
    assert!(after.contains("tidegate = { url = \"http://h/mcp\" }"), "{after}");
    assert_eq!(after.lines().count(), 1, "{after}");
}

#[test]
fn toml_entries_change_where_they_differ() {
    let before = "[mcp_servers.tidegate]\n# where\nurl = \"old\" # moved\nenabled = false\n\n[mcp_servers.tidegate.env]\nA = \"1\"\n";
    let after = "[mcp_servers.tidegate]\n# where\nurl = \"http://h/mcp\" # moved\n";
    assert_eq!(edited_toml_text(before), after);
}

#[test]
fn toml_comments_are_not_removed() {
    let refused = |text| assert_eq!(set_toml(text), Err(EditError::Comments { name: "tidegate".to_owned() }), "{text}");
    refused("[mcp_servers.tidegate]\nurl = \"old\"\nenabled = false # for now\n");
    refused("[mcp_servers.tidegate]\nurl = \"old\"\n# for now\nenabled = false\n");
    refused("[mcp_servers.tidegate]\nurl = \"old\"\n[mcp_servers.tidegate.env] # secret\nA = \"1\"\n");
    refused("[mcp_servers.tidegate]\nurl = [ # which\n  1 ]\n");
}

#[test]
fn toml_keeps_its_line_ends() {
    let before = "a = 1\r\n\r\n[b]\r\nc = 2\r\n";
    let after = edited_toml_text(before);
    assert!(after.starts_with(before), "{after:?}");
    assert_eq!(after.matches("\r\n").count(), after.matches('\n').count(), "{after:?}");
}

#[test]
fn toml_errors_are_named_by_their_place() {
    match set_toml("a = 1\nb = = 2\n") {
        Err(EditError::Syntax { position, .. }) => assert_eq!(position.line, 2),
        other => panic!("{other:?}"),
    }
    assert_eq!(set_toml("mcp_servers = 1\n"), Err(EditError::NotATable { what: "mcp_servers".to_owned() }));
    let array = "[[mcp_servers]]\na = 1\n";
    assert_eq!(set_toml(array), Err(EditError::NotATable { what: "mcp_servers".to_owned() }));
}
