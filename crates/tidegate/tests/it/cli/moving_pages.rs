//! The pages about moving from another server show what `tidegate config import` prints for the file that they show.

use std::path::Path;

use super::run_in;

/// The content of the first fenced block that begins with `fence`, and the page after it.
fn block<'a>(page: &'a str, fence: &str) -> (&'a str, &'a str) {
    let (_, after) = page.split_once(&format!("```{fence}\n")).unwrap();
    after.split_once("```").unwrap()
}

fn check(page: &str, language: &str, file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to").join(page);
    let page = std::fs::read_to_string(path).unwrap();
    let (original, rest) = block(&page, language);
    let (expected, _) = block(rest, "yaml");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file), original).unwrap();
    let ran = run_in(folder.path(), &["config", "import", file]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected));
}

#[test]
fn pages_show_the_converted_configuration() {
    check("move-from-toolbox.md", "yaml", "tools.yaml");
    check("move-from-dbhub.md", "toml", "dbhub.toml");
    check("move-from-postgres-server.md", "json", ".mcp.json");
}
