//! The files that a configuration includes: which ones, and how their values are joined.

use std::path::{Path, PathBuf};

use tidegate_core::NamePattern;

use super::problem::{ConfigProblem, ValuePosition};
use super::variables::VariableResolver;
use super::yaml_tree::{YamlContent, YamlNode};

pub(super) const INCLUDE: &str = "include";
const FILES_MAX: usize = 256;

type Member = (String, ValuePosition, YamlNode);

/// The files that `pattern` matches, in the order of their names. Wildcards may stand in the last part only.
pub(super) fn matching_files(pattern: &Path) -> Vec<PathBuf> {
    let Some(name) = pattern.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let name = NamePattern::new(name);
    if !name.is_glob() {
        return vec![pattern.to_owned()];
    }
    let entries = pattern.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let is_match = |path: &PathBuf| {
        let file_name = path.file_name().and_then(|name| name.to_str());
        file_name.is_some_and(|file| !file.starts_with('.') && name.matches(file)) && path.is_file()
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_match).collect();
    files.sort();
    files
}

/// The patterns under `include` in `root`, with their positions.
fn patterns(root: &YamlNode) -> Vec<(&str, ValuePosition)> {
    let included = root.get(INCLUDE);
    let nodes = match included.map(|node| &node.kind) {
        Some(YamlContent::List(items)) => items.iter().collect(),
        _ => included.into_iter().collect::<Vec<_>>(),
    };
    // Other values are reported when the types are checked.
    let texts = nodes.into_iter().filter_map(|node| match &node.kind {
        YamlContent::Plain(text) | YamlContent::Text(text) if !text.is_empty() => Some((text.as_str(), node.position)),
        _ => None,
    });
    texts.collect()
}

/// The files that the configuration `root` of the file `main` includes.
pub(super) fn included_files(
    root: &YamlNode,
    main: &Path,
    variables: &VariableResolver<'_>,
) -> Result<Vec<PathBuf>, Vec<ConfigProblem>> {
    let folder = main.parent().unwrap_or(Path::new("/"));
    let mut files: Vec<PathBuf> = Vec::new();
    for (pattern, position) in patterns(root) {
        let pattern: PathBuf = folder.join(pattern).components().collect();
        let has_wildcard = |folder: &Path| folder.to_str().is_none_or(|text| text.contains(['*', '?']));
        if pattern.parent().is_some_and(|parent| parent != folder && has_wildcard(parent)) {
            let message = "has a wildcard in the name of a folder; * and ? may stand in the last part only";
            return Err(vec![ConfigProblem::at_position(position, message)]);
        }
        variables.record_file(&pattern);
        let new = matching_files(&pattern).into_iter().filter(|file| file != main);
        for file in new {
            if !files.contains(&file) {
                variables.record_file(&file);
                files.push(file);
            }
        }
        if files.len() > FILES_MAX {
            let message = format!("includes {} files; {FILES_MAX} are permitted", files.len());
            return Err(vec![ConfigProblem::at_position(position, message)]);
        }
    }
    Ok(files)
}

/// Merges included files into the main one.
pub(super) struct FileMerger<'a> {
    /// The files of the positions.
    pub(super) files: &'a [PathBuf],
    pub(super) problems: Vec<ConfigProblem>,
}

impl FileMerger<'_> {
    /// Adds the values of `added`, an included file, to `root`. Lists are joined and maps merged; each other key may be
    /// set in one file only.
    pub(super) fn merge(&mut self, root: &mut YamlNode, added: YamlNode, path: &str) {
        if is_empty_document(&added) {
            return;
        }
        if is_empty_document(root) {
            *root = added;
            return;
        }
        let added_position = added.position;
        match (&mut root.kind, added.kind) {
            (YamlContent::List(items), YamlContent::List(more)) => items.extend(more),
            (YamlContent::Map(members), YamlContent::Map(more)) => {
                more.into_iter().for_each(|member| self.merge_member(members, member, path));
            }
            _ => {
                let first = root.position;
                let file = self.files.get(first.file).map(|file| file.display().to_string()).unwrap_or_default();
                let subject = if path.is_empty() { "the whole file" } else { path };
                let (line, column) = (first.line, first.column);
                let message = format!("{subject} is set a second time; the first is in {file}:{line}:{column}");
                self.reject(added_position, message);
            }
        }
    }

    fn merge_member(&mut self, members: &mut Vec<Member>, (name, position, node): Member, path: &str) {
        if path.is_empty() && name == INCLUDE {
            return self.reject(position, "include may stand in the main file only");
        }
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match members.iter_mut().find(|(other, _, _)| *other == name) {
            Some((_, _, existing)) => self.merge(existing, node, &path),
            None => members.push((name, position, node)),
        }
    }

    fn reject(&mut self, position: ValuePosition, message: impl Into<String>) {
        self.problems.push(ConfigProblem::at_position(position, message).in_file(self.files));
    }
}

fn is_empty_document(node: &YamlNode) -> bool {
    matches!(&node.kind, YamlContent::Plain(text) if super::document::parse_plain_scalar(text).is_null())
}
