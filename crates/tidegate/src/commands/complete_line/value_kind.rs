//! The values that the arguments of commands take, where clap has no list of them.

use std::ffi::OsStr;

use clap::{Arg, Command, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

/// The values of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// A path, which the shell completes.
    Path,
    /// A database.
    Database,
    /// A database whose tables take rows, or one of these tables.
    IngestTarget,
    /// A table that takes rows.
    IngestTable,
    /// A tool.
    Tool,
    /// `KEY=VALUE` of the tool that is called.
    ToolArgument,
    /// A tool, resource, prompt or database.
    AccessedName,
    Toolset,
    Role,
}

/// The arguments with such values: the command, the name of the field, the values.
const ARGUMENTS: &[(&[&str], &str, ValueKind)] = &[
    (&["query"], "database", ValueKind::Database),
    (&["export"], "database", ValueKind::Database),
    (&["import"], "to", ValueKind::IngestTable),
    (&["ingest", "status"], "tables", ValueKind::IngestTarget),
    (&["ingest", "flush"], "tables", ValueKind::IngestTarget),
    (&["ingest", "compact"], "tables", ValueKind::IngestTarget),
    (&["ingest", "verify"], "tables", ValueKind::IngestTarget),
    (&["call"], "tool", ValueKind::Tool),
    (&["call"], "arguments", ValueKind::ToolArgument),
    (&["tools"], "toolset", ValueKind::Toolset),
    (&["stdio"], "toolset", ValueKind::Toolset),
    (&["client"], "toolset", ValueKind::Toolset),
    (&["access", "explain"], "toolset", ValueKind::Toolset),
    (&["access", "explain"], "name", ValueKind::AccessedName),
    (&["access", "explain"], "role_names", ValueKind::Role),
    (&["key", "add"], "roles", ValueKind::Role),
];

/// What begins a candidate that stands for all values of a kind. No value contains it.
const MARK: char = '\0';

const KINDS: [(ValueKind, &str); 9] = [
    (ValueKind::Path, "path"),
    (ValueKind::Database, "database"),
    (ValueKind::IngestTarget, "ingest_target"),
    (ValueKind::IngestTable, "ingest_table"),
    (ValueKind::Tool, "tool"),
    (ValueKind::ToolArgument, "tool_argument"),
    (ValueKind::AccessedName, "accessed_name"),
    (ValueKind::Toolset, "toolset"),
    (ValueKind::Role, "role"),
];

impl ValueKind {
    /// The kind that a candidate stands for, and what comes before the value in its word, such as `--database=`.
    pub(super) fn from_mark(candidate: &str) -> Option<(&str, Self)> {
        let (prefix, name) = candidate.split_once(MARK)?;
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| (prefix, *kind))
    }

    fn mark(self) -> String {
        let name = KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name);
        format!("{MARK}{name}")
    }
}

/// `command` with a candidate for each argument without a list of values: the mark of its kind. Values are found only when
/// the argument at the cursor is known, because some take time.
pub(super) fn mark_values(command: Command) -> Command {
    mark(command, &mut Vec::new())
}

fn mark(command: Command, path: &mut Vec<String>) -> Command {
    let command = command.mut_args(|argument| match kind(path, &argument) {
        Some(kind) => with_mark(argument, kind),
        None => argument,
    });
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        path.push(name.clone());
        let command = command.mut_subcommand(name, |inner| mark(inner, path));
        path.pop();
        command
    })
}

fn kind(path: &[String], argument: &Arg) -> Option<ValueKind> {
    let is_argument = |(command, id, _): &&(&[&str], &str, ValueKind)| *command == path && argument.get_id() == *id;
    if let Some((_, _, kind)) = ARGUMENTS.iter().find(is_argument) {
        return Some(*kind);
    }
    let is_source = argument.get_value_names().is_some_and(|names| names.iter().any(|name| name.ends_with("PATH")));
    (is_source || argument.get_value_hint() == ValueHint::AnyPath).then_some(ValueKind::Path)
}

fn with_mark(argument: Arg, kind: ValueKind) -> Arg {
    let mark = kind.mark();
    argument.add(ArgValueCompleter::new(move |_: &OsStr| vec![CompletionCandidate::new(mark.clone())]))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::commands::Cli;

    #[test]
    fn arguments_exist() {
        let cli = Cli::command();
        for (path, id, _) in ARGUMENTS {
            let command = path.iter().fold(&cli, |command, name| command.find_subcommand(name).unwrap());
            assert!(command.get_arguments().any(|argument| argument.get_id() == *id), "{path:?} has no {id}");
        }
    }

    #[test]
    fn a_mark_names_its_kind() {
        for (kind, _) in KINDS {
            assert_eq!(ValueKind::from_mark(&format!("--flag={}", kind.mark())), Some(("--flag=", kind)));
        }
        assert_eq!(ValueKind::from_mark("tool"), None);
    }
}
