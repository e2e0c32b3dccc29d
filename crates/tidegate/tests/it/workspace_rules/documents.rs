//! Names of code in the pages for developers: each file, type and function that they name exists.

use std::collections::HashSet;
use std::path::Path;

use super::workspace;

/// Pages about all crates. Each crate has a page of its own, `README.md` in its folder.
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

    /// The folders of the crates.
    fn crate_folders(&self) -> impl Iterator<Item = &str> {
        let is_of_crate = |path: &str| {
            let name = path.strip_prefix("/crates/").and_then(|name| name.strip_suffix('/'));
            name.is_some_and(|name| !name.contains('/'))
        };
        self.paths.iter().map(String::as_str).filter(move |path| is_of_crate(path))
    }

    /// Whether `span` names nothing that this test knows, or something that exists. A path is the end of one in `folder`,
    /// or begins at the root or in `crates`.
    fn has(&self, folder: &str, span: &str) -> bool {
        if span.contains("NAME") {
            return true;
        }
        let extensions = [".rs", ".json", ".py", ".html", ".sql"];
        if span.ends_with('/') || extensions.iter().any(|extension| span.ends_with(extension)) {
            let ending = format!("/{}", span.trim_start_matches('/'));
            let is_at = |path: &str, ending: &str| {
                let is_whole = path == ending || path.strip_prefix("/crates") == Some(ending);
                is_whole || (path.starts_with(folder) && path.ends_with(ending))
            };
            return expand_braces(&ending).iter().all(|ending| self.paths.iter().any(|path| is_at(path, ending)));
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
    let mut check = |folder: &str, page: &str, spans_min: usize| {
        let path = workspace().join(folder.trim_start_matches('/')).join(page);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let spans = code_spans(&text);
        assert!(spans.len() >= spans_min, "{} has only {} code spans", path.display(), spans.len());
        let unknown = spans.into_iter().filter(|span| !code.has(folder, span));
        missing.extend(unknown.map(|span| format!("{folder}{page}: {span}")));
    };
    for page in PAGES {
        check("/", page, 50);
    }
    for folder in code.crate_folders() {
        check(folder, "README.md", 1);
    }
    assert!(missing.is_empty(), "these pages name what does not exist:\n{}", missing.join("\n"));
    assert!(!code.has("/", "tools/src/no_such_file.rs"), "a wrong path is found");
    assert!(!code.has("/crates/tools/", "src/statement_policy.rs"), "the path of another crate is found");
    assert!(!code.has("/", &["No", "SuchType"].concat()), "a wrong name is found");
}
