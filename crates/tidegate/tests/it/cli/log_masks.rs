//! Masks of log sources: no tool shows a masked value from another column of its entry.

use serde_json::Value;

use super::ConfiguredFolder;

const FITTING: &str = "10.1.2.3 - ann [01/Mar/2024:12:00:00 +0100] \"GET /hidden HTTP/1.1\" 200 12 \"-\" \"curl/8\"\n";
const MISFIT: &str = "10.1.2.3 does not fit\n";

/// A log with masks of `columns` for all but auditors.
fn folder(columns: &str, more: &str) -> ConfiguredFolder {
    let configured = ConfiguredFolder::new(&format!(
        "databases:
  - name: web
    files: shop
    policies: [{{table: access, columns: {{{columns}}}, except_roles: [auditor]}}]
logs: [{{name: access, table: web.access}}]
roles: [{{name: auditor, toolsets: ['*'], databases: ['*']}}]
{more}"
    ));
    std::fs::write(configured.folder().join("shop/access.log"), FITTING.repeat(9) + MISFIT).unwrap();
    configured
}

/// Masks of the client and of the path.
fn masks(mask: &str) -> String {
    format!("remote_addr: {mask}, path: {mask}")
}

const AS_AUDITOR: &str = "auth: {local: [auditor]}\n";

/// All ways to the values of the log.
const CALLS: &[&[&str]] = &[
    &["query", "table=access"],
    &["sql", "sql=SELECT * FROM access"],
    &["sql", "sql=SELECT request, entry_text FROM access WHERE entry_text LIKE '%hidden%' OR entry_text IS NULL"],
    &["get_schema", "table=access", "samples=3"],
    &["get_schema", "table=access", "profile=true"],
    &["query_logs"],
    &["query_logs", r#"columns=["request", "entry_text"]"#],
    &["query_logs", "limit=0", r#"facets=["request", "entry_text"]"#, r#"histogram={"field": "entry_text"}"#],
    &["query_logs", "limit=0", "patterns=5"],
    &["query_logs", r#"context={"time": "2024-03-01T11:00:00Z"}"#, r#"columns=["entry_text"]"#],
    &["list_logs_fields"],
    &["list_logs_fields_values", r#"fields=["request", "entry_text"]"#],
];

fn is_disclosed(text: &str) -> bool {
    text.contains("10.1.2.3") || text.contains("/hidden")
}

#[test]
fn no_tool_shows_a_masked_value_from_another_column() {
    let auditing = folder(&masks("null"), AS_AUDITOR);
    for arguments in CALLS {
        let ran = auditing.run(&[&["call"], *arguments].concat());
        assert!(ran.code == Some(0) && is_disclosed(&ran.stdout), "{arguments:?}: {ran:?}");
    }
    for mask in ["null", "hash", "{keep_last: 1}", "deny"] {
        let configured = folder(&masks(mask), "");
        for arguments in CALLS {
            let ran = configured.run(&[&["call"], *arguments].concat());
            assert!(!is_disclosed(&ran.stdout) && !is_disclosed(&ran.stderr), "{mask}, {arguments:?}: {ran:?}");
            // Denied columns cannot be named.
            assert!(ran.code == Some(0) || mask == "deny", "{mask}, {arguments:?}: {ran:?}");
        }
    }
}

#[test]
fn a_search_finds_no_masked_value() {
    let is_found = |more: &str, fields: &str| {
        let ran = folder(&masks("null"), more).run(&["call", "query_logs", fields, "query=\"10.1.2.3\""]);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        answer["matched"].as_u64().unwrap() > 0
    };
    for fields in ["all_fields=true", "all_fields=false"] {
        assert_eq!([is_found("", fields), is_found(AS_AUDITOR, fields)], [false, true], "{fields}");
    }
}

#[test]
fn config_check_names_the_columns_that_a_mask_covers() {
    let check = |columns: &str| {
        let ran = folder(columns, "").run(&["config", "check"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        format!("{}{}", ran.stdout, ran.stderr)
    };
    let text = check(&masks("hash"));
    for part in [
        "database web: policies[0].columns.path: also masks entry_text, request of the table access, from which",
        "database web: policies[0].columns.remote_addr: also masks entry_text, forwarded_for of the table access, from",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let explicit = check("remote_addr: hash, forwarded_for: hash, entry_text: {keep_first: 0}");
    assert!(!explicit.contains("also masks"), "{explicit}");
}
