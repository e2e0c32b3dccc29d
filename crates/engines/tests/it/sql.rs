//! SQL behaviour, replayed from the workspace's `tests/slt/*.slt`: each file is run through statement, plan and
//! stream, on the files of `tests/slt/data`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::DataType;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use tidegate_core::Error;

use crate::support::{Node, lines, small_options};

struct Replay {
    node: Arc<Node>,
}

/// Our error as one that the runner can print.
struct Failure(Error);

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.to_string().replace('\n', " "))
    }
}

impl std::error::Error for Failure {}

#[async_trait::async_trait]
impl AsyncDB for Replay {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let batches = self.node.batches(sql, Vec::new()).await.map_err(Failure)?;
        let schema = batches[0].schema();
        let types = schema
            .fields()
            .iter()
            .map(|field| match field.data_type() {
                data_type if data_type.is_integer() => DefaultColumnType::Integer,
                DataType::Float32 | DataType::Float64 => DefaultColumnType::FloatingPoint,
                DataType::Decimal128(..) | DataType::Decimal256(..) => DefaultColumnType::FloatingPoint,
                _ => DefaultColumnType::Text,
            })
            .collect();
        let value = |text: &str| if text.is_empty() { "(empty)".to_owned() } else { text.to_owned() };
        let rows = lines(&batches).lines().map(|line| line.split('|').map(value).collect()).collect();
        Ok(DBOutput::Rows { types, rows })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "datafusion"
    }

    async fn sleep(duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

async fn replay(file: &Path, data: PathBuf) {
    let node = Arc::new(Node::open(vec![data], small_options()));
    let mut runner = Runner::new(|| async { Ok(Replay { node: node.clone() }) });
    if let Err(error) = runner.run_file_async(file).await {
        panic!("{}", error.display(false));
    }
}

#[tokio::test]
async fn all_scripts_are_replayed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slt").canonicalize().unwrap();
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        replay(&script, folder.join("data")).await;
    }
}
