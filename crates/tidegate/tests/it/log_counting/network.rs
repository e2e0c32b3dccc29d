//! The same over a network whose nodes have a part of the rows each.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::engines::{Engine, EngineOptions, NetworkDatabase, NetworkNode, NetworkOptions, PartialAnswers};

use super::node::LogNode;
use super::rows::LogRow;
use super::{LogTable, check_counts, check_growing_pages, open, write};
use crate::file_node::FileNode;

/// Two nodes with a folder each.
struct Network {
    folders: [TempDir; 2],
    nodes: [Arc<FileNode>; 2],
    log_node: LogNode,
    _engine: Engine,
}

impl LogTable for Network {
    fn new(type_of_time: &str, rows: &[LogRow]) -> Self {
        let engine = Engine::start(EngineOptions::default()).unwrap();
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        write_parts(&folders, type_of_time, rows);
        let nodes = [0, 1].map(|index| {
            let database = open(["milan", "oslo"][index], folders[index].path(), &engine);
            Arc::new(FileNode::new(database))
        });
        let members = nodes.iter().map(|node| NetworkNode { database: node.clone(), holds: None }).collect();
        let options =
            NetworkOptions { partial: PartialAnswers::Forbid, timeout: Duration::from_secs(60), ranges: Vec::new() };
        let database = NetworkDatabase::new("sites", options, members, &engine).unwrap();
        Self { folders, nodes, log_node: LogNode::new(Arc::new(database)), _engine: engine }
    }

    fn node(&self) -> &LogNode {
        &self.log_node
    }

    fn replace(&self, type_of_time: &str, rows: &[LogRow]) {
        write_parts(&self.folders, type_of_time, rows);
    }
}

/// Every second row is on the same node.
fn write_parts(folders: &[TempDir; 2], type_of_time: &str, rows: &[LogRow]) {
    for (first, folder) in folders.iter().enumerate() {
        let part: Vec<LogRow> = rows.iter().skip(first).step_by(2).cloned().collect();
        write(folder.path(), type_of_time, &part);
    }
}

#[test]
fn counts_of_a_network_are_those_of_a_scan() {
    check_counts::<Network>(64);
}

#[test]
fn pages_of_a_network_have_each_entry_once() {
    check_growing_pages::<Network>(64);
}

/// The nodes count, and send the entries of the page.
#[test]
fn nodes_count_their_part() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let row = |index: i64| LogRow {
        time: Some(index * 1_000),
        message: None,
        level: None,
        code: Some(index % 7),
        flag: Some(index % 3 == 0),
    };
    let rows: Vec<LogRow> = (0..210).map(row).collect();
    let network = Network::new("timestamp", &rows);
    let Value::Object(arguments) =
        json!({"selections": {"code": ["3"]}, "facets": ["_node"], "histogram": {"field": "flag"}, "limit": 2})
    else {
        unreachable!()
    };
    let answer = runtime.block_on(network.log_node.ask(arguments));
    assert_eq!((&answer["evaluated"], &answer["matched"], &answer["returned"]), (&json!(30), &json!(30), &json!(2)));
    assert_eq!(answer["facets"]["_node"]["values"], json!([["milan", 15], ["oslo", 15]]));
    for node in &network.nodes {
        let statements = node.statements();
        assert!(!statements.is_empty());
        // Counts, a page, or the rows between the times of a page.
        let sends_few =
            |sql: &String| ["COUNT(", "MIN(", " LIMIT ", "\"time\" >="].iter().any(|part| sql.contains(part));
        assert!(statements.iter().all(sends_few), "{statements:#?}");
    }
}
