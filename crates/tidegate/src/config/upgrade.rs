//! Replaces old names of keys in the text of a configuration. Everything else in the files stays as it is.

use std::path::{Path, PathBuf};

use super::document::{Document, parse_tree, read_text};
use super::problem::SourcePosition;
use super::variables::VariableResolver;
use super::yaml_tree::{YamlContent, YamlNode};
use super::{ConfigError, renamed_keys, render_report};

/// A file of a configuration whose keys have new names.
#[derive(Debug)]
pub(crate) struct UpgradedFile {
    pub(crate) path: PathBuf,
    /// The whole file as it was, with its byte order mark.
    pub(crate) before: String,
    pub(crate) after: String,
    /// Line, old name and new name of each key.
    pub(crate) renamed: Vec<(usize, String, &'static str)>,
}

/// The files of the configuration at `path` that contain old names, with the new text of each. Nothing is written.
///
/// # Errors
/// If the configuration cannot be read, or sets a key by its old and by its new name.
pub(crate) fn upgrade_files(path: &Path) -> Result<Vec<UpgradedFile>, ConfigError> {
    let failed = |problems: Vec<super::ConfigProblem>| ConfigError(render_report(&problems, path, None));
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    let variables = VariableResolver::from_environment(folder);
    let document = Document::read(&absolute, &variables).map_err(failed)?;
    let mut upgraded = Vec::new();
    for file in &document.files {
        let before = read_text(file).map_err(failed)?;
        if let Some((after, renamed)) = upgrade_text(&before).map_err(failed)? {
            upgraded.push(UpgradedFile { path: file.clone(), before, after, renamed });
        }
    }
    Ok(upgraded)
}

type Renamed = Vec<(usize, String, &'static str)>;

fn upgrade_text(before: &str) -> Result<Option<(String, Renamed)>, Vec<super::ConfigProblem>> {
    let text = before.strip_prefix('\u{feff}').unwrap_or(before);
    let mut keys = Vec::new();
    find_old_keys(&parse_tree(text, 0)?, &mut Vec::new(), &mut keys);
    // A value with an alias is found once for each alias.
    keys.sort();
    keys.dedup();
    if keys.is_empty() {
        return Ok(None);
    }
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let mut renamed = Vec::new();
    // From the end, so that the columns before a change stay right.
    for (position, old, new) in keys.into_iter().rev() {
        let line = lines.get_mut(position.line.saturating_sub(1));
        let replaced = line.and_then(|line| {
            let start = line.char_indices().nth(position.column - 1)?.0;
            let written = line.get(start..)?;
            // A key may be in quotes.
            let name = start + usize::from(written.starts_with(['"', '\'']));
            line.get(name..)?.strip_prefix(old.as_str())?;
            line.replace_range(name..name + old.len(), new);
            Some(())
        });
        if replaced.is_none() {
            let message = format!("{old:?} is written in a form that cannot be replaced; write {new:?}");
            return Err(vec![super::ConfigProblem::at_position(position, message)]);
        }
        renamed.push((position.line, old, new));
    }
    renamed.reverse();
    let mark = &before[..before.len() - text.len()];
    Ok(Some((format!("{mark}{}", lines.concat()), renamed)))
}

fn find_old_keys<'a>(
    node: &'a YamlNode,
    parents: &mut Vec<&'a str>,
    found: &mut Vec<(SourcePosition, String, &'static str)>,
) {
    match &node.kind {
        YamlContent::Plain(_) | YamlContent::Text(_) => {}
        YamlContent::List(items) => {
            parents.push("[]");
            items.iter().for_each(|item| find_old_keys(item, parents, found));
            parents.pop();
        }
        YamlContent::Map(members) => {
            for (name, position, node) in members {
                let new = renamed_keys::new_name(parents, name);
                found.extend(new.map(|new| (*position, name.clone(), new)));
                parents.push(new.unwrap_or(name));
                find_old_keys(node, parents, found);
                parents.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_old_keys_change() {
        let before = "\u{feff}# doors\nserver: {doors: {sse: false}, title: doors}  # doors\r\n\
                      databases:\n  - {name: \"Zoë\", \"connection_wait\": 5s, postgres: x}\n\
                      results: {of_one: 1GB, 'time_to_live': 1h}\naudit:\n  keep: 3\n";
        let (after, renamed) = upgrade_text(before).unwrap().unwrap();
        assert_eq!(
            after,
            "\u{feff}# doors\nserver: {transports: {sse: false}, title: doors}  # doors\r\n\
             databases:\n  - {name: \"Zoë\", \"connection_timeout\": 5s, postgres: x}\n\
             results: {per_principal: 1GB, 'ttl': 1h}\naudit:\n  keep_files: 3\n"
        );
        assert_eq!(renamed.len(), 5);
        assert_eq!(renamed[0], (2, "doors".to_owned(), "transports"));
        assert!(upgrade_text(&after).unwrap().is_none(), "a second run changes nothing");
    }

    #[test]
    fn values_behind_aliases_change_once() {
        let text = "databases:\n  - &shop {name: a, connection_wait: 5s}\n  - *shop\n";
        let (after, renamed) = upgrade_text(text).unwrap().unwrap();
        assert_eq!((after.matches("connection_timeout").count(), renamed.len()), (1, 1));
    }
}
