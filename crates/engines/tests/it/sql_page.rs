//! `docs/reference/sql.md`: its list of functions is that of the engine, and each statement of its table does what it says.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use tidegate_engines::embedded::FunctionKind;

use crate::support::{Folder, TestNode, lines};

const BEGIN: &str = "<!-- functions: begin -->\n";
const END: &str = "<!-- functions: end -->";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/sql.md")
}

fn functions_of(node: &TestNode) -> String {
    let functions = node.database.functions();
    let named = |kind: FunctionKind| {
        let names = functions.iter().filter(|function| function.kind == kind).map(|of| format!("`{}`", of.name));
        names.collect::<Vec<_>>().join(", ")
    };
    let kinds = [
        ("Of one row", FunctionKind::Scalar),
        ("Aggregates", FunctionKind::Aggregate),
        ("Windows", FunctionKind::Window),
        ("In FROM", FunctionKind::Table),
    ];
    let mut text = String::new();
    for (title, kind) in kinds {
        write!(text, "**{title}**: {}\n\n", named(kind)).unwrap();
    }
    text
}

#[tokio::test]
async fn the_list_of_functions_is_that_of_the_engine() {
    let folder = Folder::with(&[("t.csv", "a\n1\n")]);
    let node = folder.database();
    let text = fs::read_to_string(page()).unwrap();
    let (head, rest) = text.split_once(BEGIN).unwrap();
    let (listed, tail) = rest.split_once(END).unwrap();
    let functions = functions_of(&node);
    if std::env::var_os("TIDEGATE_WRITE_DOCS").is_some() {
        fs::write(page(), format!("{head}{BEGIN}{functions}{END}{tail}")).unwrap();
        return;
    }
    assert_eq!(listed, functions, "write the list anew with TIDEGATE_WRITE_DOCS=1");
}

#[tokio::test]
async fn each_statement_of_the_table_does_what_the_page_says() {
    let folder = Folder::with(&[("t.csv", "a\n1\n")]);
    let node = folder.database();
    let text = fs::read_to_string(page()).unwrap();
    let rows: Vec<(&str, &str)> =
        text.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | ")).collect();
    assert!(rows.len() >= 5, "the table has {} statements", rows.len());
    for (statement, expected) in rows {
        match node.batches(statement, Vec::new()).await {
            Ok(batches) => assert_eq!(lines(&batches), expected, "{statement}"),
            Err(error) => {
                let refusal = expected.strip_prefix("refused: ");
                let refusal = refusal.unwrap_or_else(|| panic!("{statement} is refused: {error}"));
                assert!(error.to_string().contains(refusal), "{statement}: {error}");
            }
        }
    }
}

/// The statements of the section about nested values, over the file that it shows.
#[tokio::test]
async fn statements_about_nested_values_work() {
    let text = fs::read_to_string(page()).unwrap();
    let (_, rest) = text.split_once("\n## Nested values\n").unwrap();
    let (section, _) = rest.split_once("\n## ").unwrap();
    let lines: Vec<&str> = section.lines().filter(|line| line.starts_with('{')).collect();
    let folder = Folder::with(&[("visits.ndjson", &lines.join("\n"))]);
    let node = folder.database();
    let columns =
        "id bigint, place struct(city text, geo struct(lat double)), tags text[], items struct(sku text, n bigint)[]";
    assert_eq!(node.columns("visits").await.unwrap(), columns);
    let answers = ["Ulm|48.4\nBern|null", "a|x\nnull|null", "1|a\n1|b", "1|x|2\n1|y|1", "1", "48.4", "7"];
    let statements = section.lines().filter_map(|line| line.strip_suffix("` |")?.split_once("| `"));
    let statements: Vec<&str> = statements.map(|(_, statement)| statement).collect();
    assert_eq!(statements.len(), answers.len(), "{statements:?}");
    for (statement, expected) in statements.into_iter().zip(answers) {
        assert_eq!(node.rows(statement).await, expected, "{statement}");
    }
    for refused in ["SELECT place->>'city' FROM visits", "SELECT tags->0 FROM visits"] {
        let refusal = node.refusal(refused).await;
        assert!(refusal.contains("to_jsonb(value) on the left side"), "{refusal}");
    }
}
