//! Limits for expensive patterns, in any syntax; operators with a limit otherwise behave as without one.

use crate::support::{Folder, TestNode, two_thread_options, with_timeout};

fn node() -> (Folder, TestNode) {
    let folder = Folder::with(&[(
        "words.csv",
        "id,word,pattern\n1,timber,t_m%\n2,Tim,%i%\n3,a.b,a.b\n4,,x\n5,axb,a.b\n6,tim,\n",
    )]);
    let node = folder.database_with(two_thread_options());
    (folder, node)
}

#[tokio::test]
async fn a_large_pattern_of_a_long_text_is_refused() {
    let (_folder, node) = node();
    let many = "(?:[ab]?){20000}[cd]";
    let like = "%a".repeat(20_000);
    let text = "repeat('ab', 25000)";
    let column = "(SELECT repeat('ab', 25000 + 0 * id) AS t FROM words LIMIT 1)";
    for sql in [
        format!("SELECT regexp_like({text}, '{many}')"),
        format!("SELECT {text} ~ '{many}'"),
        format!("SELECT {text} !~* '{many}'"),
        format!("SELECT {text} SIMILAR TO '([ab]?){{200}}{{100}}[cd]'"),
        format!("SELECT {text} LIKE '{like}b'"),
        format!("SELECT t NOT ILIKE '{like}b' FROM {column}"),
        format!("SELECT t ~~ '{like}b' FROM {column}"),
        format!("SELECT t LIKE repeat('%a', 20000) || id FROM (SELECT id, {text} AS t FROM words)"),
        format!("SELECT t ~ ('(?:[ab]?){{' || (19999 + 0 * length(t)) || '}}[cd]') FROM {column}"),
        format!("SELECT count(*) FROM {column} WHERE t ~ '{many}'"),
        format!("SELECT t LIKE '{like}b' ESCAPE '\\' FROM {column}"),
        format!("SELECT regexp_like(t, '{many}#(', 'x') FROM {column}"),
        r"SELECT t ~ repeat('\w', 5000000) FROM (SELECT word AS t FROM words)".to_owned(),
        format!("SELECT regexp_match(t, '{many}') FROM {column}"),
        format!("SELECT regexp_count(t, '{many}') FROM {column}"),
        format!("SELECT regexp_replace(t, '{many}', '') FROM {column}"),
        format!("SELECT regexp_instr(t, '{many}') FROM {column}"),
    ] {
        let refusal = with_timeout(&sql, node.refusal(&sql)).await;
        let visible: String = sql.chars().take(80).collect();
        assert!(refusal.starts_with("too_large: ") && refusal.contains(" steps"), "{visible}: {refusal}");
    }
}

#[tokio::test]
async fn column_patterns_and_large_patterns_match_correctly() {
    let (_folder, node) = node();
    let rows = async |sql: &str| with_timeout(sql, node.rows(sql)).await;
    assert_eq!(rows("SELECT id FROM words WHERE word LIKE pattern ORDER BY id").await, "1\n2\n3");
    assert_eq!(rows("SELECT id FROM words WHERE word ILIKE pattern ORDER BY id").await, "1\n2\n3");
    assert_eq!(rows("SELECT id FROM words WHERE word NOT LIKE pattern ORDER BY id").await, "5");
    assert_eq!(rows("SELECT id FROM words WHERE word ~ pattern ORDER BY id").await, "3\n5");
    assert_eq!(rows("SELECT id FROM words WHERE word SIMILAR TO pattern ORDER BY id").await, "1\n2\n3");
    assert_eq!(rows("SELECT id FROM words WHERE word ~* ('^TIM' || substr(pattern, 1, 0)) ORDER BY id").await, "1\n2");
    assert_eq!(rows(r"SELECT id FROM words WHERE word ~ '^\w+$' AND word !~ '^\w{4,}$' ORDER BY id").await, "2\n5\n6");
    assert_eq!(
        rows("SELECT word || pattern FROM words WHERE id IN (1, 4, 5) ORDER BY id").await,
        "timbert_m%\nnull\naxba.b"
    );
}

/// A column without an alias has the same name with and without a limit.
#[tokio::test]
async fn columns_keep_their_names() {
    let (_folder, node) = node();
    let sql = r"SELECT word LIKE pattern, word NOT ILIKE '%tim%', word ~ '\w+\w+\w+', word SIMILAR TO pattern, word || pattern, word || '!',
        array_agg(id) OVER (PARTITION BY word), lag(id) OVER (ORDER BY id) FROM words";
    let schema = node.plan(sql).await.unwrap().schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    insta::assert_snapshot!(names.join("\n"), @r#"
    ?column?
    ?column?
    ?column?
    ?column?
    ?column?
    ?column?
    array_agg
    lag
    "#);
}

#[tokio::test]
async fn refuses_repeated_concatenation() {
    let (_folder, node) = node();
    let mut sql = "SELECT repeat(word, 10000) AS a, id FROM words".to_owned();
    for _ in 0..13 {
        sql = format!("SELECT a || a AS a, id FROM ({sql} ORDER BY id LIMIT 100)");
    }
    let refusal = with_timeout("joining", node.refusal(&format!("SELECT max(length(a)) FROM ({sql})"))).await;
    insta::assert_snapshot!(refusal, @r"
    too_large: the result of || exceeds the limit of 256 MiB
    Request fewer or shorter values.
    ");
    let nested = (0..12)
        .fold("repeat(word, 10000)".to_owned(), |inner, _| format!("encode(convert_to({inner}, 'UTF8'), 'hex')"));
    let refusal = with_timeout("encoding", node.refusal(&format!("SELECT max(length({nested})) FROM words"))).await;
    insta::assert_snapshot!(refusal, @r"
    too_large: the result of encode() exceeds the limit of 64 MiB
    Request fewer or shorter values.
    ");
}
