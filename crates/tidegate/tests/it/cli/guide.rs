//! The commands of `docs/configuring.md`, run one after the other on its configuration.

use std::path::Path;

use super::server::Server;
use super::{Ran, tidegate};

/// The fenced blocks of `language`, in their order.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("```{language}\n");
    text.split(opening.as_str()).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

#[test]
fn every_command_of_the_page_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/configuring.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    for name in ["flights.parquet", "airlines.parquet"] {
        std::fs::copy(root.join("data/demo").join(name), folder.path().join("data").join(name)).unwrap();
    }
    std::fs::write(folder.path().join("tidegate.yaml"), blocks(&page, "yaml").join("\n")).unwrap();
    let commands: Vec<&str> = blocks(&page, "sh").into_iter().flat_map(str::lines).collect();
    assert!(commands.len() >= 8, "{commands:?}");
    for command in commands {
        let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
        let mut run = tidegate();
        run.current_dir(folder.path()).env("HOME", folder.path()).args(&arguments);
        if arguments == ["serve"] {
            let server = Server::start(run.args(["--listen", "127.0.0.1:0", "--log", "error"]));
            server.signal("TERM");
            assert_eq!(server.ended().0.code(), Some(0));
        } else {
            let ran = Ran::from(run.output().unwrap());
            assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
        }
    }
}
