//! The folder that a server spills to: private, and removed after a kill.

use std::fs;
use std::path::{Path, PathBuf};

use reqwest::{Client, StatusCode};
use serde_json::json;

use super::server::{Server, wait_until};
use super::{Shop, tidegate};

/// More rows than fit into the memory of the server, in an order that needs all of them.
const LARGE_SORT: &str = "SELECT value, lpad((value * 7919 % 200000)::text, 32, '0') AS key \
                          FROM generate_series(1, 200000) AS g(value) ORDER BY key";

fn start(shop: &Shop, spill: &Path) -> Server {
    let options =
        ["serve", "--listen", "127.0.0.1:0", "--log", "error", "--memory", "16MB", "--inline-bytes", "unlimited"];
    let command = &mut tidegate();
    Server::start(command.args(options).arg("--spill-folder").arg(spill).arg(shop.path()))
}

fn folders(spill: &Path) -> Vec<PathBuf> {
    fs::read_dir(spill).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn spilled_files_of_a_killed_server_are_removed_by_the_next() {
    let (shop, root) = (Shop::new(), tempfile::tempdir().unwrap());
    let spill = root.path().join("spill");
    let living = start(&shop, &spill);
    let of_living = folders(&spill);
    let killed = start(&shop, &spill);
    let request = Client::new().post(killed.url.replace("/mcp", "/rest/sql")).header("accept", "application/x-ndjson");
    let mut answer = request.json(&json!({"sql": LARGE_SORT, "max_rows": 1_000_000})).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer.chunk().await.unwrap().unwrap();
    killed.signal("KILL");
    killed.wait_for_exit();
    let left: Vec<PathBuf> = folders(&spill).into_iter().filter(|path| !of_living.contains(path)).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let spilled = folders(&left[0]).iter().filter(|path| path.is_dir()).flat_map(|path| folders(path)).count();
    assert!(spilled > 0, "nothing was spilled");
    let next = start(&shop, &spill);
    let now = folders(&spill);
    assert!(!left[0].exists() && now.len() == 2 && now.contains(&of_living[0]), "{now:?}");
    for server in [living, next] {
        server.signal("TERM");
        server.wait_for_exit();
    }
    wait_until(async || folders(&spill).is_empty()).await;
}
