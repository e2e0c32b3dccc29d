//! Arguments of calls as others than their handlers see them: without the values that may be secret.

use serde_json::{Map, Value};

use crate::name_pattern::NamePattern;

const REDACTED: &str = "***";
/// Names that contain one of these are always redacted.
const ALWAYS_REDACTED: [&str; 8] =
    ["password", "passwd", "secret", "token", "api_key", "apikey", "authorization", "private_key"];
/// Limits of the arguments of one call.
const MEMBERS_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 128;
const TEXT_BYTES_MAX: usize = 1_024;
const DEPTH_MAX: usize = 8;

/// Which arguments are redacted, by patterns of their names or paths (`login.token`).
#[derive(Debug, Clone, Default)]
pub struct ArgumentRedaction {
    patterns: Vec<NamePattern>,
}

impl ArgumentRedaction {
    /// Redacts arguments that match one of `patterns`, and names that suggest passwords, secrets, tokens or keys.
    pub fn new<P: Into<String>>(patterns: impl IntoIterator<Item = P>) -> Self {
        Self { patterns: patterns.into_iter().map(|pattern| NamePattern::new(pattern.into().to_lowercase())).collect() }
    }

    /// The values of `arguments`, redacted and cut to some `bytes_max` bytes.
    pub fn redact(&self, arguments: &Map<String, Value>, bytes_max: usize) -> Map<String, Value> {
        let mut left = bytes_max;
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

/// The beginning of `text`, of so many bytes at most.
fn truncate(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
