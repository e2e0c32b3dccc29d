//! Full-text queries: parsing, errors, and which rows match, beside a naive search.

use arrow::buffer::BooleanBuffer;
use proptest::prelude::*;
use tidegate_telemetry::logs::{ConditionMatcher, LogCondition, QueryNode, SearchColumns, TextQuery, display_value};

use super::fixture::{ColumnTypes, FIELDS, batch, column_types, rows, texts};

/// The parsed query in prefix notation.
fn parsed(text: &str) -> String {
    fn render(node: &QueryNode) -> String {
        let all = |name: &str, parts: &[QueryNode]| {
            format!("({name} {})", parts.iter().map(render).collect::<Vec<_>>().join(" "))
        };
        match node {
            QueryNode::Term(term) => {
                let field = term.field.as_ref().map(|field| format!("{field}=")).unwrap_or_default();
                format!("{field}{}", term.pattern.parts().join("*"))
            }
            QueryNode::Not(inner) => format!("(not {})", render(inner)),
            QueryNode::And(parts) => all("and", parts),
            QueryNode::Or(parts) => all("or", parts),
        }
    }
    match TextQuery::parse(text) {
        Ok(query) => render(query.root()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn queries_are_parsed() {
    assert_eq!(parsed("timeout"), "timeout");
    assert_eq!(parsed("a b | c OR d"), "(or (and a b) c d)");
    assert_eq!(parsed("a AND b and"), "(and a b and)");
    assert_eq!(parsed("\"two words\" !x -y NOT z"), "(and two words (not x) (not y) (not z))");
    assert_eq!(parsed("(a|b) level:error"), "(and (or a b) level=error)");
    assert_eq!(parsed("level:\"a b\" \"my field\":x"), "(and level=a b my field=x)");
    assert_eq!(parsed("conn*refused level:e*"), "(and conn*refused level=e*)");
    assert_eq!(parsed("user - pass"), "(and user - pass)");
    assert_eq!(parsed("http://x 12:30:05 a::b"), "(and http://x 12:30:05 a::b)");
    assert_eq!(parsed(r#"a\*b \"c "d\"e\\""#), r#"(and a*b "c d"e\)"#);
    assert_eq!(parsed("  "), "(and )");
    assert_eq!(parsed("ORDER NOTE"), "(and ORDER NOTE)");
    assert_eq!(parsed("größe:5 | ä"), "(or größe=5 ä)");
}

#[test]
fn errors_have_positions() {
    assert_eq!(parsed("a \"b"), "the quote at character 3 is not closed");
    assert_eq!(
        parsed("ä (b | c"),
        "the parenthesis at character 3 has no partner; put text with parentheses in quotes"
    );
    assert_eq!(parsed("a b)"), "the parenthesis at character 4 has no partner; put text with parentheses in quotes");
    assert_eq!(parsed("a |"), "| at character 3 needs a term after it; put it in quotes if it is text");
    assert_eq!(parsed("OR a"), "OR at character 1 needs a term before it; put it in quotes if it is text");
    assert_eq!(parsed("a !"), "! at character 3 needs a term after it; put it in quotes if it is text");
    assert_eq!(
        parsed("a level: b"),
        "the field \"level\" at character 3 has no value; write level:value, or level:- for a missing one"
    );
    assert!(parsed(&"(".repeat(40)).contains("more than 32 deep at character 33"));
    assert!(parsed(&"!".repeat(40)).contains("more than 32 deep"));
    assert!(parsed(&"a ".repeat(65)).contains("more than 64 terms, from character 129 on"));
    assert!(parsed(&"a".repeat(5_000)).contains("5000 bytes"));
    assert!(parsed("()").contains("needs a term in it"));
}

#[test]
fn conditions_name_columns() {
    let columns =
        SearchColumns { message: vec!["body".to_owned()], further: vec!["host".to_owned()], is_case_sensitive: false };
    let condition = |text: &str| TextQuery::parse(text).unwrap().to_condition(&columns);
    let LogCondition::Or(parts) = condition("x") else { panic!("a word is searched in both columns") };
    assert!(matches!(&parts[..], [LogCondition::Contains { .. }, LogCondition::Contains { .. }]));
    assert!(matches!(condition("body:x"), LogCondition::Contains { column, .. } if column == "body"));
    assert!(matches!(condition("host:x"), LogCondition::Equals { column, .. } if column == "host"));
    assert!(matches!(condition("host:-"), LogCondition::Missing { column } if column == "host"));
    assert!(matches!(condition("host:\"-\""), LogCondition::Equals { .. }));
    assert!(condition("").is_always_true());
    let query = TextQuery::parse("a (host:x | !level:y)").unwrap();
    let fields: Vec<_> = query.field_terms().iter().map(|term| (term.field.clone().unwrap(), term.position)).collect();
    assert_eq!(fields, [("host".to_owned(), 4), ("level".to_owned(), 14)]);
}

fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Whether `text` matches the parts with any characters between them, by trying every split.
fn matches_parts(parts: &[String], text: &str) -> bool {
    let [first, rest @ ..] = parts else { return text.is_empty() };
    let Some(after) = text.strip_prefix(first.as_str()) else { return false };
    match rest {
        [] => after.is_empty(),
        _ => after
            .char_indices()
            .map(|(index, _)| index)
            .chain([after.len()])
            .any(|index| matches_parts(rest, &after[index..])),
    }
}

fn holds(condition: &LogCondition, value: &dyn Fn(&str) -> String) -> bool {
    let compare = |column: &str, parts: Vec<String>, is_case_sensitive: bool| {
        let text = value(column);
        if text == "-" {
            return false;
        }
        if is_case_sensitive {
            return matches_parts(&parts, &text);
        }
        matches_parts(&parts.iter().map(|part| fold(part)).collect::<Vec<_>>(), &fold(&text))
    };
    match condition {
        LogCondition::Contains { column, pattern, is_case_sensitive } => {
            let mut parts = vec![String::new()];
            parts.extend(pattern.parts().iter().cloned());
            parts.push(String::new());
            compare(column, parts, *is_case_sensitive)
        }
        LogCondition::Equals { column, pattern, is_case_sensitive } => {
            compare(column, pattern.parts().to_vec(), *is_case_sensitive)
        }
        LogCondition::Missing { column } => value(column) == "-",
        LogCondition::Not(inner) => !holds(inner, value),
        LogCondition::And(parts) => parts.iter().all(|part| holds(part, value)),
        LogCondition::Or(parts) => parts.iter().any(|part| holds(part, value)),
    }
}

fn query_texts() -> impl Strategy<Value = String> {
    let word =
        prop_oneof!["[aAkKsS]{1,3}", "[aksßé]{1,2}[*][aksS]{0,2}", texts().prop_map(|text| format!("\"{text}\""))];
    let field = prop::sample::select(FIELDS.to_vec());
    let value = prop_oneof!["[a-z0-9-]{1,3}", "info|warn|err*|true|-|1|1[.]0|0[.]5", Just("*".to_owned())];
    let term = prop_oneof![2 => word, 1 => (field, value).prop_map(|(field, value)| format!("{field}:{value}"))];
    term.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|query| format!("!({query})")),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one} {other})")),
            (inner.clone(), inner).prop_map(|(one, other)| format!("({one} | {other})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn matching_rows_are_those_of_a_naive_search(
        rows in rows(40),
        types in column_types(),
        query in query_texts(),
        further in any::<bool>(),
        is_case_sensitive in any::<bool>(),
        offset in any::<prop::sample::Index>(),
        chosen in prop::collection::vec(any::<bool>(), 40),
    ) {
        let whole = batch(&rows, &types);
        let offset = offset.index(rows.len() + 1);
        let batch = whole.slice(offset, rows.len() - offset);
        let further = if further { FIELDS[1..].iter().map(|name| (*name).to_owned()).collect() } else { Vec::new() };
        let columns = SearchColumns { message: vec!["message".to_owned()], further, is_case_sensitive };
        let condition = TextQuery::parse(&query).unwrap().to_condition(&columns);
        let candidates = BooleanBuffer::collect_bool(batch.num_rows(), |row| chosen[row]);
        let found = ConditionMatcher::new(&condition).matching_rows(&batch, &candidates);
        for row in 0..batch.num_rows() {
            let value = |column: &str| {
                batch.column_by_name(column).map_or_else(|| "-".to_owned(), |array| display_value(array.as_ref(), row))
            };
            let expected = chosen[row] && holds(&condition, &value);
            prop_assert_eq!(found.value(row), expected, "{} row {} {:?}", query, row, rows[offset + row]);
        }
    }

    #[test]
    fn no_query_panics(text in "[a\"()|!:* \\\\ORNTäb-]{0,30}") {
        let _ = TextQuery::parse(&text).map(|query| query.to_condition(&SearchColumns::default()));
    }
}

#[test]
fn a_word_is_found_across_many_rows() {
    let types = ColumnTypes {
        time: arrow::datatypes::DataType::Int64,
        text: arrow::datatypes::DataType::Utf8,
        code: arrow::datatypes::DataType::Int64,
        seen: arrow::datatypes::DataType::Timestamp(arrow::datatypes::TimeUnit::Second, None),
    };
    let row = |message: &str| super::fixture::LogRow {
        time: Some(0),
        message: Some(message.to_owned()),
        level: None,
        code: None,
        ratio: None,
        flag: None,
        price: None,
        seen: None,
    };
    // A match must not cross the end of a row, also where it hides one that begins in between.
    let rows = [row("aba"), row(""), row("baab"), row("ABAAB"), row("aa")];
    let batch = batch(&rows, &types);
    let columns = SearchColumns { message: vec!["message".to_owned()], ..SearchColumns::default() };
    let found = |query: &str| -> Vec<usize> {
        let condition = TextQuery::parse(query).unwrap().to_condition(&columns);
        ConditionMatcher::new(&condition).matching_rows(&batch, &BooleanBuffer::new_set(5)).set_indices().collect()
    };
    assert_eq!(found("abaab"), [3]);
    assert_eq!(found("ba"), [0, 2, 3]);
    assert_eq!(found("b*b"), [2, 3]);
    assert_eq!(found("aa"), [2, 3, 4]);
}
