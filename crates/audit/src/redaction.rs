//! Redacts the arguments of calls in the log.

use serde_json::{Map, Value};
use tidegate_core::NamePattern;

const REDACTED: &str = "***";
/// Names that contain one of these are always redacted.
const ALWAYS_REDACTED: [&str; 8] =
    ["password", "passwd", "secret", "token", "api_key", "apikey", "authorization", "private_key"];
/// Limits of the logged arguments of one call.
const MEMBERS_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 128;
const TEXT_BYTES_MAX: usize = 1_024;
const BYTES_MAX: usize = 16 * 1_024;
const DEPTH_MAX: usize = 8;

/// Which arguments are redacted, by patterns of their names or paths (`login.token`).
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    patterns: Vec<NamePattern>,
}

impl Redaction {
    /// Redacts arguments that match one of `patterns`, and names that suggest passwords, secrets, tokens or keys.
    pub fn new<P: Into<String>>(patterns: impl IntoIterator<Item = P>) -> Self {
        Self { patterns: patterns.into_iter().map(|pattern| NamePattern::new(pattern.into().to_lowercase())).collect() }
    }

    /// The values of `arguments`, redacted and cut to the limits.
    pub(crate) fn redact(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let mut left = BYTES_MAX;
        self.redact_members(arguments, "", 0, &mut left)
    }

    fn redact_members(
        &self,
        members: &Map<String, Value>,
        path: &str,
        depth: usize,
        left: &mut usize,
    ) -> Map<String, Value> {
        let redacted = members.iter().take(MEMBERS_MAX).map(|(name, value)| {
            let name = truncate(name, NAME_BYTES_MAX);
            let path = if path.is_empty() { name.to_lowercase() } else { format!("{path}.{}", name.to_lowercase()) };
            *left = left.saturating_sub(name.len());
            let value = if self.is_redacted(&path) {
                REDACTED.into()
            } else {
                self.redact_value(value, &path, depth + 1, left)
            };
            (name.to_owned(), value)
        });
        redacted.collect()
    }

    fn redact_value(&self, value: &Value, path: &str, depth: usize, left: &mut usize) -> Value {
        if *left == 0 || depth > DEPTH_MAX {
            return "…".into();
        }
        match value {
            Value::Object(members) => Value::Object(self.redact_members(members, path, depth, left)),
            Value::Array(items) => {
                items.iter().take(MEMBERS_MAX).map(|item| self.redact_value(item, path, depth + 1, left)).collect()
            }
            Value::String(text) => {
                let visible = truncate(text, TEXT_BYTES_MAX.min(*left));
                *left -= visible.len();
                if visible.len() < text.len() { format!("{visible}…").into() } else { visible.into() }
            }
            other => {
                *left = left.saturating_sub(8);
                other.clone()
            }
        }
    }

    fn is_redacted(&self, path: &str) -> bool {
        let name = path.rsplit('.').next().unwrap_or(path);
        ALWAYS_REDACTED.iter().any(|word| name.contains(word))
            || self.patterns.iter().any(|pattern| pattern.matches(name) || pattern.matches(path))
    }
}

pub(crate) fn argument_names(arguments: &Map<String, Value>) -> Vec<String> {
    arguments.keys().take(MEMBERS_MAX).map(|name| truncate(name, NAME_BYTES_MAX).to_owned()).collect()
}

/// The beginning of `text`, of so many bytes at most.
pub(crate) fn truncate(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
