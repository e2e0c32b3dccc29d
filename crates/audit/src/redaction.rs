//! What of a call's arguments is written down, and what stands there instead of the rest.

use serde_json::{Map, Value};
use tidegate_core::NamePattern;

/// Stands for a value that nobody may read.
const REDACTED: &str = "***";
/// Names that hold one of these are redacted whatever is said.
const ALWAYS: [&str; 8] =
    ["password", "passwd", "secret", "token", "api_key", "apikey", "authorization", "private_key"];
/// Bounds of what is written of the arguments of one call.
const MEMBERS_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 128;
const TEXT_BYTES_MAX: usize = 1_024;
const BYTES_MAX: usize = 16 * 1_024;
const DEPTH_MAX: usize = 8;

/// Which arguments are redacted, by patterns of their names or of the way to them (`login.token`).
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    patterns: Vec<NamePattern>,
}

impl Redaction {
    /// Redacts what fits one of `patterns`, beside names that speak of passwords, secrets, tokens and keys.
    pub fn new<P: Into<String>>(patterns: impl IntoIterator<Item = P>) -> Self {
        Self { patterns: patterns.into_iter().map(|pattern| NamePattern::new(pattern.into().to_lowercase())).collect() }
    }

    /// The values of `arguments` as they may be written down: redacted, and cut to a bound.
    pub(crate) fn of(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let mut left = BYTES_MAX;
        self.members(arguments, "", 0, &mut left)
    }

    fn members(&self, members: &Map<String, Value>, path: &str, depth: usize, left: &mut usize) -> Map<String, Value> {
        let redacted = members.iter().take(MEMBERS_MAX).map(|(name, value)| {
            let name = cut(name, NAME_BYTES_MAX);
            let path = if path.is_empty() { name.to_lowercase() } else { format!("{path}.{}", name.to_lowercase()) };
            *left = left.saturating_sub(name.len());
            let value = if self.hides(&path) { REDACTED.into() } else { self.value(value, &path, depth + 1, left) };
            (name.to_owned(), value)
        });
        redacted.collect()
    }

    fn value(&self, value: &Value, path: &str, depth: usize, left: &mut usize) -> Value {
        if *left == 0 || depth > DEPTH_MAX {
            return "…".into();
        }
        match value {
            Value::Object(members) => Value::Object(self.members(members, path, depth, left)),
            Value::Array(items) => {
                items.iter().take(MEMBERS_MAX).map(|item| self.value(item, path, depth + 1, left)).collect()
            }
            Value::String(text) => {
                let shown = cut(text, TEXT_BYTES_MAX.min(*left));
                *left -= shown.len();
                if shown.len() < text.len() { format!("{shown}…").into() } else { shown.into() }
            }
            other => {
                *left = left.saturating_sub(8);
                other.clone()
            }
        }
    }

    fn hides(&self, path: &str) -> bool {
        let name = path.rsplit('.').next().unwrap_or(path);
        ALWAYS.iter().any(|word| name.contains(word))
            || self.patterns.iter().any(|pattern| pattern.fits(name) || pattern.fits(path))
    }
}

/// The names of `arguments`.
pub(crate) fn names(arguments: &Map<String, Value>) -> Vec<String> {
    arguments.keys().take(MEMBERS_MAX).map(|name| cut(name, NAME_BYTES_MAX).to_owned()).collect()
}

/// The beginning of `text`, of so many bytes at most.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
