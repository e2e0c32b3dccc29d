//! Names of code in the pages for developers: each file, type and function that they name exists.

use std::collections::HashSet;
use std::path::Path;

use super::workspace;

const PAGES: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Folders without text of the project.
const SKIPPED_FOLDERS: [&str; 4] = ["target", ".git", "node_modules", "book"];

/// The workspace's paths, and the words of its Rust and Python sources and of its scripts.
#[derive(Default)]
struct Code {
    paths: Vec<String>,
    words: HashSet<String>,
}

impl Code {
    fn collect(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).expect("the folder is readable") {
            let path = entry.expect("the entry is readable").path();
            if SKIPPED_FOLDERS.iter().any(|skipped| path.ends_with(skipped)) {
                continue;
            }
            let name = path.strip_prefix(workspace()).expect("a path within the workspace").display().to_string();
            if path.is_dir() {
                self.paths.push(format!("/{name}/"));
                self.collect(&path);
                continue;
            }
            self.paths.push(format!("/{name}"));
            if name.ends_with(".rs") || name.ends_with(".py") || name.starts_with("scripts/") {
                let text = std::fs::read_to_string(&path).expect("the source is readable");
                let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                self.words.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
            }
        }
    }

    /// Whether `span` names nothing that this test knows, or something that exists.
    fn has(&self, span: &str) -> bool {
        if span.contains("NAME") {
            return true;
        }
        let extensions = [".rs", ".json", ".py", ".html", ".sql"];
        if span.ends_with('/') || extensions.iter().any(|extension| span.ends_with(extension)) {
            let ending = format!("/{}", span.trim_start_matches('/'));
            return expand_braces(&ending).iter().all(|ending| self.paths.iter().any(|path| path.ends_with(ending)));
        }
        let name = span.trim_end_matches("()");
        let is_word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
        let is_code = name.contains(['_', ':']) || name.chars().skip(1).any(char::is_uppercase);
        if !is_code || !name.split("::").all(is_word) {
            return true;
        }
        name.split("::").all(|part| self.words.contains(part))
    }
}

/// `a{b,c}d` as `abd` and `acd`.
fn expand_braces(text: &str) -> Vec<String> {
    let parts = text.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (alternatives, after))) = parts else { return vec![text.to_owned()] };
    alternatives.split(',').map(|one| format!("{before}{one}{after}")).collect()
}

/// The code spans of a Markdown text, without its fenced blocks.
fn code_spans(text: &str) -> Vec<&str> {
    let prose = text.split("\n```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn names_of_code_in_pages_exist() {
    let mut code = Code::default();
    code.collect(&workspace());
    let mut missing = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(workspace().join(page)).expect("the page is readable");
        let spans = code_spans(&text);
        assert!(spans.len() > 50, "{page} has only {} code spans", spans.len());
        missing.extend(spans.into_iter().filter(|span| !code.has(span)).map(|span| format!("{page}: {span}")));
    }
    assert!(missing.is_empty(), "these pages name what does not exist:\n{}", missing.join("\n"));
    assert!(!code.has("tools/src/no_such_file.rs") && !code.has(&["No", "SuchType"].concat()), "a wrong name is found");
}
