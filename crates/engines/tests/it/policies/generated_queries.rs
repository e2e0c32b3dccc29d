//! Random queries over a table `t` (and `u`, which is like it) with columns `id`, `tenant`, `amount`, `note` and
//! `flag`. Many of them fail.

use proptest::prelude::*;

fn column(of_numbers: bool) -> BoxedStrategy<String> {
    let names: &'static [&'static str] = if of_numbers { &["id", "amount"] } else { &["tenant", "note"] };
    prop::sample::select(names).prop_map(str::to_owned).boxed()
}

fn number(depth: u32) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        4 => column(true),
        1 => (-3_i64..12).prop_map(|value| format!("({value})")),
        1 => Just("9223372036854775807".to_owned()),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let inner = || number(depth - 1);
    prop_oneof![
        3 => leaf,
        3 => (inner(), prop::sample::select(vec!["+", "-", "*", "/", "%"]), inner())
            .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
        1 => text(depth - 1).prop_map(|text| format!("CAST({text} AS BIGINT)")),
        1 => text(depth - 1).prop_map(|text| format!("length({text})")),
        1 => (condition(depth - 1), inner(), inner())
            .prop_map(|(condition, one, other)| format!("CASE WHEN {condition} THEN {one} ELSE {other} END")),
        1 => inner().prop_map(|number| format!("abs({number})")),
        1 => inner().prop_map(|number| format!("(SELECT max(v.id) FROM u v WHERE v.amount > {number})")),
        1 => inner().prop_map(|number| format!("nullif({number}, 0)")),
    ]
    .boxed()
}

fn text(depth: u32) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        4 => column(false),
        1 => prop::sample::select(vec!["'a'", "'7'", "'north'", "''"]).prop_map(str::to_owned),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let inner = || text(depth - 1);
    prop_oneof![
        3 => leaf,
        1 => inner().prop_map(|text| format!("upper({text})")),
        1 => (inner(), inner()).prop_map(|(one, other)| format!("({one} || {other})")),
        1 => number(depth - 1).prop_map(|number| format!("CAST({number} AS VARCHAR)")),
        1 => (inner(), number(depth - 1)).prop_map(|(text, number)| format!("substr({text}, {number})")),
    ]
    .boxed()
}

fn condition(depth: u32) -> BoxedStrategy<String> {
    let operator = || prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let plain = prop_oneof![
        2 => (column(true), operator(), -3_i64..12).prop_map(|(left, by, right)| format!("{left} {by} {right}")),
        2 => (column(false), operator()).prop_map(|(left, by)| format!("{left} {by} 'north'")),
        1 => column(false).prop_map(|column| format!("{column} LIKE '%a%'")),
        1 => column(true).prop_map(|column| format!("{column} IS NULL")),
        1 => column(true).prop_map(|column| format!("{column} IN (1, 2, 3, 5, 8)")),
        1 => Just("flag".to_owned()),
    ];
    if depth == 0 {
        return plain.boxed();
    }
    let inner = || condition(depth - 1);
    prop_oneof![
        4 => plain,
        2 => (number(depth - 1), operator(), number(depth - 1)).prop_map(|(left, by, right)| format!("{left} {by} {right}")),
        1 => (text(depth - 1), operator(), text(depth - 1)).prop_map(|(left, by, right)| format!("{left} {by} {right}")),
        1 => (inner(), inner()).prop_map(|(one, other)| format!("({one} AND {other})")),
        1 => (inner(), inner()).prop_map(|(one, other)| format!("({one} OR {other})")),
        1 => inner().prop_map(|condition| format!("NOT ({condition})")),
        1 => number(depth - 1).prop_map(|number| format!("{number} IN (SELECT v.amount FROM u v)")),
        1 => operator().prop_map(|by| format!("EXISTS (SELECT 1 FROM u v WHERE v.id {by} t.amount)")),
    ]
    .boxed()
}

/// One statement. Its row order is deterministic.
pub(super) fn generate_query() -> BoxedStrategy<String> {
    let ends = prop_oneof![
        3 => Just(String::new()),
        1 => Just(" LIMIT 3".to_owned()),
        1 => Just(" LIMIT 2 OFFSET 1".to_owned()),
    ];
    let function = prop::sample::select(vec!["sum", "min", "max", "count", "median", "count(DISTINCT"]);
    let aggregate = (function, number(1)).prop_map(|(function, of)| match function {
        "count(DISTINCT" => format!("count(DISTINCT {of})"),
        function => format!("{function}({of})"),
    });
    prop_oneof![
        4 => (number(2), text(2), condition(2), ends.clone())
            .prop_map(|(one, two, by, ends)| format!("SELECT {one} AS a, {two} AS b FROM t WHERE {by} ORDER BY id{ends}")),
        1 => Just("SELECT * FROM t".to_owned()),
        1 => (condition(1), ends.clone()).prop_map(|(by, ends)| format!("SELECT * FROM t WHERE {by} ORDER BY 1{ends}")),
        3 => (text(1), aggregate.clone(), condition(1)).prop_map(|(by, subject, having)| {
            format!("SELECT {by} AS k, {subject} AS x, count(*) AS n FROM t WHERE {having} GROUP BY 1 ORDER BY 1, 2, 3")
        }),
        2 => (aggregate, condition(2)).prop_map(|(subject, by)| format!("SELECT {subject}, count(*) FROM t WHERE {by}")),
        1 => Just("SELECT count(*), min(id), max(id) FROM t".to_owned()),
        2 => (number(1), condition(1)).prop_map(|(key, by)| {
            format!("SELECT t.id, w.id FROM t JOIN (SELECT id, amount AS other FROM u) w ON w.other = {key} WHERE {by} ORDER BY 1, 2")
        }.replace("= id", "= t.id").replace("WHERE id", "WHERE t.id")),
        1 => number(1).prop_map(|by| {
            format!("SELECT id, row_number() OVER (PARTITION BY tenant ORDER BY {by}, id) AS r, lag(note) OVER (ORDER BY id) FROM t ORDER BY id")
        }),
        1 => (condition(1), number(1))
            .prop_map(|(by, subject)| format!("WITH x AS (SELECT * FROM t WHERE {by}) SELECT {subject} AS a FROM x AS t ORDER BY 1")),
        1 => (text(1), text(1)).prop_map(|(one, two)| format!("SELECT {one} FROM t UNION SELECT {two} FROM u ORDER BY 1")),
        1 => Just("SELECT no_such_column FROM t".to_owned()),
    ]
    .boxed()
}
