//! Text files with numbers of another format, and with declared types.

use tidegate_core::Principal;
use tidegate_engines::{NumberFormat, TextTableOptions};
use tidegate_query::Database as _;

use crate::messy::open_with_options;
use crate::support::Folder;

const GERMAN: NumberFormat = NumberFormat { decimal: ',', thousands: Some('.') };

#[tokio::test]
async fn numbers_with_decimal_commas_are_text_with_the_option_that_reads_them() {
    let text = "id;price;pieces;share\n1;12,5;1.000;1,25\n2;1.234,50;2.500;-\n3;7;3.000;3\n";
    let folder = Folder::with(&[("t.csv", text), ("points.csv", "id;pieces\n1;1.000\n2;2.500\n")]);
    let node = folder.database();
    assert_eq!(node.columns("t").await.unwrap(), "id bigint, price text, pieces text, share text");
    assert_eq!(node.rows("SELECT pieces FROM t WHERE id = 1").await, "1.000");
    let columns = node.database.columns("t", &Principal::anonymous()).await.unwrap();
    let comments: Vec<&str> = columns.iter().filter_map(|column| column.comment.as_deref()).collect();
    let option = "tables: {t: {decimal: \",\", thousands: \".\"}}";
    assert!(comments[0].starts_with("text, because line 2 of t.csv has \"12,5\"; "), "{comments:?}");
    assert!(comments.len() == 3 && comments.iter().all(|comment| comment.ends_with(option)), "{comments:?}");
    let notes = node.database.type_notes().await.unwrap();
    assert!(notes[0].starts_with("the column \"pieces\" of the table t is text, because"), "{notes:?}");
    assert_eq!(notes.len(), 3);
    // The option does what the note says.
    let options = TextTableOptions { numbers: Some(GERMAN), ..TextTableOptions::default() };
    let node = open_with_options(vec![folder.path()], &[("t", options)]);
    assert_eq!(node.columns("t").await.unwrap(), "id bigint, price double, pieces bigint, share double");
    assert_eq!(node.rows("SELECT price, pieces, share FROM t").await, "12.5|1000|1.25\n1234.5|2500|null\n7.0|3000|3.0");
    assert!(node.database.type_notes().await.unwrap().is_empty());
    // Without a comma in the file, a point is decimal.
    assert_eq!(node.columns("points").await.unwrap(), "id bigint, pieces double");
}
