//! Limits of functions whose work or result is much larger than their arguments.

use crate::support::{Folder, TestNode, numbers, two_thread_options, with_timeout, write_parquet};

fn node() -> (Folder, TestNode) {
    let folder = Folder::new();
    write_parquet(&folder.join("n.parquet"), &numbers(1_000), 1_000);
    let node = folder.database_with(two_thread_options());
    (folder, node)
}

#[tokio::test]
async fn work_of_one_row_is_bounded() {
    let (_folder, node) = node();
    let long = "(SELECT repeat('a', 500000 + 0 * id) AS a, repeat('b', 500000 + 0 * id) AS b FROM n LIMIT 1)";
    for sql in [
        "SELECT levenshtein(repeat('a', 500000), repeat('b', 500000))".to_owned(),
        format!("SELECT levenshtein(a, b) FROM {long}"),
        format!("SELECT levenshtein(a, repeat('b', 500000)) FROM {long}"),
        format!("SELECT btrim(a, b) FROM {long}"),
        format!("SELECT trim(BOTH b FROM a) FROM {long}"),
        format!("SELECT ltrim(a, b) FROM {long}"),
        format!("SELECT rtrim(a, b) FROM {long}"),
        format!("SELECT strpos(a, b) FROM {long}"),
        format!("SELECT position(b IN a) FROM {long}"),
        // Slightly more than the limit, because the plan has all elements of constant lists.
        "SELECT array_has_all(range(0, 40000), range(0, 40000))".to_owned(),
        "SELECT list_has_all(range(0, id + 40000), range(0, id + 40000)) FROM n LIMIT 1".to_owned(),
        "SELECT array_has_any(range(0, id + 40000), range(-id - 40000, -1)) FROM n LIMIT 1".to_owned(),
        "SELECT arrays_overlap(range(0, id + 40000), range(-id - 40000, -1)) FROM n LIMIT 1".to_owned(),
        "SELECT regexp_count(repeat('a', 900000), '.*?b|a')".to_owned(),
        "SELECT regexp_replace(repeat('a', 900000), '.*?b|a', 'x', 'g')".to_owned(),
        "SELECT regexp_instr(repeat('a', 900000), '.*?b|a', 1, 800000)".to_owned(),
        "SELECT array_has_all(array_repeat(repeat('x', 10), 40000), array_repeat(repeat('x', 10), 40000))".to_owned(),
    ] {
        let refusal = with_timeout(&sql, node.refusal(&sql)).await;
        assert!(refusal.starts_with("too_large: ") && refusal.contains(" steps"), "{sql}: {refusal}");
    }
    insta::assert_snapshot!(node.refusal("SELECT levenshtein(repeat('a', 500000), repeat('b', 500000))").await, @r"
    too_large: levenshtein() exceeds the work limit for one row: 5e11 steps; the limit is 1e9
    The work is the product of the lengths: use shorter values, such as left(x, 10000), or fewer elements.
    ");
}

#[tokio::test]
async fn results_larger_than_all_arguments_are_bounded() {
    let (_folder, node) = node();
    for sql in [
        "SELECT array_to_string(range(0, 100000), repeat('x', 1000))",
        "SELECT length(concat_ws(repeat('x', 500000), name, name, name)) FROM n",
        "SELECT length(replace(repeat('x', 1000), 'x', repeat(name, 100000))) FROM n LIMIT 1",
        "SELECT length(to_char(date '2020-01-01' + CAST(id AS INT), repeat('Mo', 500000))) FROM n",
    ] {
        let refusal = with_timeout(sql, node.refusal(sql)).await;
        assert!(refusal.starts_with("too_large: ") && refusal.contains("64 MiB"), "{sql}: {refusal}");
    }
    let days = "SELECT count(*) FROM generate_series(timestamp '2000-01-01', timestamp '2001-01-01', interval '1 day')";
    assert_eq!(node.rows(days).await, "367");
}

/// Many short rows are computed in parts.
#[tokio::test]
async fn long_batches_are_computed_in_parts() {
    let (_folder, node) = node();
    // Only a few steps are needed, since the first letter is not one to trim; many would be possible.
    let sql = "SELECT id FROM (SELECT id, btrim('z' || repeat('a', 2000 + id) || 'z', repeat('b', 2000) || id) AS t \
               FROM n) WHERE t <> 'z' || repeat('a', 2000 + id) || 'z'";
    assert_eq!(with_timeout(sql, node.rows(sql)).await, "");
    let sql = "SELECT min(length(t)), max(length(t)), count(t), count(*) FROM (SELECT CASE WHEN id = 5 THEN NULL ELSE \
               ltrim('z' || repeat('a', 2000 + id), repeat('b', 2000)) END AS t FROM n)";
    assert_eq!(with_timeout(sql, node.rows(sql)).await, "2001|3000|999|1000");
}

#[tokio::test]
async fn ordinary_calls_are_not_refused() {
    let (_folder, node) = node();
    for (sql, expected) in [
        ("SELECT levenshtein('kitten', 'sitting'), levenshtein('a', NULL)", "3|null"),
        ("SELECT btrim('xxaxx', 'x'), ltrim('xya', 'yx'), rtrim('axy', 'xy'), trim('  a ')", "a|a|a|a"),
        ("SELECT strpos('héllo', 'l'), position('z' IN 'abc'), strpos(name, 'ame') FROM n WHERE id = 1", "3|0|2"),
        (
            "SELECT array_has_all([1, 2, 3], [3, 1]), array_has_any([1, 2], [3]), array_has_any(['a'], ['a'])",
            "true|false|true",
        ),
        ("SELECT array_has_any([id], [1, id + 0]), array_has_all([name], [name]) FROM n WHERE id = 7", "true|true"),
        ("SELECT concat_ws('-', 'a', NULL, 'b'), array_to_string([1, NULL, 3], ',', '?')", "a-b|1,?,3"),
        (
            "SELECT replace(name, 'name', 'x'), regexp_replace(name, '(n)ame', '\\1', 'g') FROM n WHERE id = 2",
            "x 2|n 2",
        ),
        ("SELECT to_char(date '2020-01-02', 'DD.MM.YYYY')", "02.01.2020"),
        ("SELECT regexp_count(repeat('ab', 40000), 'B', 1, 'i')", "40000"),
        ("SELECT length(regexp_replace(repeat('ab', 40000), '(b)', '\\1\\1', 'g'))", "120000"),
        ("SELECT count(*) FROM n WHERE levenshtein(name, 'name 1') <= 1", "28"),
    ] {
        assert_eq!(with_timeout(sql, node.rows(sql)).await, expected, "{sql}");
    }
}
