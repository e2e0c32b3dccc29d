//! `${VARIABLE}`, `${VARIABLE:-default}` and `${file:PATH}` in the texts of a configuration.

use std::path::{Path, PathBuf};

/// Secrets in files are short.
const SECRET_FILE_BYTES_MAX: u64 = 64 * 1024;

/// Shorter values are no secrets, and stand in other words too.
const HIDDEN_BYTES_MIN: usize = 4;

/// Gives the value of an environment variable, if it is set.
type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Where variables come from.
pub(crate) struct Variables<'a> {
    lookup: Box<Lookup<'a>>,
    /// What paths are relative to: the folder of the configuration.
    folder: PathBuf,
}

/// A text, with its variables put in if it has any.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expanded {
    AsWritten,
    /// The text, and what each variable in it holds.
    Filled(String, Vec<Held>),
}

/// What a variable holds that did not stand in the configuration.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Held {
    value: String,
    /// The variable as it was written.
    written: String,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.written)
    }
}

impl Held {
    /// `text` with the variable's name for what it holds.
    pub(crate) fn hidden_in(&self, text: &str) -> String {
        if self.value.len() < HIDDEN_BYTES_MIN {
            return text.to_owned();
        }
        // As it stands between the quotation marks of a message.
        let quoted = format!("{:?}", self.value);
        text.replace(&quoted[1..quoted.len() - 1], &self.written).replace(&self.value, &self.written)
    }
}

impl<'a> Variables<'a> {
    /// The environment of the process.
    pub(crate) fn of_environment(folder: &Path) -> Self {
        Self::new(folder, |name| std::env::var(name).ok())
    }

    pub(crate) fn new(folder: &Path, lookup: impl Fn(&str) -> Option<String> + 'a) -> Self {
        Self { lookup: Box::new(lookup), folder: folder.to_owned() }
    }

    /// Puts the variables in. `$${` stands for `${`.
    pub(crate) fn expand(&self, text: &str) -> Result<Expanded, String> {
        if !text.contains("${") {
            return Ok(Expanded::AsWritten);
        }
        let mut filled = String::new();
        let mut held = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                filled.push_str(before);
                filled.push_str("${");
                rest = after;
                continue;
            }
            filled.push_str(before);
            let (inside, behind) =
                after.split_once('}').ok_or("has ${ without a closing }; write $${ for ${ itself")?;
            let value = self.value(inside)?;
            filled.push_str(&value);
            // A default stands in the file for everybody to read.
            if !inside.ends_with(&format!(":-{value}")) {
                held.push(Held { value, written: format!("${{{inside}}}") });
            }
            rest = behind;
        }
        filled.push_str(rest);
        Ok(Expanded::Filled(filled, held))
    }

    fn value(&self, inside: &str) -> Result<String, String> {
        if let Some(path) = inside.strip_prefix("file:") {
            return self.file(path.trim());
        }
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let is_name = !name.is_empty()
            && !name.starts_with(|letter: char| letter.is_ascii_digit())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !is_name {
            return Err(format!("${{{inside}}} is no variable; write ${{NAME}}, ${{NAME:-default}} or ${{file:PATH}}"));
        }
        let set = (self.lookup)(name);
        match default {
            // As in a shell: the default stands in for an empty value too.
            Some(default) => Ok(set.filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned())),
            None => set.ok_or_else(|| {
                format!("the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
            }),
        }
    }

    /// The text of a file, without the line break at its end.
    fn file(&self, path: &str) -> Result<String, String> {
        let failed = |error: std::io::Error| format!("the file of ${{file:{path}}} cannot be read: {error}");
        let whole = self.folder.join(path);
        if std::fs::metadata(&whole).map_err(failed)?.len() > SECRET_FILE_BYTES_MAX {
            return Err(format!("the file of ${{file:{path}}} is larger than {SECRET_FILE_BYTES_MAX} bytes"));
        }
        let text = std::fs::read_to_string(whole).map_err(failed)?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Result<Expanded, String> {
        let lookup = |name: &str| match name {
            "HOST" => Some("db.example.com".to_owned()),
            "QUOTED" => Some("a \"b\"".to_owned()),
            "SHORT" => Some("a".to_owned()),
            "EMPTY" => Some(String::new()),
            "ODD" => Some("${HOST}: {a}".to_owned()),
            _ => None,
        };
        Variables::new(Path::new("/nowhere"), lookup).expand(text)
    }

    #[track_caller]
    fn filled(text: &str, expected: &str) {
        let Ok(Expanded::Filled(filled, _)) = expand(text) else { panic!("{text} is filled") };
        assert_eq!(filled, expected);
    }

    #[test]
    fn variables_are_put_in_once() {
        assert_eq!(expand("plain $1 {x}"), Ok(Expanded::AsWritten));
        filled("postgres://${HOST}/a", "postgres://db.example.com/a");
        filled("${ODD}", "${HOST}: {a}");
        filled("${NONE:-5s}${EMPTY:-x}${EMPTY}", "5sx");
        filled("$${HOST} ${HOST}", "${HOST} db.example.com");
    }

    #[test]
    fn what_a_variable_holds_is_hidden_by_its_name() {
        let Ok(Expanded::Filled(_, held)) = expand("${HOST} ${QUOTED} ${SHORT} ${NONE:-info}") else {
            panic!("they are set")
        };
        let told =
            held.iter().fold(r#"db.example.com is "a \"b\"", an ace"#.to_owned(), |text, held| held.hidden_in(&text));
        assert_eq!(told, r#"${HOST} is "${QUOTED}", an ace"#);
        assert_eq!(format!("{held:?}"), "[${HOST}, ${QUOTED}, ${SHORT}]");
    }

    #[test]
    fn what_is_wrong_is_named() {
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
