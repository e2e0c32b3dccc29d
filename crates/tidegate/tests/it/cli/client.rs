//! `tidegate client`: the configuration of other programs.

use super::documentation_commands::split_blocks;
use super::{Shop, run, run_in, tidegate};

#[test]
fn snippet_matches_the_served_sources() {
    let shop = Shop::new();
    let ran = run_in(shop.0.path(), &["client", "claude-code", "shop", "--name", "orders"]);
    let program = std::fs::canonicalize(env!("CARGO_BIN_EXE_tidegate")).unwrap();
    let folder = shop.0.path().canonicalize().unwrap();
    let text = ran.stdout.replace(&program.display().to_string(), "TIDEGATE");
    insta::assert_snapshot!(text.replace(&folder.display().to_string(), "FOLDER"), @r#"
    {
      "mcpServers": {
        "orders": {
          "command": "TIDEGATE",
          "args": [
            "stdio",
            "FOLDER/shop"
          ]
        }
      }
    }
    "#);
    let ran = run_in(shop.0.path(), &["client", "vscode", "--url", "https://node.example.com/mcp", "--key-env", "KEY"]);
    insta::assert_snapshot!(ran.stdout, @r#"
    {
      "servers": {
        "tidegate": {
          "type": "http",
          "url": "https://node.example.com/mcp",
          "headers": {
            "Authorization": "Bearer ${env:KEY}"
          }
        }
      }
    }
    "#);
}

#[test]
fn written_config_keeps_existing_settings() {
    let shop = Shop::new();
    let file = shop.0.path().join(".cursor/mcp.json");
    std::fs::create_dir(shop.0.path().join(".cursor")).unwrap();
    std::fs::write(&file, "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"other\"}\n  }\n}\n").unwrap();
    let write = || {
        let mut command = tidegate();
        let arguments = ["client", "cursor", "shop", "--project", "--write"];
        super::CommandOutput::from(
            command.current_dir(shop.0.path()).env("HOME", shop.0.path()).args(arguments).output().unwrap(),
        )
    };
    let ran = write();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("\"other\": {\"command\": \"other\"}") && written.contains("\"stdio\""), "{written}");
    assert!(shop.0.path().join(".cursor/mcp.json.bak").exists());
    assert!(write().stdout.contains("says so already"));
}

#[test]
fn entries_contain_no_password() {
    let shop = Shop::new();
    let source = "shop=postgres://ann:s3cret@db.example.com/shop?sslmode=verify-full";
    for write in [&[][..], &["--project", "--write"]] {
        let mut command = tidegate();
        command.current_dir(shop.0.path()).env("HOME", shop.0.path()).args(["client", "cursor", source]).args(write);
        let ran = super::CommandOutput::from(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("the entry has no password; put it into PGPASSWORD"), "{}", ran.stderr);
        let written = std::fs::read_to_string(shop.0.path().join(".cursor/mcp.json")).unwrap_or(ran.stdout);
        let argument = "\"shop=postgresql://?user=ann&dbname=shop&host=db.example.com&sslmode=verify-full\"";
        assert!(written.contains(argument) && !written.contains("s3cret"), "{written}");
    }
    let url = run(&["client", "cursor", "--url", "https://ann:s3cret@node.example.com/mcp"]);
    assert_eq!(url.code, Some(2), "{url:?}");
    assert!(url.stderr.contains("--key-env VARIABLE") && !url.stderr.contains("s3cret"), "{}", url.stderr);
}

#[test]
fn entries_of_the_page_are_what_the_command_prints() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/clients.md");
    let blocks = split_blocks(&std::fs::read_to_string(page).unwrap()).into_iter().filter_map(Result::err);
    let entries: Vec<String> =
        blocks.filter(|(language, _)| language == "json").map(|(_, lines)| lines.join("\n")).collect();
    let printed = |client: &str| {
        let ran = run(&["client", client, "--url", "http://127.0.0.1:7070/mcp", "--key-env", "TIDEGATE_KEY"]);
        ran.stdout.trim_end().to_owned()
    };
    assert_eq!(entries, ["claude-code", "vscode"].map(printed));
}
