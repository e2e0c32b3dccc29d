//! Log files as tables.
//!
//! - `formats`: each format by SQL, against values that are written by hand.
//! - `rotation`: rotated and compressed files, and files that grow or are rotated while they are read.
//! - `options`: declared formats, patterns and time zones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tidegate_engines::{EmbeddedDatabase, Engine, LogTableOptions, TextTableOptions};

use crate::support::{Folder, TestNode, no_delay_limits, two_thread_options};

mod formats;
mod options;
mod rotation;

/// Longer ago than a file that is still being written.
const SETTLED: Duration = Duration::from_secs(3_600);

/// A line of a combined log with this path and status.
fn combined(path: &str, status: u16) -> String {
    format!("10.0.0.1 - - [01/Mar/2024:12:00:00 +0100] \"GET {path} HTTP/1.1\" {status} 12 \"-\" \"curl/8\"\n")
}

/// Combined lines with the paths `/FIRST`, …, `/END` without the last.
fn numbered(paths: std::ops::Range<usize>) -> String {
    paths.map(|number| combined(&format!("/{number}"), 200)).collect()
}

/// Makes the file look as if it was not written recently.
fn settle(folder: &Folder, name: &str) {
    let file = std::fs::File::options().append(true).open(folder.join(name)).unwrap();
    file.set_modified(SystemTime::now() - SETTLED).unwrap();
}

fn open_with_options(folder: &Folder, tables: &[(&str, LogTableOptions)]) -> TestNode {
    let engine = Engine::start(two_thread_options()).unwrap();
    let text_options = |log: &LogTableOptions| TextTableOptions { log: log.clone(), ..TextTableOptions::default() };
    let tables: BTreeMap<String, TextTableOptions> =
        tables.iter().map(|(name, log)| ((*name).to_owned(), text_options(log))).collect();
    let database = EmbeddedDatabase::open_with("db", vec![folder.path()], &engine, no_delay_limits(), tables).unwrap();
    TestNode { engine, database: Arc::new(database) }
}
