//! `tidegate pg new`: writes a working handler, and a test of it that passes.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::SchemaFlag;
use crate::command_error::CommandError;
use crate::output;

/// Characters of a name at most, as in the metadata of handlers.
const NAME_CHARACTERS_MAX: usize = 128;

/// Write the SQL of a new handler, and a test of it
#[derive(Debug, Args)]
pub(crate) struct PgNewCommand {
    /// Kind of the handler
    kind: NewHandlerKind,
    /// Name of the handler: letters, digits, dots, _ and -
    #[arg(id = "handler_name", value_name = "NAME", value_parser = handler_name)]
    name: String,
    /// Folder to which NAME.sql and tests/NAME.sql are written
    #[arg(long, value_name = "FOLDER", default_value = "handlers")]
    folder: PathBuf,
    /// Make a tool of an existing function: schema.name, or schema.name(types) if there are several
    #[arg(long, value_name = "FUNCTION", value_parser = function_name)]
    function: Option<String>,
    #[command(flatten)]
    schema: SchemaFlag,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NewHandlerKind {
    /// Called by a model
    Tool,
    /// Read by a client
    Resource,
    /// Chosen by a person
    Prompt,
}

impl PgNewCommand {
    pub(super) fn run(self) -> Result<(), CommandError> {
        if self.function.is_some() && self.kind != NewHandlerKind::Tool {
            return Err(CommandError::Usage(
                "only tools can be made of functions: tidegate pg new tool NAME --function …".into(),
            ));
        }
        let (handler_sql, test_sql) = self.kind.templates(self.function.is_some());
        let file = format!("{}.sql", self.name);
        let (handler, test) = (self.folder.join(&file), self.folder.join("tests").join(&file));
        for path in [&handler, &test] {
            if path.exists() {
                let message = format!("{} exists already and is not overwritten", path.display());
                return Err(CommandError::Usage(message));
            }
        }
        self.write(&handler, &self.fill_template(handler_sql, &handler, &test))?;
        self.write(&test, &self.fill_template(test_sql, &handler, &test))?;
        let (handler, test) = (handler.display(), test.display());
        let schema = match self.schema.name.as_str() {
            "api" => String::new(),
            other => format!(" --schema {other}"),
        };
        let text = format!(
            "wrote {handler}\nwrote {test}\n\nNext, where DSN is the connection string of your database:\n    \
             tidegate pg install \"$DSN\"{schema}    # once\n    \
             psql \"$DSN\" -v ON_ERROR_STOP=1 -f {handler}\n    \
             tidegate pg test \"$DSN\" {test}{schema}\n"
        );
        output::print(text)
    }

    fn fill_template(&self, text: &str, handler: &Path, test: &Path) -> String {
        let function = self.function.as_deref().unwrap_or_default();
        // regproc finds a name without arguments, regprocedure one with arguments.
        let cast = if function.contains('(') { "regprocedure" } else { "regproc::regprocedure" };
        text.replace("@schema@", self.schema.name.as_str())
            .replace("@name@", &self.name)
            .replace("@handler@", &handler.display().to_string())
            .replace("@test@", &test.display().to_string())
            .replace("@function@", &format!("'{}'::{cast}", function.replace('\'', "''")))
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), CommandError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        Ok(written.with_context(|| format!("cannot write {}", path.display()))?)
    }
}

impl NewHandlerKind {
    fn templates(self, is_function: bool) -> (&'static str, &'static str) {
        match self {
            Self::Tool if is_function => (include_str!("new/function.sql"), include_str!("new/function_test.sql")),
            Self::Tool => (include_str!("new/tool.sql"), include_str!("new/tool_test.sql")),
            Self::Resource => (include_str!("new/resource.sql"), include_str!("new/resource_test.sql")),
            Self::Prompt => (include_str!("new/prompt.sql"), include_str!("new/prompt_test.sql")),
        }
    }
}

fn handler_name(text: &str) -> Result<String, String> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    let has_valid_start = text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
    if has_valid_start && text.chars().all(is_allowed) && text.len() <= NAME_CHARACTERS_MAX {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "a name is 1 to {NAME_CHARACTERS_MAX} letters, digits, _, - and ., and begins with a letter, a digit or _"
        ))
    }
}

/// `schema.name` or `schema.name(type, type)`.
fn function_name(text: &str) -> Result<String, String> {
    let (name, types) = text.split_once('(').map_or((text, ""), |(name, types)| (name, types.trim_end_matches(')')));
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && word.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '_' | '$'))
    };
    let is_name = name.split_once('.').is_some_and(|(schema, name)| is_word(schema) && is_word(name));
    let are_types =
        types.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '_' | '.' | ',' | ' ' | '[' | ']'));
    let is_closed = !text.contains('(') || text.ends_with(')');
    if is_name && are_types && is_closed {
        Ok(text.to_owned())
    } else {
        Err("write it as schema.name, or as schema.name(integer, text) where there are several of that name".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validates_handler_names() {
        for name in ["orders_of", "a", "_x", "2024.orders-of", &"x".repeat(128)] {
            assert_eq!(handler_name(name).as_deref(), Ok(name));
        }
        for name in ["", "a b", "a/b", "../x", ".x", "-x", "ä", "a'b", &"x".repeat(129)] {
            assert!(handler_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn validates_function_names() {
        for name in
            ["shop.refund", "shop.refund()", "shop.refund(integer, text[])", "s.f(double precision)", "s.f(shop.mood)"]
        {
            assert_eq!(function_name(name).as_deref(), Ok(name));
        }
        for name in
            ["", "refund", "a.b.c", "shop.refund(", "shop.re fund", "shop.f'(", "shop.f(1;2)", "shop.f()x", "1.f"]
        {
            assert!(function_name(name).is_err(), "{name}");
        }
    }
}
