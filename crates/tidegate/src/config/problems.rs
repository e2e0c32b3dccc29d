//! The problems and warnings of a configuration, while it is checked.

use std::fmt::Display;
use std::sync::Arc;

use parking_lot::Mutex;

use super::problem::ConfigProblem;

/// The problems and warnings so far, and the path of the value that is checked. Values below it have the same lists.
#[derive(Debug, Default)]
pub(super) struct Problems {
    path: String,
    found: Arc<Mutex<Vec<ConfigProblem>>>,
    /// Lines about what does not prevent that the configuration is applied.
    warnings: Arc<Mutex<Vec<String>>>,
}

impl Problems {
    /// No problems yet, of the value at `path`.
    pub(super) fn at_path(path: impl Into<String>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }

    /// The same lists, for the value at `key` below this one: `limits`, or `tools[0]` for an item of a list.
    pub(super) fn at(&self, key: impl Display) -> Self {
        Self { path: self.path_of(key), found: self.found.clone(), warnings: self.warnings.clone() }
    }

    /// The path of the value at `key` below this one. An empty key is this value, and one such as `[0]` an item of it.
    pub(super) fn path_of(&self, key: impl Display) -> String {
        let key = key.to_string();
        let separator = if self.path.is_empty() || key.is_empty() || key.starts_with('[') { "" } else { "." };
        format!("{}{separator}{key}", self.path)
    }

    /// Adds a problem of the value at `key`, as for [`Problems::path_of`].
    pub(super) fn add(&self, key: impl Display, message: impl Into<String>) {
        self.push(ConfigProblem::new(self.path_of(key), message));
    }

    /// As [`Problems::add`], with the key of another value that the problem concerns.
    pub(super) fn add_related(&self, key: impl Display, related: impl Display, message: impl Into<String>) {
        self.push(ConfigProblem::new(self.path_of(key), message).related_to(self.path_of(related)));
    }

    pub(super) fn push(&self, problem: ConfigProblem) {
        self.found.lock().push(problem);
    }

    pub(super) fn extend(&self, problems: impl IntoIterator<Item = ConfigProblem>) {
        // Without the lock, because the iterator may add problems itself.
        problems.into_iter().for_each(|problem| self.push(problem));
    }

    pub(super) fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        self.warnings.lock().extend(warnings);
    }

    pub(super) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock())
    }

    pub(super) fn len(&self) -> usize {
        self.found.lock().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.lock().is_empty()
    }

    pub(super) fn into_vec(self) -> Vec<ConfigProblem> {
        std::mem::take(&mut *self.found.lock())
    }

    /// The value, if it has no problems.
    pub(super) fn checked<T>(self, value: T) -> Result<T, Vec<ConfigProblem>> {
        if self.is_empty() { Ok(value) } else { Err(self.into_vec()) }
    }

    /// The value of `result`, if it has one; else its problems are added.
    pub(super) fn accept<T>(&self, result: Result<T, Vec<ConfigProblem>>) -> Option<T> {
        result.map_err(|problems| self.extend(problems)).ok()
    }

    /// The items of the list at `key`, parsed. Each item that `parse` rejects is a problem.
    pub(super) fn parse_items<T>(
        &self,
        key: &str,
        items: &[String],
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let parse_item = |(index, item): (usize, &String)| {
            parse(item).map_err(|message| self.add(format_args!("{key}[{index}]"), message)).ok()
        };
        items.iter().enumerate().filter_map(parse_item).collect()
    }
}
