//! Nodes that send other columns than their statements select: their rows are refused, with the name of the node.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use tidegate_core::ErrorKind;
use tidegate_engines::PartialAnswers;

use super::local_node::{AnswerChange, LocalNetwork};

const FILES: [&[(&str, &str)]; 2] = [&[("t.csv", "a,b,c\n1,2,p\n2,30,q\n")], &[("t.csv", "a,b,c\n2,1,p\n4,50,q\n")]];
/// A scan, an aggregate that the nodes compute, and a join whose keys are read first.
const STATEMENTS: [&str; 3] = [
    "SELECT a, b, c FROM t ORDER BY a, b",
    "SELECT c, SUM(a), SUM(b) FROM t GROUP BY c ORDER BY c",
    "SELECT x.a, x.b, y.c FROM t AS x JOIN t AS y ON x.a = y.b WHERE x.c = 'p' ORDER BY 1, 2",
];

/// A network whose second node answers with changed columns.
fn network(partial: PartialAnswers, change: AnswerChange) -> LocalNetwork {
    let network = LocalNetwork::new(partial, &FILES);
    *network.nodes[1].answer_change.lock() = Some(change);
    network
}

fn from_columns(columns: Vec<(Field, ArrayRef)>) -> RecordBatch {
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn columns_of(batch: &RecordBatch) -> Vec<(Field, ArrayRef)> {
    let fields = batch.schema_ref().fields().iter().map(|field| field.as_ref().clone());
    fields.zip(batch.columns().iter().cloned()).collect()
}

/// The columns with the types that `data_type` has for theirs.
fn with_types(batch: &RecordBatch, data_type: impl Fn(&DataType) -> Option<DataType>) -> RecordBatch {
    let columns = columns_of(batch).into_iter().map(|(field, column)| match data_type(field.data_type()) {
        Some(to) => (field.with_data_type(to.clone()), cast(&column, &to).unwrap()),
        None => (field, column),
    });
    from_columns(columns.collect())
}

fn is_number(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int64 | DataType::Decimal128(..))
}

const CHANGES: [(AnswerChange, &str); 6] = [
    (
        |batch| {
            let mut columns = columns_of(&batch);
            columns.swap(0, 1);
            from_columns(columns)
        },
        "there is \"c1\"",
    ),
    (
        |batch| {
            let mut columns = columns_of(&batch);
            columns.pop();
            from_columns(columns)
        },
        "is missing",
    ),
    (
        |batch| {
            let mut columns = columns_of(&batch);
            let nulls = new_null_array(&DataType::Int64, batch.num_rows());
            columns.push((Field::new("more", DataType::Int64, true), nulls));
            from_columns(columns)
        },
        "one more column, \"more\"",
    ),
    (
        |batch| {
            let columns = columns_of(&batch).into_iter().map(|(field, column)| (field.with_name("x"), column));
            from_columns(columns.collect())
        },
        "there is \"x\"",
    ),
    (|batch| with_types(&batch, |from| is_number(from).then_some(DataType::Utf8)), "is of type Utf8"),
    (|batch| with_types(&batch, |from| is_number(from).then_some(DataType::Float64)), "is of type Float64"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_sends_other_columns_is_named() {
    for (change, problem) in CHANGES {
        for sql in STATEMENTS {
            let error = network(PartialAnswers::Forbid, change).try_rows(sql).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{problem}: {sql}: {error}");
            let names_node = error.message().contains("the answer of node \"milan\" has other columns");
            assert!(names_node && error.message().contains(problem), "{problem}: {sql}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_answer_is_without_its_rows() {
    for (change, problem) in CHANGES {
        let network = network(PartialAnswers::Allow, change);
        assert_eq!(network.rows(STATEMENTS[1]).await, "p|1|2\nq|2|30", "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_encodings_of_the_same_values_are_read() {
    let change: AnswerChange = |batch| {
        with_types(&batch, |from| match from {
            DataType::Utf8 | DataType::Utf8View => Some(DataType::LargeUtf8),
            DataType::Int64 => Some(DataType::Int32),
            DataType::Decimal128(_, scale) => Some(DataType::Decimal128(38, scale + 2)),
            _ => None,
        })
    };
    for sql in STATEMENTS {
        let expected = LocalNetwork::new(PartialAnswers::Forbid, &FILES).rows(sql).await;
        assert_eq!(network(PartialAnswers::Forbid, change).rows(sql).await, expected, "{sql}");
    }
}
