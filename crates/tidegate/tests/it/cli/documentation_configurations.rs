//! Every configuration that the pages show, in a block of any mark, is one: a part of it may lack what stands elsewhere, but
//! no key and no value is wrong.

use serde_json::Value;

use super::documentation_commands::{command_folder, pages, split_blocks};
use super::{CommandOutput, run, tidegate};

/// The marks of blocks that may be configurations.
const LANGUAGES: [&str; 3] = ["", "text", "yaml"];

/// Problems of a part whose surroundings are missing, and of the configuration of another program.
const ACCEPTED: [&str; 10] = [
    "no such file",
    "there is no role",
    "there is no table",
    "there is no database",
    "there are no databases",
    "is no database of",
    "can be reached from other machines",
    "cannot be reached",
    "needs auth.tokens",
    "is the configuration of MCP Toolbox",
];

/// The text of a block without the indentation of its list.
fn dedented(lines: &[String]) -> String {
    let indentation = lines.first().map_or(0, |line| line.len() - line.trim_start().len());
    lines.iter().map(|line| line.get(indentation..).unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Whether the first key of `text` is one of a configuration. A text with an ellipsis is not complete.
fn is_configuration(text: &str, keys: &[&String]) -> bool {
    let first = text.lines().find(|line| !line.starts_with('#')).and_then(|line| line.split_once(':'));
    first.is_some_and(|(key, _)| keys.iter().any(|known| *known == key)) && !text.contains('…')
}

/// Values for the environment variables that `text` names.
fn variables(text: &str) -> Vec<(String, String)> {
    let is_of_name = |character: &char| character.is_ascii_uppercase() || *character == '_';
    let names = text.split("${").skip(1).map(|rest| rest.chars().take_while(is_of_name).collect::<String>());
    let value = |name: &str| match name.ends_with("DSN") {
        true => "postgres://ann@127.0.0.1:1/shop".to_owned(),
        false => "a".repeat(64),
    };
    names.filter(|name| !name.is_empty()).map(|name| (name.clone(), value(&name))).collect()
}

#[test]
fn configurations_of_pages_have_no_wrong_key_or_value() {
    let schema: Value = serde_json::from_str(&run(&["config", "schema"]).stdout).unwrap();
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    let (mut checked, mut wrong) = (0, Vec::new());
    for (name, page) in pages() {
        let folder = command_folder(&page);
        for (language, lines) in split_blocks(&page).into_iter().filter_map(Result::err) {
            let text = dedented(&lines);
            if !LANGUAGES.contains(&language.as_str()) || !is_configuration(&text, &keys) {
                continue;
            }
            std::fs::write(folder.path().join("tidegate.yaml"), &text).unwrap();
            let mut command = tidegate();
            command.current_dir(folder.path()).args(["config", "check"]).envs(variables(&text));
            let ran = CommandOutput::from(command.output().unwrap());
            let problems: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("tidegate.yaml:")).collect();
            let is_accepted =
                |problem: &&str| ACCEPTED.iter().any(|known| problem.to_lowercase().contains(&known.to_lowercase()));
            if ran.code != Some(0) && (problems.is_empty() || !problems.iter().all(is_accepted)) {
                wrong.push(format!("{name}: {}", ran.stderr));
            }
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} configurations were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
