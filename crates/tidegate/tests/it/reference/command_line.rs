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

In these shells, Tab also completes paths and the names of databases, tables, tools, their arguments, toolsets and roles. The names come from a configuration without errors
and the paths of the line, but not from a server of `--connect`. Opening databases for them takes one second at most.

";

/// The heading of the options that every command has.
const SHARED: &str = "Options of all commands";

/// Options that several commands have: the heading of their table, and the commands.
const SHARED_BY_SOME: [(&str, &[&str]); 3] = [
    ("Options of a connection", &["stdio", "export", "fetch", "import", "ingest", "transport"]),
    ("Options of a download", &["export", "fetch"]),
    ("Options of an HTTP server", &["demo", "serve"]),
];

/// The cells of an argument or an option.
type Row = Vec<String>;

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

    fn row(mut self) -> Row {
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

fn rows(lines: &[&str]) -> Vec<Row> {
    let items = lines.iter().map(|line| Item::parse(line));
    items.filter(|item| !item.name.contains("--help") && !item.name.contains("--version")).map(Item::row).collect()
}

/// The table of arguments and options, without columns that no row uses.
fn row_table(rows: &[Row]) -> String {
    let mut columns = vec!["argument or option", "default", "variable", "meaning"];
    let mut rows = rows.to_vec();
    for column in (0..columns.len()).rev() {
        if rows.iter().all(|row| row[column].is_empty()) {
            columns.remove(column);
            for row in &mut rows {
                row.remove(column);
            }
        }
    }
    table(&columns, &rows)
}

/// What the help of a command says.
struct Command {
    words: Vec<String>,
    /// The lines before the first heading.
    introduction: Vec<String>,
    rows: Vec<Row>,
    /// Links to the tables with its further rows.
    links: Vec<String>,
    /// The options of all commands.
    shared: Vec<Row>,
    subcommands: Vec<Command>,
}

impl Command {
    fn read(words: &[String]) -> Self {
        let mut command = Self {
            words: words.to_vec(),
            introduction: Vec::new(),
            rows: Vec::new(),
            links: Vec::new(),
            shared: Vec::new(),
            subcommands: Vec::new(),
        };
        for (heading, lines) in sections(&help(words)) {
            match heading {
                "" => command.introduction = lines.into_iter().map(str::to_owned).collect(),
                "Commands" => {
                    let names = lines.iter().map(|line| Item::parse(line).name).filter(|name| name != "help");
                    command.subcommands = names.map(|name| Self::read(&[words, &[name]].concat())).collect();
                }
                SHARED => command.shared = rows(&lines),
                _ if heading == "Arguments" || heading.starts_with("Options") => command.rows.extend(rows(&lines)),
                _ => {}
            }
        }
        command
    }

    /// Moves the rows that all subcommands have to this command.
    fn take_rows_of_subcommands(&mut self) {
        let mut subcommands: Vec<_> = self.subcommands.iter_mut().collect();
        self.rows.extend(take_common_rows(&mut subcommands, None));
    }

    /// Renders the command and its subcommands.
    fn render(&self, page: &mut String) {
        let heading = "#".repeat(self.words.len() + 1);
        page.push_str(&format!("{heading} tidegate {}\n\n", self.words.join(" ")));
        let has_subcommands = !self.subcommands.is_empty();
        for (index, line) in self.introduction.iter().enumerate() {
            match line.strip_prefix("Usage: ") {
                // The table has the arguments in their order, but not which options are required.
                Some(usage) if usage.contains(" --") => page.push_str(&format!("```text\n{usage}\n```\n\n")),
                Some(_) => {}
                None if index == 0 => page.push_str(&format!("{}.\n\n", plain(line).trim_end_matches('.'))),
                None => page.push_str(&format!("{}\n\n", plain(line))),
            }
        }
        if has_subcommands && !self.rows.is_empty() {
            page.push_str("All its commands have:\n\n");
        }
        page.push_str(&row_table(&self.rows));
        if !self.links.is_empty() {
            page.push_str(&format!("With the {}.\n\n", self.links.join(" and the ")));
        }
        for subcommand in &self.subcommands {
            subcommand.render(page);
        }
    }
}

/// Takes the rows that all of `commands` have out of them, and leaves `link`. A single row stays where it is.
fn take_common_rows(commands: &mut [&mut Command], link: Option<&str>) -> Vec<Row> {
    let Some((first, others @ [_, ..])) = commands.split_first() else { return Vec::new() };
    let common = first.rows.iter().filter(|row| others.iter().all(|other| other.rows.contains(row)));
    let common: Vec<Row> = common.cloned().collect();
    if common.len() < 2 {
        return Vec::new();
    }
    for command in commands {
        command.rows.retain(|row| !common.contains(row));
        command.links.extend(link.map(str::to_owned));
    }
    common
}

#[test]
fn command_line_page_is_current() {
    let mut root = Command::read(&[]);
    let mut page = format!("{INTRODUCTION}{}## {SHARED}\n\n{}", row_table(&root.rows), row_table(&root.shared));
    root.subcommands.iter_mut().for_each(Command::take_rows_of_subcommands);
    for (heading, names) in SHARED_BY_SOME {
        let commands = root.subcommands.iter_mut().filter(|command| names.contains(&command.words[0].as_str()));
        let text = heading.replacen("Options", "options", 1);
        let link = format!("[{text}](#{})", text.to_lowercase().replace(' ', "-"));
        let rows = take_common_rows(&mut commands.collect::<Vec<_>>(), Some(&link));
        assert!(!rows.is_empty(), "{names:?} have no options in common");
        page.push_str(&format!("## {heading}\n\n{}", row_table(&rows)));
    }
    for command in &root.subcommands {
        command.render(&mut page);
    }
    check_page("command-line.md", &page);
}
