//! What becomes of the text around an entry.

use serde_json::{Map, Value, json};

use crate::client::catalog::Format;
use crate::client::edit::{Edit, Position, Refusal};
use crate::client::{json_file, toml_file};

fn entry() -> Map<String, Value> {
    let Value::Object(entry) = json!({ "url": "http://h/mcp" }) else { unreachable!() };
    entry
}

fn set(text: &str) -> Result<Edit, Refusal> {
    json_file::set(text, Format::JsonWithComments, "servers", "tidegate", &entry())
}

#[track_caller]
fn added(text: &str) -> String {
    match set(text) {
        Ok(Edit::Added(after)) => after,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn replaced(text: &str) -> String {
    match set(text) {
        Ok(Edit::Replaced(after)) => after,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused_at(text: &str, format: Format) -> (usize, usize) {
    match json_file::set(text, format, "servers", "tidegate", &entry()) {
        Err(Refusal::Syntax { position: Position { line, column }, .. }) => (line, column),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_section_is_added_behind_other_settings() {
    let before = "{\n  \"theme\": \"dark\",\n  \"scale\": 1.50\n}\n";
    let after = "{\n  \"theme\": \"dark\",\n  \"scale\": 1.50,\n  \"servers\": {\n    \"tidegate\": {\n      \
                 \"url\": \"http://h/mcp\"\n    }\n  }\n}\n";
    assert_eq!(added(before), after);
}

#[test]
fn an_entry_is_added_behind_its_siblings_in_their_indentation() {
    for indent in ["  ", "    ", "\t", "   "] {
        let i = indent;
        let before = format!("{{\n{i}\"servers\": {{\n{i}{i}\"a\": {{}}\n{i}}},\n{i}\"z\": [1,2]\n}}");
        let after = format!(
            "{{\n{i}\"servers\": {{\n{i}{i}\"a\": {{}},\n{i}{i}\"tidegate\": {{\n{i}{i}{i}\"url\": \"http://h/mcp\"\n\
             {i}{i}}}\n{i}}},\n{i}\"z\": [1,2]\n}}"
        );
        assert_eq!(added(&before), after);
    }
}

#[test]
fn an_empty_object_opens() {
    let whole = "{\n  \"servers\": {\n    \"tidegate\": {\n      \"url\": \"http://h/mcp\"\n    }\n  }\n}";
    assert_eq!(added("{}"), whole);
    assert_eq!(added("{ \n }"), whole);
    assert_eq!(added("{\n  \"servers\": {}\n}"), whole);
    assert_eq!(added("{\n  \"servers\": {\n  }\n}"), whole);
}

#[test]
fn one_line_stays_one_line() {
    assert_eq!(added(r#"{"a":1}"#), r#"{"a":1, "servers": {"tidegate":{"url":"http://h/mcp"}}}"#);
    assert_eq!(added(r#"{"servers":{}}"#), r#"{"servers":{"tidegate": {"url":"http://h/mcp"}}}"#);
    assert_eq!(
        added(r#"{"servers":{"a":{}},"b":2}"#),
        r#"{"servers":{"a":{}, "tidegate": {"url":"http://h/mcp"}},"b":2}"#
    );
    assert_eq!(
        replaced(r#"{"servers":{"tidegate":{"url":"old"}}}"#),
        r#"{"servers":{"tidegate":{"url":"http://h/mcp"}}}"#
    );
}

#[test]
fn comments_stay_with_what_they_stand_beside() {
    let before = "// Mine.\n{\n  // Servers.\n  \"servers\": {\n    \"a\": {} // the first\n    // the end\n  }, /* x */\n  \
                  \"b\": \"// no comment\", // b\n}\n// Last.\n";
    let after = "// Mine.\n{\n  // Servers.\n  \"servers\": {\n    \"a\": {}, // the first\n    \"tidegate\": {\n      \
                 \"url\": \"http://h/mcp\"\n    }\n    // the end\n  }, /* x */\n  \
                 \"b\": \"// no comment\", // b\n}\n// Last.\n";
    assert_eq!(added(before), after);
}

#[test]
fn a_comma_before_the_closing_bracket_stays_there() {
    let before = "{\n  \"servers\": {\n    \"a\": {}, // first\n  },\n}\n";
    let after = "{\n  \"servers\": {\n    \"a\": {}, // first\n    \"tidegate\": {\n      \"url\": \"http://h/mcp\"\n    \
                 },\n  },\n}\n";
    assert_eq!(added(before), after);
}

#[test]
fn an_object_with_comments_alone_keeps_them() {
    let before = "{\n  // none yet\n}\n";
    let after =
        "{\n  // none yet\n  \"servers\": {\n    \"tidegate\": {\n      \"url\": \"http://h/mcp\"\n    }\n  }\n}\n";
    assert_eq!(added(before), after);
}

#[test]
fn a_block_comment_over_lines_is_not_cut() {
    let before = "{\n  \"a\": 1 /* one\n  two */\n}\n";
    let after = added(before);
    assert!(after.starts_with("{\n  \"a\": 1, /* one\n  two */\n  \"servers\": {\n"), "{after}");
}

#[test]
fn an_entry_that_differs_is_replaced_alone() {
    let before =
        "{\n  \"servers\": {\n    \"tidegate\": { \"url\": \"old\", \"x\": [{}] }, // mine\n    \"b\": {}\n  }\n}\n";
    let after = "{\n  \"servers\": {\n    \"tidegate\": {\n      \"url\": \"http://h/mcp\"\n    }, // mine\n    \
                 \"b\": {}\n  }\n}\n";
    assert_eq!(replaced(before), after);
    assert_eq!(set(after), Ok(Edit::Unchanged));
}

#[test]
fn an_entry_that_holds_comments_is_left() {
    let before =
        "{\n  \"servers\": {\n    \"tidegate\": {\n      // the old one\n      \"url\": \"old\"\n    }\n  }\n}\n";
    assert_eq!(set(before), Err(Refusal::Comments { name: "tidegate".to_owned() }));
    // What is the same already stays with its comments.
    assert_eq!(set(&before.replace("old\"", "http://h/mcp\"")), Ok(Edit::Unchanged));
}

#[test]
fn the_order_of_an_entrys_keys_is_no_difference() {
    let Value::Object(entry) = json!({ "a": 1, "b": 2 }) else { unreachable!() };
    let text = r#"{"servers": {"tidegate": {"b": 2, "a": 1}}}"#;
    assert_eq!(json_file::set(text, Format::Json, "servers", "tidegate", &entry), Ok(Edit::Unchanged));
}

#[test]
fn keys_are_compared_as_they_are_meant() {
    let text = r#"{"serv\u0065rs": {"tidegate": {"url": "http:\/\/h/mcp"}}}"#;
    assert_eq!(set(text), Ok(Edit::Unchanged));
}

#[test]
fn numbers_and_strings_keep_their_spelling() {
    let before = "{\n  \"n\": 12345678901234567890123,\n  \"f\": 1.0e+02,\n  \"s\": \"\\u00e9 {\\\"[,é\"\n}";
    let after = added(before);
    assert!(after.starts_with(&before[..before.len() - 2]), "{after}");
}

#[test]
fn what_is_no_table_is_left() {
    let refused = |text, what: &str| assert_eq!(set(text), Err(Refusal::NotATable { what: what.to_owned() }));
    refused("[]", "what stands");
    refused("null", "what stands");
    refused(r#"{"servers": []}"#, "servers");
    refused(r#"{"servers": null}"#, "servers");
}

#[test]
fn a_syntax_error_is_named_by_its_place() {
    assert_eq!(refused_at("{\n  \"a\": 1\n  \"b\": 2\n}", Format::Json), (3, 3));
    assert_eq!(refused_at("{\n  \"a\": 1,\n}", Format::Json), (3, 1));
    assert_eq!(refused_at("{\n  // no\n}", Format::Json), (2, 3));
    assert_eq!(refused_at("{\n  \"ä\": /* x\n}", Format::JsonWithComments), (2, 8));
    assert_eq!(refused_at("{\"a\": \"b", Format::JsonWithComments), (1, 8));
    assert_eq!(refused_at("{} {}", Format::JsonWithComments), (1, 4));
    assert_eq!(refused_at("// only\n", Format::JsonWithComments), (2, 1));
}

#[test]
fn no_cut_of_a_text_is_mistaken_for_another() {
    let whole = "// é\n{ \"a\": [1, {\"b\": \"}\\\"\"},], /* ] */ \"servers\": {\"x\": {\"url\": \"u\"}, }, }";
    assert!(matches!(set(whole), Ok(Edit::Added(_))));
    for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        assert!(set(&whole[..end]).is_err(), "{}", &whole[..end]);
    }
}

fn set_toml(text: &str) -> Result<Edit, Refusal> {
    toml_file::set(text, "mcp_servers", "tidegate", &entry())
}

#[track_caller]
fn edited_toml(text: &str) -> String {
    match set_toml(text) {
        Ok(Edit::Added(after) | Edit::Replaced(after)) => after,
        other => panic!("{other:?}"),
    }
}

#[test]
fn toml_keeps_comments_and_order() {
    let before = "# Mine.\nmodel = \"m\" # which\n\n[mcp_servers.b] # sibling\ncommand = 'b'\n\n[z]\nx = 1\n# y = 2\n";
    let after = &format!("{before}\n[mcp_servers.tidegate]\nurl = \"http://h/mcp\"\n");
    assert_eq!(&edited_toml(before), after);
    assert_eq!(set_toml(after), Ok(Edit::Unchanged));
}

#[test]
fn toml_without_servers_gets_the_table_alone() {
    for before in ["model = \"m\"\n", "# nothing yet\n", "[mcp_servers]\n", "mcp_servers.b.command = \"b\"\n"] {
        assert_eq!(edited_toml(before), format!("{before}\n[mcp_servers.tidegate]\nurl = \"http://h/mcp\"\n"));
    }
    assert_eq!(edited_toml("a = 1"), "a = 1\n\n[mcp_servers.tidegate]\nurl = \"http://h/mcp\"\n");
}

#[test]
fn toml_inline_tables_stay_inline() {
    let before = "mcp_servers = { b = { command = \"b\" } }\n";
    let after = edited_toml(before);
    assert!(after.contains("b = { command = \"b\" }"), "{after}");
    assert!(after.contains("tidegate = { url = \"http://h/mcp\" }"), "{after}");
    assert_eq!(after.lines().count(), 1, "{after}");
}

#[test]
fn toml_entries_change_where_they_differ() {
    let before = "[mcp_servers.tidegate]\n# where\nurl = \"old\" # moved\nenabled = false\n\n[mcp_servers.tidegate.env]\nA = \"1\"\n";
    let after = "[mcp_servers.tidegate]\n# where\nurl = \"http://h/mcp\" # moved\n";
    assert_eq!(edited_toml(before), after);
}

#[test]
fn toml_comments_are_not_removed() {
    let refused = |text| assert_eq!(set_toml(text), Err(Refusal::Comments { name: "tidegate".to_owned() }), "{text}");
    refused("[mcp_servers.tidegate]\nurl = \"old\"\nenabled = false # for now\n");
    refused("[mcp_servers.tidegate]\nurl = \"old\"\n# for now\nenabled = false\n");
    refused("[mcp_servers.tidegate]\nurl = \"old\"\n[mcp_servers.tidegate.env] # secret\nA = \"1\"\n");
    refused("[mcp_servers.tidegate]\nurl = [ # which\n  1 ]\n");
}

#[test]
fn toml_keeps_its_line_ends() {
    let before = "a = 1\r\n\r\n[b]\r\nc = 2\r\n";
    let after = edited_toml(before);
    assert!(after.starts_with(before), "{after:?}");
    assert_eq!(after.matches("\r\n").count(), after.matches('\n').count(), "{after:?}");
}

#[test]
fn toml_errors_are_named_by_their_place() {
    match set_toml("a = 1\nb = = 2\n") {
        Err(Refusal::Syntax { position, .. }) => assert_eq!(position.line, 2),
        other => panic!("{other:?}"),
    }
    assert_eq!(set_toml("mcp_servers = 1\n"), Err(Refusal::NotATable { what: "mcp_servers".to_owned() }));
    let array = "[[mcp_servers]]\na = 1\n";
    assert_eq!(set_toml(array), Err(Refusal::NotATable { what: "mcp_servers".to_owned() }));
}
