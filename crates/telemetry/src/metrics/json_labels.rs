//! Labels from columns that have a JSON object in each row.

use serde_json::{Map, Value};

/// A column with a JSON object whose members are labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonLabels {
    /// The column.
    pub column: String,
    /// What is put before the names of the members.
    pub prefix: String,
}

impl JsonLabels {
    /// The labels of the object in `text`. A member whose name is among `taken` has the name of the column before its own,
    /// so that no series becomes another one. Text that is no object is one label with the name of the column.
    pub fn expand(&self, text: &str, taken: &[String]) -> Vec<(String, String)> {
        if text.is_empty() {
            return Vec::new();
        }
        let Ok(members) = serde_json::from_str::<Map<String, Value>>(text) else {
            return vec![(self.column.clone(), text.to_owned())];
        };
        let label = |(name, value): (String, Value)| {
            let name = format!("{}{name}", self.prefix);
            let name = if taken.contains(&name) { format!("{}.{name}", self.column) } else { name };
            let value = match value {
                Value::String(text) => text,
                Value::Null => String::new(),
                value => value.to_string(),
            };
            (name, value)
        };
        members.into_iter().map(label).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_labels() {
        let labels = JsonLabels { column: "attributes".to_owned(), prefix: String::new() };
        let expand = |text: &str| {
            labels.expand(text, &["host".to_owned()]).into_iter().map(|(name, value)| format!("{name}={value}"))
        };
        let members: Vec<String> =
            expand(r#"{"host": "a", "port": 80, "on": true, "list": [1], "none": null}"#).collect();
        assert_eq!(members.len(), 5);
        for label in ["attributes.host=a", "port=80", "on=true", "list=[1]", "none="] {
            assert!(members.contains(&label.to_owned()), "{members:?}");
        }
        assert_eq!(expand("").count(), 0);
        assert_eq!(expand("[1]").collect::<Vec<_>>(), ["attributes=[1]"]);
        let prefixed = JsonLabels { prefix: "resource.".to_owned(), ..labels.clone() };
        assert_eq!(prefixed.expand(r#"{"a": "b"}"#, &[]), [("resource.a".to_owned(), "b".to_owned())]);
    }
}
