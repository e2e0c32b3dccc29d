//! The files of declared folders.

use std::fs;
use std::os::unix::fs::symlink;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Client;
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::serve;
use super::server::Server;

const CONFIGURATION: &str = "
databases: [{name: shop, files: shop}]
folders: [{name: notes, path: notes}]
";

fn with_notes(configuration: &str) -> ConfiguredFolder {
    let configured = ConfiguredFolder::new("");
    let notes = configured.folder().join("notes");
    fs::create_dir_all(notes.join("deep")).unwrap();
    fs::write(notes.join("a.md"), "# One\n").unwrap();
    fs::write(notes.join(".hidden"), "nobody reads this").unwrap();
    fs::write(notes.join("deep/b.bin"), [0, 159, 146, 150]).unwrap();
    symlink(configured.folder().join("tidegate.yaml"), notes.join("outside.yaml")).unwrap();
    symlink(configured.folder().join("shop"), notes.join("shop")).unwrap();
    symlink("a.md", notes.join("link.md")).unwrap();
    configured.write(configuration);
    configured
}

#[test]
fn files_of_a_folder_are_listed_in_pages() {
    let configured = with_notes(CONFIGURATION);
    let list = |arguments: &[&str]| {
        let ran = configured.run(&[&["call", "list_files", "format=csv"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let rows = ran.stdout.lines().skip(1);
        rows.map(|row| row.split(',').take(3).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(list(&[]), ["a.md file 6", "deep folder ", "link.md file 6"]);
    assert_eq!(list(&["after=a.md"]), ["deep folder ", "link.md file 6"]);
    assert_eq!(list(&["folder=notes", "path=deep"]), ["deep/b.bin file 4"]);
    for index in 0..1_010 {
        fs::write(configured.folder().join(format!("notes/deep/n{index:04}")), "").unwrap();
    }
    let first = list(&["path=deep"]);
    let has = |row: &str| first.iter().any(|listed| listed == row);
    assert!(has("deep/n0998 file 0") && !has("deep/n0999 file 0"), "{first:?}");
    let rest = list(&["path=deep", "after=deep/n0998"]);
    assert_eq!((rest.len(), rest[0].as_str()), (11, "deep/n0999 file 0"));
}

#[test]
fn paths_never_lead_out_of_the_folder() {
    let configured = with_notes(CONFIGURATION);
    for path in
        ["../tidegate.yaml", "outside.yaml", "shop/orders.csv", ".hidden", "deep", "/etc/passwd", "deep/../a.md"]
    {
        let ran = configured.run(&["call", "read_file", &format!("path={path}")]);
        let expected = format!("there is no file {path:?} in the folder \"notes\"");
        assert!(ran.code == Some(1) && ran.stdout.is_empty() && ran.stderr.contains(&expected), "{path}: {ran:?}");
    }
    let read = configured.run(&["call", "read_file", "path=link.md"]);
    assert_eq!((read.code, read.stdout.trim_end()), (Some(0), "# One"));
    let elsewhere = configured.run(&["call", "list_files", "path=shop"]);
    assert!(elsewhere.stderr.contains("there is no file \"shop\""), "{elsewhere:?}");
}

async fn read(server: &Server, arguments: Value) -> (u16, Value) {
    let url = server.url.replace("/mcp", "/rest/tools/read_file/call");
    let response = Client::new().post(url).json(&arguments).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// All pages of a file, in order.
async fn pages(server: &Server, path: &str) -> Vec<Vec<u8>> {
    let (mut pages, mut arguments) = (Vec::new(), json!({ "path": path }));
    loop {
        let (status, answer) = read(server, arguments.clone()).await;
        assert_eq!(status, 200, "{answer}");
        let content = answer["content"].as_array().unwrap();
        pages.push(match (content[0]["text"].as_str(), content[0]["resource"]["blob"].as_str()) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (_, Some(blob)) => STANDARD.decode(blob).unwrap(),
            _ => panic!("{answer}"),
        });
        let Some(note) = content.get(1) else { return pages };
        assert_eq!(answer["truncated"], true);
        arguments["cursor"] = note["text"].as_str().unwrap().split('"').nth_back(1).unwrap().into();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_file_are_the_whole_file() {
    let configured = with_notes(CONFIGURATION);
    let notes = configured.folder().join("notes");
    let lines: String = (0..60_000).map(|line| format!("{line} is é\n")).collect();
    let unbroken = "é".repeat(200_000);
    let binary: Vec<u8> = (0..500_000_u32).map(|number| (number % 251) as u8).collect();
    fs::write(notes.join("lines.txt"), &lines).unwrap();
    fs::write(notes.join("unbroken.txt"), &unbroken).unwrap();
    fs::write(notes.join("binary.dat"), &binary).unwrap();
    fs::write(notes.join("empty.txt"), "").unwrap();
    let server = serve(&configured);
    for (path, whole) in
        [("lines.txt", lines.as_bytes()), ("unbroken.txt", unbroken.as_bytes()), ("binary.dat", binary.as_slice())]
    {
        let pages = pages(&server, path).await;
        assert!(pages.len() > 1 && pages.iter().all(|page| page.len() <= 256 * 1024), "{path}: {} pages", pages.len());
        assert!(pages.concat() == whole, "{path} differs");
        assert!(path != "lines.txt" || pages.iter().all(|page| page.ends_with(b"\n")));
    }
    assert_eq!(pages(&server, "empty.txt").await, [b""]);

    let (_, first) = read(&server, json!({"path": "lines.txt"})).await;
    let cursor = first["content"][1]["text"].as_str().unwrap().split('"').nth_back(1).unwrap().to_owned();
    fs::write(notes.join("lines.txt"), "shorter\n").unwrap();
    let (status, changed) = read(&server, json!({"path": "lines.txt", "cursor": cursor})).await;
    assert!(status == 503 && changed["detail"].as_str().unwrap().contains("has changed"), "{changed}");
    let (status, wrong) = read(&server, json!({"path": "lines.txt", "cursor": "7"})).await;
    assert!(status == 422 && wrong["violations"][0]["path"] == "cursor", "{wrong}");
}

#[test]
fn callers_need_the_access_names_of_a_folder() {
    let configuration = "folders: [{name: notes, path: notes, access: [staff]}, {name: shop, path: shop}]
toolsets: {files: [list_files, read_file]}
roles: [{name: guest, toolsets: [files]}, {name: nobody}]
";
    let configured = with_notes(configuration);
    let call = |role: &str, arguments: &[&str]| {
        let file = format!("{role}.yaml");
        fs::write(configured.folder().join(&file), format!("{configuration}auth: {{local: [{role}]}}\n")).unwrap();
        configured.run(&[&["--config", file.as_str(), "call"], arguments].concat())
    };
    let listed = call("guest", &["list_files", "extract=path"]);
    assert_eq!(listed.stdout.trim_end(), r#"["2024.csv","orders.csv"]"#, "{listed:?}");
    let hidden = call("guest", &["read_file", "folder=notes", "path=a.md"]);
    assert!(hidden.stderr.contains("there is no folder \"notes\"\nValid choices: shop"), "{hidden:?}");
    let refused = call("nobody", &["list_files"]);
    assert!(refused.stderr.contains("there is no tool \"list_files\""), "{refused:?}");
}

#[test]
fn config_check_reports_folders_that_do_not_exist() {
    let configured = with_notes("folders: [{name: notes, path: nots}, {name: 'a b', path: notes}]\n");
    let text = configured.usage_error(&["config", "check"]);
    assert!(
        text.contains("tidegate.yaml:1:25: folders[0].path: no such file or folder: nots; name a folder"),
        "{text}"
    );
    assert!(text.contains("folders[1].name: \"a b\" is no name of a folder"), "{text}");
}
