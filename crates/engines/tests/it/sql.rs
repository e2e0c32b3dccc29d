//! SQL behaviour, replayed from the workspace's `tests/slt/*.slt`: each file is run through statement, plan and
//! stream, on the files of `tests/slt/data`.

use std::time::Duration;

use arrow::datatypes::DataType;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType};

use crate::support::{TestNode, lines, two_thread_options};
use tidegate_testkit::sql_logic_test::{self, Failure};

struct SltRunner {
    node: TestNode,
}

#[async_trait::async_trait]
impl AsyncDB for SltRunner {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let batches = self.node.batches(sql, Vec::new()).await?;
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

#[tokio::test]
async fn all_scripts_are_replayed() {
    sql_logic_test::run_all(|| SltRunner {
        node: TestNode::open(vec![sql_logic_test::folder().join("data")], two_thread_options()),
    })
    .await;
}
