//! Joins with a small side send its keys to the nodes, so that only rows with these keys travel.

use std::fmt::Write as _;

use tidegate_engines::PartialAnswers;

use super::local_node::{Failure, LocalNetwork};

/// Rows of `readings` on each node.
const READINGS: usize = 3_000;

/// `readings` of one node: sensors `s0`, `s1`, … with ten readings each. Some have no sensor.
fn readings(first: usize) -> String {
    let mut csv = "id,sensor,code,amount,time\n".to_owned();
    for row in first..first + READINGS {
        let sensor = if row % 97 == 0 { String::new() } else { format!("s{}", row / 10) };
        let time = format!("2026-01-{:02}T00:{:02}:00.123456Z", row % 28 + 1, row % 60);
        let _ = writeln!(csv, "{row},{sensor},{},{}.25,{time}", row % 700, row % 50);
    }
    csv
}

const SENSORS_BERGEN: &str = "name,kind,code\ns3,heat,3\ns7,wind,7\n,heat,8\nO'Hare \"x\",heat,9\n";
const SENSORS_MILAN: &str = "name,kind,code\ns310,heat,310\ns311,wind,311\nnone,cold,9999\n";

fn two_nodes() -> LocalNetwork {
    let (bergen, milan) = (readings(0), readings(READINGS) + "-1,\"O'Hare \"\"x\"\"\",1,1.25,2026-01-01T00:00:00Z\n");
    let network = LocalNetwork::new(
        PartialAnswers::Forbid,
        &[
            &[("readings.csv", &bergen), ("sensors.csv", SENSORS_BERGEN)],
            &[("readings.csv", &milan), ("sensors.csv", SENSORS_MILAN)],
        ],
    );
    network.take_rows_sent();
    network
}

