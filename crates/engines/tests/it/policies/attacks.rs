//! Attempts to gain information about hidden rows: each statement has the same outcome as if those rows did not exist.

use serde_json::json;
use tidegate_engines::Engine;
use tidegate_query::Mask;

use super::{RestrictedDatabase, policy, test_principal};
use crate::support::{Folder, two_thread_options};

/// The rows that an attacker sees, among others: zeros to divide by, texts that are not numbers, large numbers.
const SEEN: &str = "1,mine,5,012,alpha\n2,mine,7,013,beta\n";
const HIDDEN: &str = "3,other,0,not a number,secret\n4,other,9223372036854775807,99999999999999999999,secret\n\
                      5,other,-9223372036854775808,,zz\n";
const HEAD: &str = "id,tenant,amount,code,note\n";

const STATEMENTS: &[&str] = &[
    "SELECT 10 / amount FROM t",
    "SELECT id FROM t WHERE 10 / amount > 1",
    "SELECT id FROM t WHERE tenant = 'other' AND 10 / amount > 1",
    "SELECT id FROM t WHERE tenant = 'other' OR 1 / (amount - 5) > 0",
    "SELECT id FROM t WHERE amount % 0 = 1",
    "SELECT CAST(code AS BIGINT) FROM t",
    "SELECT id FROM t WHERE CAST(code AS BIGINT) > 5",
    "SELECT id FROM t WHERE CASE WHEN note = 'secret' THEN 1 / 0 ELSE 1 END = 1",
    "SELECT CASE WHEN tenant = 'other' THEN CAST(note AS BIGINT) ELSE 1 END FROM t",
    "SELECT amount * 4 FROM t",
    "SELECT -amount FROM t",
    "SELECT sum(amount), min(amount), max(amount), count(amount), avg(amount) FROM t",
    "SELECT count(*) FROM t",
    "SELECT count(*) FROM t WHERE amount = 0",
    "SELECT count(*) FROM t WHERE tenant = 'other'",
    "SELECT approx_distinct(note), median(amount) FROM t",
    "SELECT note, count(*) FROM t GROUP BY note ORDER BY note",
    "SELECT id, row_number() OVER (ORDER BY amount), lag(note) OVER (ORDER BY id) FROM t ORDER BY id",
    "SELECT id, count(*) OVER () FROM t ORDER BY id",
    "SELECT id, sum(amount) OVER (PARTITION BY tenant) FROM t ORDER BY id",
    "SELECT * FROM t ORDER BY amount LIMIT 1",
    "SELECT * FROM t LIMIT 1 OFFSET 2",
    "SELECT id FROM t ORDER BY note DESC",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.amount = b.amount ORDER BY a.id",
    "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id = b.id - 2 ORDER BY a.id, b.id",
    "SELECT a.id FROM t a FULL JOIN t b ON a.id = b.id + 10 ORDER BY a.id",
    "SELECT id FROM t WHERE id IN (SELECT id + 2 FROM t)",
    "SELECT id FROM t o WHERE EXISTS (SELECT 1 FROM t i WHERE i.id = o.id + 2)",
    "SELECT id, (SELECT max(amount) FROM t i WHERE i.id > o.id) FROM t o ORDER BY id",
    "SELECT (SELECT id FROM t WHERE tenant = 'other')",
    "SELECT (SELECT id FROM t)",
    "WITH x AS (SELECT * FROM t) SELECT count(*) FROM x WHERE 1 / amount >= 0",
    "WITH RECURSIVE r AS (SELECT id FROM t WHERE id = 1 UNION ALL SELECT t.id FROM t JOIN r ON t.id = r.id + 1) SELECT * FROM r ORDER BY id",
    "SELECT DISTINCT tenant FROM t ORDER BY tenant",
    "SELECT tenant FROM t UNION SELECT note FROM t ORDER BY 1",
    "SELECT id FROM t EXCEPT SELECT id FROM t WHERE id < 2",
    "SELECT id FROM t WHERE note LIKE 's%'",
    "SELECT id FROM t WHERE note ~ '(a+)+$'",
    "SELECT array_agg(note ORDER BY note) FROM t",
    "SELECT id, unnest([amount, 1]) FROM t ORDER BY 1, 2",
    "SELECT nothing FROM t",
    "SELECT sekret FROM t",
    "SELECT secret FROM t",
    "SELECT * FROM s",
    "SELECT id FROM t WHERE amount > 'x'",
    "SELECT arrow_typeof(amount), arrow_typeof(note) FROM t LIMIT 1",
    "SELECT arrow_cast(amount, 'Int8') FROM t",
    "SELECT to_timestamp(note) FROM t",
    "SELECT to_date(note) FROM t",
    "SELECT power(amount, 2), sqrt(amount), ln(amount) FROM t",
    "SELECT substr(note, 1, amount) FROM t",
    "SELECT repeat(note, amount) FROM t",
    "SELECT chr(amount) FROM t",
    "SELECT * FROM generate_series(1, (SELECT max(amount) FROM t))",
    "SELECT amount FROM t GROUP BY ROLLUP (amount) ORDER BY 1",
    "SELECT count(*) FILTER (WHERE 1 / amount = 0) FROM t",
    "SELECT id FROM t HAVING max(1 / amount) > 0",
    "SELECT id FROM t QUALIFY row_number() OVER (ORDER BY 1 / amount) = 1",
    "SELECT max(id) FROM t WHERE id > 2",
    "SELECT min(id) FROM t WHERE note IS NOT DISTINCT FROM 'secret'",
    "SELECT EXISTS (SELECT 1 FROM t WHERE note = 'secret')",
    "SELECT id FROM t WHERE id = ANY (SELECT amount FROM t)",
    "SELECT code::int FROM t WHERE tenant = 'mine'",
    "SELECT CAST(note AS int) FROM t WHERE id > 2",
    "SELECT * FROM (SELECT 1 / amount AS x FROM t) WHERE x > 100",
    "SELECT sum(1 / amount) FROM t WHERE id > 2",
    "SELECT coalesce(nullif(amount, 0), 1 / 0) FROM t",
    "SELECT * FROM t TABLESAMPLE BERNOULLI (50) REPEATABLE (1)",
    "SELECT json_agg(t) FROM t",
    "SELECT count(t), count(DISTINCT t), jsonb_agg(t.*) FILTER (WHERE 1 / amount > 0) FROM t",
    "SELECT *, to_jsonb(t) ->> 'note' FROM t ORDER BY id",
    "SELECT a.id, to_json(b), count(b) OVER () FROM t a LEFT JOIN t b ON a.id = b.id - 2 ORDER BY a.id",
    "SELECT jsonb_path_query(to_jsonb(t), '$.* ? (@ == \"secret\")') FROM t",
    "SELECT r.note FROM t, jsonb_to_record(to_jsonb(t)) AS r (note text, amount int) ORDER BY 1",
];

