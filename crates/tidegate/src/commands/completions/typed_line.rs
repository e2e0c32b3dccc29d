//! The command line that is being typed: its words as the program would receive them, and the options among them.

use std::ffi::OsString;

use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _};

use crate::commands::Cli;
use crate::database_argument::DatabaseArgument;
use crate::options::GlobalOptions;

/// The environment variable with the position of the word at the cursor; the program has 0.
const INDEX_VARIABLE: &str = "_CLAP_COMPLETE_INDEX";

pub(super) struct TypedLine {
    /// The words, the program first, without quotes.
    pub(super) words: Vec<String>,
    /// The position of the word at the cursor.
    index: usize,
}

/// What the options of a line choose.
pub(super) struct TypedOptions {
    pub(super) global: GlobalOptions,
    /// The databases of the line; `None` for a command that takes none.
    pub(super) sources: Option<Vec<DatabaseArgument>>,
    /// The tool that is called.
    pub(super) tool: Option<String>,
    /// Whether the command is about a running server.
    pub(super) connects: bool,
}

impl TypedLine {
    /// The line of `words`. Shells whose lines end at the cursor do not pass its position.
    pub(super) fn new(words: impl Iterator<Item = OsString>) -> Self {
        let words: Vec<String> = words.map(|word| unquote(&word.to_string_lossy())).collect();
        let index = std::env::var(INDEX_VARIABLE).ok().and_then(|index| index.parse().ok());
        Self { index: index.unwrap_or(words.len().saturating_sub(1)), words }
    }

    /// The options of the other words. The word at the cursor is incomplete.
    pub(super) fn options(&self) -> Option<TypedOptions> {
        let complete = self.words.iter().enumerate().filter(|(position, _)| *position != self.index);
        let words = complete.map(|(_, word)| expand_home(word));
        let cli = Cli::command().ignore_errors(true);
        let matches = cli.clone().try_get_matches_from(words).ok()?;
        let global = GlobalOptions::from_arg_matches(&matches).ok()?;
        let (mut deepest, mut command): (&ArgMatches, &Command) = (&matches, &cli);
        while let Some((name, inner)) = deepest.subcommand() {
            deepest = inner;
            command = command.find_subcommand(name)?;
        }
        // Only builds with debug assertions report an argument that the command does not have.
        let takes_sources = command.get_arguments().any(|argument| argument.get_id() == "paths");
        let sources = deepest.try_get_many::<DatabaseArgument>("paths").ok().filter(|_| takes_sources);
        let connects = deepest.try_get_one::<String>("connect").is_ok_and(|url| url.is_some());
        Some(TypedOptions {
            global,
            sources: sources.map(|sources| sources.into_iter().flatten().cloned().collect()),
            tool: deepest.try_get_one::<String>("tool").ok().flatten().cloned(),
            connects,
        })
    }
}

/// A word with the user's folder in place of `~/`, as the shell passes it to the program.
fn expand_home(word: &str) -> String {
    let home = || std::env::var("HOME").ok().filter(|home| !home.is_empty());
    let expanded = word.strip_prefix("~/").and_then(|path| Some(format!("{}/{path}", home()?)));
    expanded.unwrap_or_else(|| word.to_owned())
}

/// A word without its quotes. Variables and commands are not evaluated.
fn unquote(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    let mut quote = None;
    let mut characters = word.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(open)) if character == open => quote = None,
            ('\\', None | Some('"')) => plain.extend(characters.next()),
            _ => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_removed() {
        assert_eq!(unquote("'SELECT \"a\"'"), "SELECT \"a\"");
        assert_eq!(unquote("my\\ file.yaml"), "my file.yaml");
        assert_eq!(unquote("\"a\\\"b"), "a\"b");
        let home = std::env::var("HOME").unwrap();
        assert_eq!(expand_home("~/a.yaml"), format!("{home}/a.yaml"));
    }

    #[test]
    fn options_are_read_from_incomplete_lines() {
        let options = |words: &[&str], index| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            TypedLine { words, index }.options().unwrap()
        };
        let typed = options(&["tidegate", "import", "--to", "", "--config", "a.yaml"], 3);
        assert_eq!(typed.global.config.unwrap().to_str(), Some("a.yaml"));
        assert!(typed.sources.is_none() && !typed.connects);
        let typed = options(&["tidegate", "--config=b.yaml", "call", "sql", "data"], 4);
        assert_eq!(typed.global.config.unwrap().to_str(), Some("b.yaml"));
        assert_eq!((typed.tool.as_deref(), typed.sources), (Some("sql"), Some(Vec::new())));
        let typed = options(&["tidegate", "query", "SELECT 1", "a=./data", "--database", ""], 5);
        assert_eq!(typed.sources, Some(vec![DatabaseArgument::parse("a=./data").unwrap()]));
        let typed = options(&["tidegate", "ingest", "status", "--connect", "http://127.0.0.1:7070", ""], 5);
        assert!(typed.connects);
    }
}
