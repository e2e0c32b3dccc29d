//! `tidegate complete-line`: the words that fit at the cursor of a command line. The scripts of `tidegate completions` run it
//! at each request of the user, so it answers within [`values::NODE_TIMEOUT`], prints no errors and changes nothing.
//!
//! - `typed_line`: the words of the shell, and the options that are typed already.
//! - `value_kind`: which values an argument takes.
//! - `values`: these values, from the configuration and from a node that is opened for them.

mod typed_line;
mod value_kind;
mod values;

use std::ffi::OsString;

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::engine;

use self::typed_line::TypedLine;
use self::value_kind::{ValueKind, mark_values};
use super::Cli;
use crate::command_error::CommandError;
use crate::output;

/// A line of the output: the shell itself completes a path.
const FILES: &str = ":files";
/// The length of a description. Shells print a description beside its word.
const DESCRIPTION_CHARS_MAX: usize = 80;

/// Print the words that fit at the cursor of a command line
#[derive(Debug, Args)]
pub(crate) struct CompleteLineCommand {
    /// The shell that splits the line into words, and that reads the output
    #[arg(long, value_enum)]
    shell: LineShell,

    /// Position of the word at the cursor; the program has 0
    #[arg(long)]
    index: usize,

    /// The words of the line
    #[arg(last = true)]
    words: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LineShell {
    Bash,
    Zsh,
    Fish,
}

/// A word that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    text: String,
    description: Option<String>,
}

impl Candidate {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), description: None }
    }

    fn with_description(self, description: &str) -> Self {
        // It may come from a database, and the shell, which reads it from a pipe, prints it as it is.
        let line: Vec<char> = description
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .filter(|character| !character.is_control())
            .collect();
        let mut shortened: String = line.iter().take(DESCRIPTION_CHARS_MAX).collect();
        if line.len() > DESCRIPTION_CHARS_MAX {
            shortened.push('…');
        }
        Self { description: Some(shortened).filter(|text| !text.is_empty()), ..self }
    }
}

impl CompleteLineCommand {
    pub(crate) async fn run(self) -> Result<(), CommandError> {
        let Some(line) = TypedLine::new(self.words, self.index, self.shell == LineShell::Bash) else { return Ok(()) };
        let (files, words): (Vec<_>, Vec<_>) =
            candidates(&line).await.into_iter().partition(|candidate| candidate.text == FILES);
        // A line of the output is a word.
        let words = words.iter().filter(|word| !word.text.contains(char::is_control));
        let lines: String = words.map(|word| format!("{}\n", self.shell.render(word, line.replaced_from))).collect();
        if lines.is_empty() && !files.is_empty() {
            return output::print(format_args!("{FILES}\n"));
        }
        output::print(lines)
    }
}

impl LineShell {
    /// The candidate in the form that the script of the shell reads, without the bytes that the shell keeps.
    fn render(self, candidate: &Candidate, replaced_from: usize) -> String {
        let text = candidate.text.get(replaced_from..).unwrap_or_default();
        match (self, &candidate.description) {
            (Self::Bash, _) => text.to_owned(),
            // What follows a colon is the description.
            (Self::Zsh, description) => {
                let text = text.replace('\\', "\\\\").replace(':', "\\:");
                description.as_ref().map_or(text.clone(), |description| format!("{text}:{description}"))
            }
            (Self::Fish, Some(description)) => format!("{text}\t{description}"),
            (Self::Fish, None) => text.to_owned(),
        }
    }
}

/// The words that fit at the cursor of `line`, or [`FILES`].
async fn candidates(line: &TypedLine) -> Vec<Candidate> {
    let mut command = mark_values(Cli::command());
    // A line that cannot be completed is no error for its user.
    let Ok(found) = engine::complete(&mut command, line.words.clone(), line.index, None) else { return Vec::new() };
    let current = line.current();
    let mut candidates = Vec::new();
    let mut flags = Vec::new();
    for candidate in found.iter().filter(|candidate| !candidate.is_hide_set()) {
        let text = candidate.get_value().to_string_lossy();
        let description = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        match ValueKind::from_mark(&text) {
            Some((_, ValueKind::Path)) => candidates.push(Candidate::new(FILES)),
            Some((prefix, kind)) => {
                let typed = current.strip_prefix(prefix).unwrap_or(&current);
                let values = values::find(kind, typed, line).await.into_iter();
                let values = values.filter(|value| value.text.starts_with(typed));
                candidates.extend(values.map(|value| Candidate { text: format!("{prefix}{}", value.text), ..value }));
            }
            None if text.starts_with('-') => flags.push(Candidate::new(text).with_description(&description)),
            None => candidates.push(Candidate::new(text).with_description(&description)),
        }
    }
    // Flags would hide what else fits, so that they are listed once one has begun.
    if current.starts_with('-') {
        candidates.retain(|candidate| candidate.text != FILES || current.contains('='));
        candidates.extend(flags);
    }
    candidates
}
