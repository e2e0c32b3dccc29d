//! Flags of the command line that have a new name. The old name is still read, with a warning.

use std::ffi::{OsStr, OsString};

struct RenamedFlag {
    /// The verbs before it.
    command: [&'static str; 2],
    old: &'static str,
    new: &'static str,
}

/// Every renamed flag; `docs/how-to/upgrade.md` lists the same.
const RENAMED_FLAGS: &[RenamedFlag] = &[
    RenamedFlag { command: ["audit", "verify"], old: "--holds", new: "--contains-hash" },
    RenamedFlag { command: ["access", "explain"], old: "--as", new: "--role" },
    RenamedFlag { command: ["access", "explain"], old: "--via", new: "--transport" },
];

/// `arguments` of the process with today's names, and a warning for each old one.
pub(crate) fn with_new_names(mut arguments: Vec<OsString>) -> (Vec<OsString>, Vec<String>) {
    let mut warnings = Vec::new();
    let is_word = |word: &'static str| move |argument: &OsString| argument == OsStr::new(word);
    for RenamedFlag { command: [verb, subverb], old, new } in RENAMED_FLAGS {
        let Some(at) = arguments.iter().position(is_word(verb)) else { continue };
        let Some(after) = arguments[at..].iter().position(is_word(subverb)) else { continue };
        let flags = arguments[at + after..].iter_mut().take_while(|argument| *argument != OsStr::new("--"));
        for argument in flags {
            let Some(rest) = argument.to_str().and_then(|text| text.strip_prefix(old)) else { continue };
            if rest.is_empty() || rest.starts_with('=') {
                warnings.push(format!("{old} is deprecated; write {new}"));
                *argument = OsString::from(format!("{new}{rest}"));
            }
        }
    }
    (arguments, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(line: &str) -> (String, Vec<String>) {
        let (arguments, warnings) = with_new_names(line.split(' ').map(OsString::from).collect());
        (arguments.join(OsStr::new(" ")).into_string().unwrap(), warnings)
    }

    #[test]
    fn replaces_old_flags_of_their_command_only() {
        let (line, warnings) = renamed("tidegate access explain --as=a --via http x");
        assert_eq!(line, "tidegate access explain --role=a --transport http x");
        assert_eq!(warnings, ["--as is deprecated; write --role", "--via is deprecated; write --transport"]);
        for line in ["tidegate query --via x", "tidegate access explain --asset x", "tidegate audit verify -- --holds"]
        {
            assert_eq!(renamed(line), (line.to_owned(), Vec::new()));
        }
    }

    #[test]
    fn upgrade_page_lists_every_renamed_flag() {
        let page = include_str!("../../../docs/how-to/upgrade.md");
        for RenamedFlag { command, old, new } in RENAMED_FLAGS {
            let command = command.join(" ");
            let row = format!("| `{command} {old}` | `{command} {new}` |");
            assert!(page.contains(&row), "docs/how-to/upgrade.md lacks the row {row}");
        }
    }
}
