//! Names of columns and members.

use std::collections::HashMap;

use tidegate_core::{misspelled_name, nearest_names};

use crate::value::{cut_at, quoted};

/// How many names a message lists where no name is similar.
const LISTED_NAMES_MAX: usize = 20;
/// How many columns that do not fit a message names.
const FURTHER_NAMES_MAX: usize = 20;
/// The longest name of a column that a body adds, in bytes.
const NEW_NAME_BYTES_MAX: usize = 255;
/// The longest name that a message quotes, in bytes.
const QUOTED_NAME_BYTES_MAX: usize = 200;

/// The position of each name.
#[derive(Debug, Clone, Default)]
pub struct NameIndex {
    names: Vec<String>,
    positions: HashMap<String, usize, foldhash::fast::RandomState>,
}

impl NameIndex {
    /// The positions of `names`, in this order.
    ///
    /// # Errors
    /// If a name occurs twice.
    pub fn new(names: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut index = Self::default();
        for name in names {
            index.push(name)?;
        }
        Ok(index)
    }

    /// Adds a name behind the others.
    ///
    /// # Errors
    /// If it is there already.
    pub fn push(&mut self, name: String) -> Result<(), String> {
        if self.positions.insert(name.clone(), self.names.len()).is_some() {
            return Err(format!("the name \"{}\" occurs twice", cut_at(&name, QUOTED_NAME_BYTES_MAX)));
        }
        self.names.push(name);
        Ok(())
    }

    /// Removes the names from this position on.
    pub(crate) fn truncate(&mut self, len: usize) {
        for name in self.names.drain(len.min(self.names.len())..) {
            self.positions.remove(&name);
        }
    }

    /// The name at this position; empty if there is none.
    pub fn name(&self, position: usize) -> &str {
        self.names.get(position).map_or("", String::as_str)
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether a column with this name may be added. Some tables, such as those of Delta Lake, do not distinguish case.
    pub(crate) fn check_new(&self, name: &str) -> Result<(), String> {
        if name.is_empty() || name.len() > NEW_NAME_BYTES_MAX || name.chars().any(char::is_control) {
            let quoted = quoted(name);
            return Err(format!("{quoted} is no name of a column: it has 1 to {NEW_NAME_BYTES_MAX} bytes of text"));
        }
        let lowered = name.to_lowercase();
        match self.names.iter().find(|other| other.to_lowercase() == lowered) {
            None => Ok(()),
            Some(other) => Err(format!("there is no column \"{name}\"; did you mean \"{other}\"?")),
        }
    }

    /// The position of `name`. Rows repeat the order of their members, so `expected` is tried first.
    #[inline]
    pub fn find(&self, name: &str, expected: usize) -> Option<usize> {
        if self.names.get(expected).is_some_and(|other| other == name) {
            return Some(expected);
        }
        self.positions.get(name).copied()
    }

    /// The message for columns that are not there. `None` if there are no such.
    pub(crate) fn unknown_columns<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let mut names = names.into_iter();
        let mut message = self.unknown("column", names.next()?);
        let mut further: Vec<String> = names.by_ref().take(FURTHER_NAMES_MAX).map(quoted).collect();
        let uncounted = names.count();
        if uncounted > 0 {
            further.push(format!("{uncounted} others"));
        }
        if !further.is_empty() {
            message.push_str("; nor are there: ");
            message.push_str(&further.join(", "));
        }
        Some(message)
    }

    /// The message for a name that is not there. `what` is `column` or `member`.
    pub(crate) fn unknown(&self, what: &str, name: &str) -> String {
        let names = || self.names.iter().map(String::as_str);
        let quoted = cut_at(name, QUOTED_NAME_BYTES_MAX);
        if let Some(meant) = misspelled_name(name, names()) {
            return format!("there is no {what} \"{quoted}\"; did you mean \"{meant}\"?");
        }
        if let Some(nearest) = nearest_names(name, names()).first() {
            return format!("there is no {what} \"{quoted}\"; the nearest name is \"{nearest}\"");
        }
        let mut listed: Vec<&str> = names().take(LISTED_NAMES_MAX).collect();
        if self.names.len() > listed.len() {
            listed.push("…");
        }
        format!("there is no {what} \"{quoted}\"; there are: {}", listed.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_have_the_nearest() {
        let index = NameIndex::new(["device".to_owned(), "value".to_owned()]).expect("no name occurs twice");
        assert_eq!(index.unknown("column", "devise"), "there is no column \"devise\"; did you mean \"device\"?");
        assert_eq!(index.unknown("column", "xyz"), "there is no column \"xyz\"; there are: device, value");
        assert_eq!(index.unknown_columns([]), None);
        assert_eq!(
            index.unknown_columns(["devise", "x", "y"]).unwrap_or_default(),
            "there is no column \"devise\"; did you mean \"device\"?; nor are there: \"x\", \"y\""
        );
        assert!(index.unknown_columns(["x"; 30]).is_some_and(|message| message.ends_with("\"x\", 9 others")));
        assert_eq!((index.find("value", 0), index.find("value", 1), index.find("no", 0)), (Some(1), Some(1), None));
        assert!(index.check_new("other").is_ok() && index.check_new("Ä\n").is_err() && index.check_new("").is_err());
        assert_eq!(
            index.check_new("Device"),
            Err("there is no column \"Device\"; did you mean \"device\"?".to_owned())
        );
        assert!(NameIndex::new(["a".to_owned(), "a".to_owned()]).is_err());
    }
}
