//! `${VARIABLE}`, `${VARIABLE:-default}` and `${file:PATH}` in the texts of a configuration.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tidegate_tools::declared::escape_braces;

use super::FileHashes;

const SECRET_FILE_BYTES_MAX: u64 = 64 * 1024;

/// Shorter values are not redacted: they are no secrets, and occur within other words.
const REDACTED_BYTES_MIN: usize = 4;

type VariableLookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

pub(crate) struct VariableResolver<'a> {
    lookup: Box<VariableLookup<'a>>,
    folder: PathBuf,
    files: RefCell<FileHashes>,
}

/// The value of a variable, which is not part of the configuration file.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct VariableValue {
    value: String,
    /// The variable as written: `${NAME}`.
    source_text: String,
}

impl std::fmt::Debug for VariableValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.source_text)
    }
}

impl VariableValue {
    pub(crate) fn value(&self) -> &str {
        &self.value
    }

    pub(crate) fn redact_in(&self, text: &str) -> String {
        if self.value.len() < REDACTED_BYTES_MIN {
            return text.to_owned();
        }
        // Messages may contain it in quotes, with escapes.
        let quoted = format!("{:?}", self.value);
        text.replace(&quoted[1..quoted.len() - 1], &self.source_text).replace(&self.value, &self.source_text)
    }
}

/// A text with its variables replaced by their values.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ExpandedText {
    pub(crate) source_text: String,
    pub(crate) text: String,
    /// The text as a template in which the braces of values are literal.
    pub(crate) template: String,
    pub(crate) values: Vec<VariableValue>,
}

impl ExpandedText {
    fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
        self.template.push_str(text);
    }

    fn push_value(&mut self, value: String, inside: &str) {
        self.text.push_str(&value);
        self.template.push_str(&escape_braces(&value));
        // A default is part of the file, so it is not secret.
        if !inside.ends_with(&format!(":-{value}")) {
            self.values.push(VariableValue { value, source_text: format!("${{{inside}}}") });
        }
    }
}

impl<'a> VariableResolver<'a> {
    pub(crate) fn from_environment(folder: &Path) -> Self {
        Self::new(folder, |name| std::env::var(name).ok())
    }

    pub(crate) fn new(folder: &Path, lookup: impl Fn(&str) -> Option<String> + 'a) -> Self {
        Self { lookup: Box::new(lookup), folder: folder.to_owned(), files: RefCell::default() }
    }

    pub(crate) fn files(&self) -> FileHashes {
        self.files.borrow().clone()
    }

    /// Records the file at `path`, or the files that the pattern `path` matches, as part of the configuration.
    pub(crate) fn record_file(&self, path: &Path) {
        self.files.borrow_mut().record(path);
    }

    /// Expands the variables; `None` if there are none. `$${` stands for `${`.
    pub(crate) fn expand(&self, text: &str) -> Result<Option<ExpandedText>, String> {
        if !text.contains("${") {
            return Ok(None);
        }
        let mut expanded = ExpandedText { source_text: text.to_owned(), ..ExpandedText::default() };
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                expanded.push_text(before);
                expanded.push_text("${");
                rest = after;
                continue;
            }
            expanded.push_text(before);
            let (inside, behind) =
                after.split_once('}').ok_or("has ${ without a closing }; write $${ for ${ itself")?;
            expanded.push_value(self.resolve(inside)?, inside);
            rest = behind;
        }
        expanded.push_text(rest);
        Ok(Some(expanded))
    }

    fn resolve(&self, inside: &str) -> Result<String, String> {
        if let Some(path) = inside.strip_prefix("file:") {
            return self.read_file(path.trim());
        }
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let is_name = !name.is_empty()
            && !name.starts_with(|character: char| character.is_ascii_digit())
            && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        if !is_name {
            return Err(format!("${{{inside}}} is no variable; write ${{NAME}}, ${{NAME:-default}} or ${{file:PATH}}"));
        }
        let value = (self.lookup)(name);
        match default {
            // As in a shell, the default replaces an empty value too.
            Some(default) => Ok(value.filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned())),
            None => value.ok_or_else(|| {
                format!("the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
            }),
        }
    }

    /// The text of a file, without its last line break.
    fn read_file(&self, path: &str) -> Result<String, String> {
        let failed = |error: std::io::Error| format!("the file of ${{file:{path}}} cannot be read: {error}");
        let whole_path = self.folder.join(path);
        self.files.borrow_mut().record(&whole_path);
        // Reading is bounded, because devices and pipes report no length.
        let mut text = String::new();
        let file = File::open(whole_path).map_err(failed)?;
        file.take(SECRET_FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > SECRET_FILE_BYTES_MAX {
            return Err(format!("the file of ${{file:{path}}} is larger than {SECRET_FILE_BYTES_MAX} bytes"));
        }
        let text = text.strip_suffix('\n').unwrap_or(&text);
        Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Result<Option<ExpandedText>, String> {
        let lookup = |name: &str| match name {
            "HOST" => Some("db.example.com".to_owned()),
            "QUOTED" => Some("a \"b\"".to_owned()),
            "SHORT" => Some("a".to_owned()),
            "EMPTY" => Some(String::new()),
            "ODD" => Some("${HOST}: {a}".to_owned()),
            _ => None,
        };
        VariableResolver::new(Path::new("/nowhere"), lookup).expand(text)
    }

    #[track_caller]
    fn filled(text: &str, expected: &str) {
        let Ok(Some(filled)) = expand(text) else { panic!("{text} holds no variables") };
        assert_eq!(filled.text, expected);
    }

    #[test]
    fn variables_are_expanded_once() {
        assert_eq!(expand("plain $1 {x}"), Ok(None));
        filled("postgres://${HOST}/a", "postgres://db.example.com/a");
        filled("${ODD}", "${HOST}: {a}");
        filled("${NONE:-5s}${EMPTY:-x}${EMPTY}", "5sx");
        filled("$${HOST} ${HOST}", "${HOST} db.example.com");
    }

    #[test]
    fn values_are_redacted_by_their_variable_names() {
        let Ok(Some(filled)) = expand("${HOST} ${QUOTED} ${SHORT}") else { panic!("they are set") };
        let held = filled.values;
        let message =
            held.iter().fold(r#"db.example.com is "a \"b\"", an ace"#.to_owned(), |text, held| held.redact_in(&text));
        assert_eq!(message, r#"${HOST} is "${QUOTED}", an ace"#);
        assert_eq!(format!("{held:?}"), "[${HOST}, ${QUOTED}, ${SHORT}]");
    }

    #[test]
    fn braces_in_values_are_escaped() {
        let Ok(Some(filled)) = expand("{{id}} ${ODD}") else { panic!("it holds a variable") };
        assert_eq!(filled.text, "{{id}} ${HOST}: {a}");
        assert_eq!(filled.template, r#"{{id}} ${{"{"}}HOST{{"}"}}: {{"{"}}a{{"}"}}"#);
        assert_eq!(filled.values[0].value(), "${HOST}: {a}");
    }

    #[test]
    fn errors_name_the_variable() {
        for (text, words) in [
            ("${NONE}", "NONE is not set"),
            ("${HOST", "without a closing }"),
            ("${a b}", "is no variable"),
            ("${}", "is no variable"),
            ("${file:key}", "cannot be read"),
        ] {
            let error = expand(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