fn both(masks: &[(&str, Mask)], threads: usize) -> (Folder, Folder, RestrictedDatabase, RestrictedDatabase) {
    let whole = Folder::with(&[("t.csv", &format!("{HEAD}{HIDDEN}{SEEN}")), ("s.csv", "x\n1\n")]);
    let copy = Folder::with(&[("t.csv", &format!("{HEAD}{SEEN}")), ("s.csv", "x\n")]);
    let options = tidegate_engines::EngineOptions { threads, ..two_thread_options() };
    let engine = Engine::start(options).unwrap();
    let mine = || test_principal(&json!({"tenant": "mine"}));
    let limited = vec![policy("t", "tenant = :claims.tenant", masks), policy("s", "x > 1", &[])];
    let open = vec![policy("t", "TRUE", masks), policy("s", "TRUE", &[])];
    let limited = RestrictedDatabase::open(&whole.path(), &engine, limited, mine());
    let open = RestrictedDatabase::open(&copy.path(), &engine, open, mine());
    (whole, copy, limited, open)
}

#[tokio::test]
async fn hidden_rows_do_not_leak() {
    for threads in [1, 2] {
        let (_whole, _copy, limited, open) = both(&[], threads);
        for statement in STATEMENTS {
            assert_eq!(limited.query(statement).await, open.query(statement).await, "{statement}");
        }
    }
}

#[tokio::test]
async fn masked_values_do_not_leak() {
    let masks = [("note", Mask::Hash), ("amount", Mask::Null), ("code", Mask::KeepLast(1))];
    let (_whole, _copy, limited, open) = both(&masks, 1);
    for statement in STATEMENTS {
        assert_eq!(limited.query(statement).await, open.query(statement).await, "{statement}");
    }
    assert_eq!(limited.rows("SELECT id FROM t WHERE note = 'alpha' OR amount = 5 OR code = '12'").await, "");
}

#[tokio::test]
async fn a_plan_shows_one_line_of_a_table() {
    let (_whole, _copy, limited, _open) = both(&[("note", Mask::Deny)], 2);
    let explain =
        limited.query("SELECT id, amount FROM t WHERE id > 1 AND 1 / amount > 0 LIMIT 5").await.explain.unwrap();
    insta::assert_snapshot!(explain);
    for word in ["mine", ".csv", "DataSource", "rows=", "bytes", "note", "Repartition"] {
        assert!(!explain.contains(word), "{word} in {explain}");
    }
}
