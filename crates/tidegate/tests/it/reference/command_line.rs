//! `docs/reference/command-line.md`, from the help of each command.

use super::super::cli::tidegate;
use super::{check_page, code, plain, table};

const INTRODUCTION: &str = "\
# Command line

A flag overrides its environment variable, which overrides the [configuration file](configuration.md), which overrides the default.

| exit status | meaning |
|---|---|
| 0 | success |
| 1 | the query, the server or a verification failed |
| 2 | the command line or the configuration is invalid |

## Completion

The packages for Debian and Homebrew install completion scripts. Otherwise, add this line to the file that your shell reads at its start:

| shell | line |
|---|---|
| bash | `source <(tidegate completions bash)` |
| zsh | `source <(tidegate completions zsh)`, after `compinit` |
| fish | `tidegate completions fish \\| source` |

In these shells, Tab also completes paths and the names of databases, tables, tools, their arguments, toolsets and roles. The names come from the configuration and the
paths of the line. If databases have to be opened for them, this takes one second at most; names of the configuration appear in any case. Nothing is changed, and a
configuration with errors has no names. With `--connect`, tables of the running server are not completed.

";

/// The heading of the options that every command has.
const SHARED: &str = "Options of all commands";

/// The help of a command, without line breaks within a description.
fn help(command: &[String]) -> String {
    let ran = tidegate().env("COLUMNS", "10000").args(command).arg("-h").output().unwrap();
    assert!(ran.status.success(), "{command:?}");
    String::from_utf8(ran.stdout).unwrap()
}

/// An argument or an option: its name, and its description with default and variable in brackets.
struct Item {
    name: String,
    description: String,
}

impl Item {
    fn parse(line: &str) -> Self {
        let line = line.trim();
        let (name, description) = line.split_once("  ").unwrap_or((line, ""));
        Self { name: name.to_owned(), description: description.trim().to_owned() }
    }

    /// Takes `[name: value]` out of the description.
    fn take(&mut self, name: &str) -> String {
        let begin = format!("[{name}: ");
        let Some(start) = self.description.find(&begin) else { return String::new() };
        let length = self.description[start..].find(']').unwrap();
        let value = self.description[start + begin.len()..start + length].to_owned();
        self.description.replace_range(start..=start + length, "");
        value
    }

    fn row(mut self) -> Vec<String> {
        let (default, variable, values) = (self.take("default"), self.take("env"), self.take("possible values"));
        if !values.is_empty() {
            self.description = format!("{}: {values}", self.description.trim());
        }
        assert!(!self.description.is_empty(), "{} has no description", self.name);
        // A remark may follow the name of the variable.
        let (variable, remark) = variable.split_once(',').unwrap_or((&variable, ""));
        let variable = match (variable, remark) {
            ("", _) => String::new(),
            (variable, "") => code(variable),
            (variable, remark) => format!("{}, {}", code(variable), plain(remark)),
        };
        vec![code(&self.name), plain(&default), variable, plain(&self.description)]
    }
}

/// The sections of a help text: the lines before the first heading, and the lines below each heading.
fn sections(help: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sections = vec![("", Vec::new())];
    for line in help.lines().filter(|line| !line.trim().is_empty()) {
        match line.strip_suffix(':') {
            Some(heading) if !line.starts_with(' ') => sections.push((heading, Vec::new())),
            _ => sections.last_mut().unwrap().1.push(line),
        }
    }
    sections
}

fn item_table(lines: &[&str]) -> String {
    let items = lines.iter().map(|line| Item::parse(line));
    let items = items.filter(|item| !item.name.contains("--help") && !item.name.contains("--version"));
    let rows: Vec<_> = items.map(Item::row).collect();
    table(&["argument or option", "default", "variable", "meaning"], &rows)
}

/// Renders a command and its subcommands.
fn render(command: &[String], page: &mut String) {
    let help = help(command);
    let sections = sections(&help);
    let has_subcommands = sections.iter().any(|(heading, _)| *heading == "Commands");
    if !command.is_empty() {
        let name = command.join(" ");
        page.push_str(&format!("{} tidegate {name}\n\n", "#".repeat(command.len() + 1)));
        for (index, line) in sections[0].1.iter().enumerate() {
            match line.strip_prefix("Usage: ") {
                Some(usage) if !has_subcommands => page.push_str(&format!("```text\n{usage}\n```\n\n")),
                Some(_) => {}
                None if index == 0 => page.push_str(&format!("{}.\n\n", plain(line).trim_end_matches('.'))),
                None => page.push_str(&format!("{}\n\n", plain(line))),
            }
        }
    }
    let own = sections.iter().filter(|(heading, _)| *heading == "Arguments" || heading.starts_with("Options"));
    let own = own.filter(|(heading, _)| *heading != SHARED);
    let own: Vec<&str> = own.flat_map(|(_, lines)| lines.iter().copied()).collect();
    page.push_str(&item_table(&own));
    for (_, lines) in sections.iter().filter(|(heading, _)| *heading == SHARED && command.is_empty()) {
        page.push_str(&format!("## {SHARED}\n\n{}", item_table(lines)));
    }
    for (_, lines) in sections.iter().filter(|(heading, _)| *heading == "Commands") {
        for subcommand in lines.iter().map(|line| Item::parse(line).name).filter(|name| name != "help") {
            render(&[command, &[subcommand]].concat(), page);
        }
    }
}

#[test]
fn command_line_page_is_current() {
    let mut page = INTRODUCTION.to_owned();
    render(&[], &mut page);
    check_page("command-line.md", &page);
}
