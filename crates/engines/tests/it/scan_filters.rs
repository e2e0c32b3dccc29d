//! Dynamic filters, with which joins and sorts with a limit let a scan of Parquet skip row groups.

use std::iter::repeat_n;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};

use crate::support::{Folder, TestNode, numbers, numbers_csv, two_thread_options, write_parquet};

const ROWS: i64 = 200_000;

/// `n` with ids and names in Parquet, `all_ids` with the same ids, and `few` with 100 of them.
fn joined_tables() -> (Folder, TestNode) {
    let few: String = (0..100).map(|id| format!("{}\n", id * 1_999)).collect();
    let folder = Folder::with(&[("few.csv", &format!("id\n{few}"))]);
    folder.write("all_ids.csv", numbers_csv(ROWS));
    write_parquet(&folder.join("n.parquet"), &numbers(ROWS), 20_000);
    let node = folder.database_with(two_thread_options());
    (folder, node)
}

#[tokio::test]
async fn filters_of_joins_and_sorts_change_no_row() {
    let (_folder, node) = joined_tables();
    let statements = [
        "SELECT count(*), sum(n.id), min(n.name) FROM few JOIN n USING (id)",
        "SELECT count(*), sum(n.id), min(n.name) FROM few JOIN n USING (id) WHERE n.name LIKE '%5%'",
        "SELECT count(*), sum(n.id), min(n.name) FROM all_ids JOIN n USING (id) WHERE n.name LIKE '%5%'",
        "SELECT count(*), sum(n.id) FROM few LEFT JOIN n USING (id) WHERE n.id % 2 = 0",
        "SELECT count(*) FROM n WHERE id NOT IN (SELECT id FROM few)",
        "SELECT count(*) FROM n WHERE EXISTS (SELECT FROM few WHERE few.id = n.id) OR n.id < 10",
        "SELECT id, name FROM n WHERE id % 7 = 3 ORDER BY name DESC LIMIT 3",
        "SELECT id, name FROM n ORDER BY id % 1000 DESC, id LIMIT 3",
    ];
    for sql in statements {
        // Without an equality of columns, the join has no filter; a sort without a limit has none either.
        let rows = node.rows(sql).await;
        let unfiltered = sql.replace(" n USING (id)", " n ON few.id = n.id + 0").replace(" LIMIT 3", " LIMIT 150000");
        let unfiltered = unfiltered.replace("all_ids JOIN n ON few.id", "all_ids JOIN n ON all_ids.id");
        let all_rows = node.rows(&unfiltered).await;
        let compared: Vec<&str> = all_rows.lines().take(rows.lines().count()).collect();
        assert_eq!(rows.lines().collect::<Vec<_>>(), compared, "{sql}");
    }
}

/// The bound of one aggregate says nothing about the values of another one.
#[tokio::test]
async fn minima_and_maxima_are_those_of_all_rows() {
    let column = |first: Option<i64>, others: i64| -> ArrayRef {
        Arc::new(repeat_n(first, 20_000).chain(repeat_n(Some(others), 180_000)).collect::<Int64Array>())
    };
    let columns = [("a", column(Some(100), 1)), ("b", column(Some(1), 100)), ("c", column(None, 5))];
    let folder = Folder::new();
    write_parquet(&folder.join("t.parquet"), &RecordBatch::try_from_iter(columns).unwrap(), 20_000);
    let node = folder.database_with(two_thread_options());
    for (sql, row) in [
        ("SELECT max(a), max(b + 1) FROM t", "100|101"),
        ("SELECT max(a), max(c) FROM t WHERE b > 0", "100|5"),
        ("SELECT min(b), min(-c) FROM t", "1|-5"),
    ] {
        assert_eq!(node.rows(sql).await, row, "{sql}");
    }
}

/// Zeros are equal whatever their sign.
#[tokio::test]
async fn zeros_of_both_signs_are_joined() {
    let folder = Folder::new();
    for (table, values) in [("many", [0.0, -0.0].repeat(10)), ("one", vec![0.0])] {
        let values: ArrayRef = Arc::new(Float64Array::from(values));
        let batch = RecordBatch::try_from_iter([("x", values)]).unwrap();
        write_parquet(&folder.join(&format!("{table}.parquet")), &batch, 10);
    }
    let node = folder.database_with(two_thread_options());
    for sql in
        ["SELECT m.x FROM many m JOIN one o ON m.x = o.x", "SELECT m.x FROM many m JOIN one o USING (x) ORDER BY m.x"]
    {
        assert_eq!(node.rows(sql).await.lines().count(), 20, "{sql}");
    }
}
