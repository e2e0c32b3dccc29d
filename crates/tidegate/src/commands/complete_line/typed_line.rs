//! The command line that is being typed: its words as the program would receive them, and the options among them.

use std::ffi::OsString;

use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _};

use crate::commands::Cli;
use crate::options::GlobalOptions;
use crate::source::DatabaseSource;

/// The words that bash makes of `=` and `:`, whatever is around them.
const BASH_BREAKS: [&str; 2] = ["=", ":"];

pub(super) struct TypedLine {
    /// The words, the program first, without quotes.
    pub(super) words: Vec<OsString>,
    /// The position of the word at the cursor.
    pub(super) index: usize,
    /// The number of bytes at the start of the word at the cursor that the shell keeps.
    pub(super) replaced_from: usize,
}

/// What the options of a line choose.
pub(super) struct TypedOptions {
    pub(super) global: GlobalOptions,
    /// The databases of the line; `None` for a command that takes none.
    pub(super) sources: Option<Vec<DatabaseSource>>,
    /// The tool that is called.
    pub(super) tool: Option<String>,
    /// Whether the command is about a running server.
    pub(super) connects: bool,
}

impl TypedLine {
    /// The line of `words` with the cursor at the one at `index`; `has_breaks` for the words of bash.
    pub(super) fn new(words: Vec<OsString>, index: usize, has_breaks: bool) -> Option<Self> {
        let words: Vec<String> = words.into_iter().map(|word| word.into_string().ok()).collect::<Option<_>>()?;
        if index == 0 || index > words.len() {
            return None;
        }
        let mut line = Self { words: Vec::new(), index: 0, replaced_from: 0 };
        let mut raw_words: Vec<String> = Vec::new();
        let mut is_joined = false;
        for (position, word) in words.iter().enumerate() {
            let is_break = has_breaks && BASH_BREAKS.contains(&word.as_str());
            let kept = match raw_words.last_mut().filter(|_| position > 1 && (is_break || is_joined)) {
                Some(last) => {
                    let kept = unquote(last).len() + if is_break { word.len() } else { 0 };
                    last.push_str(word);
                    kept
                }
                None => {
                    raw_words.push(word.clone());
                    0
                }
            };
            if position == index {
                (line.index, line.replaced_from) = (raw_words.len() - 1, kept);
            }
            is_joined = is_break;
        }
        if index == words.len() {
            line.index = raw_words.len();
            raw_words.push(String::new());
        }
        line.words = raw_words.iter().map(|word| OsString::from(unquote(word))).collect();
        Some(line)
    }

    /// The word at the cursor.
    pub(super) fn current(&self) -> String {
        self.words.get(self.index).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The options of the other words. The word at the cursor is incomplete.
    pub(super) fn options(&self) -> Option<TypedOptions> {
        let complete = self.words.iter().enumerate().filter(|(position, _)| *position != self.index);
        let words = complete.map(|(_, word)| word);
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
        let sources = deepest.try_get_many::<DatabaseSource>("paths").ok().filter(|_| takes_sources);
        let connects = deepest.try_get_one::<String>("connect").is_ok_and(|url| url.is_some());
        Some(TypedOptions {
            global,
            sources: sources.map(|sources| sources.into_iter().flatten().cloned().collect()),
            tool: deepest.try_get_one::<String>("tool").ok().flatten().cloned(),
            connects,
        })
    }
}

/// A word without its quotes, and with the user's folder in place of `~/`. Variables and commands are not evaluated.
fn unquote(word: &str) -> String {
    let home = || std::env::var("HOME").ok().filter(|home| !home.is_empty());
    let mut plain = String::with_capacity(word.len());
    let mut rest = word;
    if let (Some(path), Some(home)) = (word.strip_prefix("~/"), home()) {
        plain = format!("{home}/");
        rest = path;
    }
    let mut quote = None;
    let mut characters = rest.chars();
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

    fn parts(words: &[&str], index: usize, has_breaks: bool) -> (Vec<String>, usize, usize) {
        let line = TypedLine::new(words.iter().map(OsString::from).collect(), index, has_breaks).unwrap();
        let words = line.words.into_iter().map(|word| word.into_string().unwrap()).collect();
        (words, line.index, line.replaced_from)
    }

    #[track_caller]
    fn check_bash(words: &[&str], index: usize, expected: (&[&str], usize, usize)) {
        let (found, at, replaced_from) = parts(words, index, true);
        assert_eq!((found.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), at, replaced_from), expected);
    }

    #[test]
    fn words_of_bash_are_joined_again() {
        let line = ["tidegate", "call", "--config", "=", "a.yaml", "x"];
        check_bash(&line, 5, (&["tidegate", "call", "--config=a.yaml", "x"], 3, 0));
        check_bash(&line[..5], 4, (&["tidegate", "call", "--config=a.yaml"], 2, 9));
        check_bash(&line[..4], 3, (&["tidegate", "call", "--config="], 2, 9));
        let path = ["tidegate", "query", "shop", "=", "postgres", ":", "//db/shop", "--database", ""];
        check_bash(&path, 8, (&["tidegate", "query", "shop=postgres://db/shop", "--database", ""], 4, 0));
    }

    #[test]
    fn a_cursor_after_the_last_word_has_an_empty_word() {
        assert_eq!(parts(&["tidegate", "call"], 2, false).0, ["tidegate", "call", ""]);
        assert!(TypedLine::new(vec!["tidegate".into()], 3, false).is_none());
        assert!(TypedLine::new(vec!["tidegate".into()], 0, false).is_none());
    }

    #[test]
    fn quotes_are_removed() {
        assert_eq!(unquote("'SELECT \"a\"'"), "SELECT \"a\"");
        assert_eq!(unquote("my\\ file.yaml"), "my file.yaml");
        assert_eq!(unquote("\"a\\\"b"), "a\"b");
        let home = std::env::var("HOME").unwrap();
        assert_eq!(unquote("~/a.yaml"), format!("{home}/a.yaml"));
    }

    #[test]
    fn options_are_read_from_incomplete_lines() {
        let options = |words: &[&str], index| {
            TypedLine::new(words.iter().map(OsString::from).collect(), index, false).unwrap().options().unwrap()
        };
        let typed = options(&["tidegate", "import", "--to", "", "--config", "a.yaml"], 3);
        assert_eq!(typed.global.config.unwrap().to_str(), Some("a.yaml"));
        assert!(typed.sources.is_none() && !typed.connects);
        let typed = options(&["tidegate", "--config=b.yaml", "call", "sql", "data"], 4);
        assert_eq!(typed.global.config.unwrap().to_str(), Some("b.yaml"));
        assert_eq!((typed.tool.as_deref(), typed.sources), (Some("sql"), Some(Vec::new())));
        let typed = options(&["tidegate", "query", "SELECT 1", "a=./data", "--database", ""], 5);
        assert_eq!(typed.sources, Some(vec![DatabaseSource::parse("a=./data").unwrap()]));
        let typed = options(&["tidegate", "ingest", "status", "--connect", "http://127.0.0.1:7070", ""], 5);
        assert!(typed.connects);
    }
}
