//! The values that the arguments of commands take, where clap has no list of them.

use std::ffi::OsStr;
use std::sync::Arc;

use clap::{Arg, Command};
use clap_complete::engine::ArgValueCompleter;

use super::typed_line::TypedLine;
use super::values;

/// The values of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// A path, also after `NAME=`.
    Path,
    /// A database.
    Database,
    /// A database whose tables take rows, or one of these tables.
    WriteTarget,
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
    (&["ingest", "status"], "tables", ValueKind::WriteTarget),
    (&["ingest", "flush"], "tables", ValueKind::WriteTarget),
    (&["ingest", "compact"], "tables", ValueKind::WriteTarget),
    (&["ingest", "verify"], "tables", ValueKind::WriteTarget),
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

/// `command` with the values of each argument that takes values other than those that clap lists.
pub(super) fn complete_values(command: Command, line: &Arc<TypedLine>) -> Command {
    complete_arguments(command, &mut Vec::new(), line)
}

fn complete_arguments(command: Command, path: &mut Vec<String>, line: &Arc<TypedLine>) -> Command {
    let command = command.mut_args(|argument| match kind(path, &argument) {
        Some(kind) => {
            let line = line.clone();
            argument
                .add(ArgValueCompleter::new(move |typed: &OsStr| values::find(kind, &typed.to_string_lossy(), &line)))
        }
        None => argument,
    });
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        path.push(name.clone());
        let command = command.mut_subcommand(name, |inner| complete_arguments(inner, path, line));
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
    is_source.then_some(ValueKind::Path)
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
}