/// The answer to `sql`, of which the nodes send at most `rows_max` rows.
async fn rows_of(network: &LocalNetwork, sql: &str, rows_max: usize) -> String {
    let answer = network.rows(sql).await;
    let (sent, statements) = (network.take_rows_sent(), network.take_statements());
    assert!(sent <= rows_max, "{sql}: {sent} rows\n{statements:#?}");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_sends_the_keys_of_its_small_side() {
    let network = two_nodes();
    let sql = "SELECT s.name, COUNT(*), MIN(r.id) FROM readings AS r JOIN sensors AS s ON r.sensor = s.name \
               WHERE s.kind = 'heat' GROUP BY s.name ORDER BY s.name";
    // Four sensors, one of them without a name, and the readings of three.
    assert_eq!(rows_of(&network, sql, 4 + 20).await, "O'Hare \"x\"|1|-1\ns3|10|30\ns310|9|3100");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_and_exists_send_keys_and_not_in_does_not() {
    let network = two_nodes();
    let inside = "SELECT COUNT(*) FROM readings WHERE sensor IN (SELECT name FROM sensors WHERE kind = 'wind')";
    assert_eq!(rows_of(&network, inside, 2 + 20).await, "20");
    let exists = "SELECT MIN(id), MAX(id) FROM readings AS r \
                  WHERE EXISTS (SELECT 1 FROM sensors AS s WHERE s.name = r.sensor AND s.kind = 'wind')";
    assert_eq!(rows_of(&network, exists, 2 + 20).await, "70|3119");
    // A sensor without a name makes the condition null for every reading that has none of the names.
    let outside = "SELECT COUNT(*) FROM readings WHERE sensor NOT IN (SELECT name FROM sensors WHERE kind = 'heat')";
    assert_eq!(network.rows(outside).await, "0");
    let outside = "SELECT COUNT(*) FROM readings WHERE id NOT IN (SELECT code FROM sensors WHERE kind = 'wind')";
    assert_eq!(network.rows(outside).await, (2 * READINGS + 1 - 2).to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outer_join_sends_the_keys_of_the_side_that_is_kept() {
    let network = two_nodes();
    let sql = "SELECT s.name, COUNT(r.id) FROM sensors AS s LEFT JOIN readings AS r ON r.sensor = s.name \
               WHERE s.kind <> 'heat' GROUP BY s.name ORDER BY s.name";
    assert_eq!(rows_of(&network, sql, 3 + 20).await, "none|0\ns311|10\ns7|10");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_have_any_exact_type() {
    let network = two_nodes();
    let whole =
        "SELECT COUNT(*) FROM readings WHERE code IN (SELECT code FROM sensors WHERE kind = 'cold' OR code = 7)";
    assert_eq!(rows_of(&network, whole, 2 + 9).await, "9");
    let time = "SELECT COUNT(*) FROM readings AS r JOIN \
                (SELECT time FROM readings WHERE id IN (5, 6)) AS few ON r.time = few.time";
    let expected =
        (0..2 * READINGS).filter(|row| [5, 6].iter().any(|few| row % 28 == few % 28 && row % 60 == few % 60));
    let expected = expected.count();
    assert_eq!(rows_of(&network, time, 2 + expected).await, expected.to_string());
    let decimal = "SELECT COUNT(*) FROM (SELECT amount::numeric(12, 2) AS amount FROM readings) AS r \
                   JOIN (VALUES (3.25::numeric(12, 2)), (NULL)) AS v(amount) ON r.amount = v.amount";
    assert_eq!(network.rows(decimal).await, (2 * READINGS / 50).to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_no_node_is_sent_a_statement() {
    let network = two_nodes();
    let sql = "SELECT r.id FROM readings AS r JOIN sensors AS s ON r.sensor = s.name WHERE s.kind = 'nothing'";
    assert_eq!(network.rows(sql).await, "");
    let statements = network.take_statements();
    assert!(statements.iter().all(|statement| statement.contains("sensors")), "{statements:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_keys_than_the_limit_are_joined_here() {
    let network = two_nodes();
    let sql = "SELECT COUNT(*) FROM readings AS r JOIN readings AS other ON r.id = other.id WHERE other.code < 500";
    let expected = (0..2 * READINGS).filter(|row| row % 700 < 500).count() + 1;
    assert_eq!(network.rows(sql).await, expected.to_string());
    let few = "SELECT COUNT(*) FROM readings AS r JOIN readings AS other ON r.id = other.id WHERE other.code < 100";
    let expected = (0..2 * READINGS).filter(|row| row % 700 < 100).count() + 1;
    assert!(expected > 800 && expected < 1_000, "{expected}: too many keys, but not too many rows");
    assert_eq!(network.rows(few).await, expected.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_makes_a_side_small() {
    let network = two_nodes();
    let sql = "SELECT COUNT(*) FROM readings AS r JOIN (SELECT id FROM readings ORDER BY id DESC LIMIT 3) AS last \
               ON r.id = last.id";
    assert_eq!(rows_of(&network, sql, 6 + 3).await, "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_has_the_statements_for_the_keys() {
    let network = two_nodes();
    let sql = "SELECT r.id FROM readings AS r JOIN sensors AS s ON r.sensor = s.name WHERE s.kind = 'heat'";
    let plan = network.plan(sql).await.unwrap().explain().await.unwrap();
    let (first, rest) = plan.split_once("Queries sent to the databases:").unwrap();
    assert!(first.starts_with("Queries sent first.") && first.contains("on r.sensor"), "{plan}");
    assert!(first.contains("bergen: SELECT") && first.contains("milan: SELECT"), "{plan}");
    assert!(!first.contains("readings") && rest.contains("readings"), "{plan}");
    assert!(network.take_statements().is_empty(), "explain sends nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_fails_for_the_keys_is_named_once() {
    let network = two_nodes();
    *network.nodes[1].failure.lock() = Some(Failure::Away);
    let sql = "SELECT r.id FROM readings AS r JOIN sensors AS s ON r.sensor = s.name WHERE s.kind = 'heat'";
    let error = network.try_rows(sql).await.unwrap_err();
    assert!(error.message().contains("milan"), "{error}");
    assert_eq!(network.take_statements().len(), 2, "the readings are not read");
}
