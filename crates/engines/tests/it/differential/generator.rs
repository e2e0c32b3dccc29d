//! Statements made of the forms in `tests/differential/signatures.txt`, from a list of choices that can be shrunk.

use std::collections::HashMap;
use std::fs;

use super::corpus;

/// How deep expressions are nested.
const DEPTH_MAX: usize = 3;

/// The forms of expressions, by the type of their result.
pub(crate) struct Grammar {
    forms: HashMap<String, Vec<String>>,
    leaves: HashMap<String, Vec<String>>,
}

impl Grammar {
    pub(crate) fn read() -> Self {
        let text = fs::read_to_string(corpus::folder().join("signatures.txt")).unwrap();
        let (mut forms, mut leaves) = (HashMap::<String, Vec<String>>::new(), HashMap::new());
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (of, form) = line.split_once(": ").unwrap_or_else(|| panic!("signatures.txt: {line}"));
            match of.strip_prefix("leaf ") {
                Some(of) => drop(leaves.insert(of.to_owned(), form.split(" | ").map(str::to_owned).collect())),
                None => forms.entry(of.to_owned()).or_default().push(form.to_owned()),
            }
        }
        Self { forms, leaves }
    }

    /// The statement that `choices` make; where they end, the simplest is chosen.
    pub(crate) fn statement(&self, choices: &[u16]) -> String {
        let mut maker = StatementGenerator { grammar: self, choices: choices.iter() };
        maker.statement()
    }

    /// Each form once, with the first leaf of its arguments.
    pub(crate) fn each_form(&self) -> Vec<String> {
        let mut types: Vec<&String> = self.forms.keys().collect();
        types.sort();
        let maker = || StatementGenerator { grammar: self, choices: [].iter() };
        let expressions = types.iter().flat_map(|of| self.forms[*of].iter().map(move |form| (of.as_str(), form)));
        let statement = |(of, form): (&str, &String)| match of {
            "aggregate" => format!("SELECT {} AS x FROM t_types", maker().filled(form, 0)),
            _ => format!("SELECT id, {} AS x FROM t_types", maker().filled(form, 0)),
        };
        expressions.map(statement).collect()
    }
}

/// The types that a column of an answer may have.
const RESULTS: &[&str] = &[
    "int", "text", "num", "bool", "date", "ts", "tz", "double", "interval", "big", "texts", "ints", "json", "time",
    "bytes", "small",
];

/// Grouping sets over the keys `k` and `l`.
const GROUPING_SETS: &[&str] = &[
    "ROLLUP (k, l)",
    "CUBE (k, l)",
    "GROUPING SETS ((k), (l), ())",
    "GROUPING SETS ((k, l), ROLLUP (l))",
    "GROUPING SETS ((k), (k), (l))",
    "k, ROLLUP (l)",
    "ROLLUP (k), CUBE (l)",
];

/// What a subquery over `orders AS o` returns: aggregates without groups return a row even for no orders.
const SUBQUERY_RESULTS: &[&str] = &[
    "count(*)",
    "max(o.quantity)",
    "sum(o.quantity)",
    "sum(1)",
    "count(o.note) + 1",
    "coalesce(min(o.product_id), -1)",
    "sum(CASE WHEN o.quantity > 6 THEN 1 ELSE 0 END)",
];

/// How the orders of a subquery belong to a row of `t_types`, whose columns have other names than those of `orders`.
const LINKS: &[&str] =
    &["o.customer_id = id", "o.product_id = i", "o.quantity = si", "o.product_id % 7 = id % 7 AND o.quantity > si"];

/// Literals, which have the types that PostgreSQL gives them.
const LITERAL_AGGREGATES: &[&str] = &[
    "sum(1)",
    "sum(1) / 2",
    "avg(1)",
    "sum(2.5)",
    "count(1) / 2",
    "max(3) / 2",
    "max('x')",
    "sum(CASE WHEN {bool} THEN 1 ELSE 0 END)",
    "sum(CASE WHEN {bool} THEN 1 ELSE 0 END) / count(*)",
    "avg(CASE WHEN {bool} THEN 1 END)",
    "max(CASE WHEN {bool} THEN 1 ELSE 2.5 END)",
    "string_agg('x', ',')",
    "bool_and(true)",
];

/// Aggregates and windows that read the rows in the order of their subquery.
const OVER_SORTED_ROWS: &[&str] = &["array_agg(x)", "array_agg(id)", "string_agg(id::text, ',')", "json_agg(id)"];

struct StatementGenerator<'a> {
    grammar: &'a Grammar,
    choices: std::slice::Iter<'a, u16>,
}

impl StatementGenerator<'_> {
    fn choose(&mut self, count: usize) -> usize {
        self.choices.next().map_or(0, |choice| usize::from(*choice) % count)
    }

    fn statement(&mut self) -> String {
        let of = RESULTS[self.choose(RESULTS.len())];
        match self.choose(12) {
            0 | 1 => format!("SELECT id, {} AS x FROM t_types", self.expression(of, DEPTH_MAX)),
            2 => {
                let (x, condition) = (self.expression(of, 2), self.expression("bool", 2));
                format!("SELECT id, {x} AS x FROM t_types WHERE {condition}")
            }
            3 => {
                let (aggregate, key) = (self.form("aggregate", 2), self.expression(of, 1));
                format!("SELECT {key} AS k, {aggregate} AS x FROM t_types WHERE id <= 30 GROUP BY 1")
            }
            4 => format!("SELECT {} AS x, count(*) AS n FROM t_types", self.form("aggregate", 2)),
            5 => format!("SELECT id, {} AS x FROM t_types", self.form("window", 1)),
            6 => {
                let (x, direction) = (self.expression(of, 2), ["", " DESC", " NULLS FIRST"][self.choose(3)]);
                let key = if of == "json" { "id".to_owned() } else { format!("x{direction}, id") };
                format!("SELECT id, {x} AS x FROM t_types ORDER BY {key}")
            }
            7 => self.grouping_sets(),
            8 => self.correlated(),
            9 => self.literals_in_aggregates(),
            10 => self.sorted_subquery(of),
            _ => {
                let (x, y) = (self.expression(of, 2), self.expression(of, 1));
                let word = ["UNION", "EXCEPT", "INTERSECT", "UNION ALL"][self.choose(4)];
                format!("SELECT {x} AS x FROM t_types {word} SELECT {y} FROM t_types WHERE id < 20")
            }
        }
    }

    fn one_of(&mut self, texts: &[&'static str]) -> &'static str {
        texts[self.choose(texts.len())]
    }

    fn grouping_sets(&mut self) -> String {
        let (aggregate, sets) = (self.form("aggregate", 1), self.one_of(GROUPING_SETS));
        let having = self.one_of(&["", " HAVING grouping(k) = 0", " HAVING count(*) > 2", " HAVING l IS NULL"]);
        format!(
            "SELECT k, l, grouping(k, l) AS g, {aggregate} AS x \
             FROM (SELECT *, id % 2 AS k, id % 3 AS l FROM t_types) AS s WHERE id <= 30 GROUP BY {sets}{having}"
        )
    }

    /// Subqueries that depend on the row, also nested ones.
    fn correlated(&mut self) -> String {
        let (result, link, not) = (self.one_of(SUBQUERY_RESULTS), self.one_of(LINKS), self.one_of(&["", "NOT "]));
        let condition = match self.choose(2) {
            0 => String::new(),
            _ => format!(" AND {}", self.expression("bool", 1)),
        };
        let of_order = format!("SELECT {result} FROM orders AS o WHERE {link}{condition}");
        match self.choose(6) {
            0 => format!("SELECT id, ({of_order}) AS x FROM t_types"),
            1 => format!("SELECT id FROM t_types WHERE {not}EXISTS ({of_order})"),
            2 => format!("SELECT id FROM t_types WHERE id {not}IN ({of_order})"),
            3 => {
                let sets = self.one_of(&["()", "ROLLUP (o.status)", "CUBE (o.status)", "o.status"]);
                format!("SELECT id FROM t_types WHERE {not}EXISTS ({of_order} GROUP BY {sets})")
            }
            4 => {
                let inner = self.one_of(&["", "NOT "]);
                format!(
                    "SELECT id FROM t_types WHERE {not}EXISTS (SELECT 1 FROM customers AS c WHERE c.customer_id = id \
                     AND {inner}EXISTS (SELECT 1 FROM orders AS o WHERE o.customer_id = c.customer_id AND {link}{condition}))"
                )
            }
            _ => format!(
                "SELECT id, (SELECT count(*) FROM customers AS c WHERE c.customer_id > id \
                 AND (SELECT {result} FROM orders AS o WHERE o.customer_id = c.customer_id AND {link}) > 2) AS x FROM t_types"
            ),
        }
    }

    fn literals_in_aggregates(&mut self) -> String {
        let form = self.one_of(LITERAL_AGGREGATES);
        let (x, y) = (self.filled(form, 1), self.form("aggregate", 1));
        match self.choose(2) {
            0 => format!("SELECT {x} AS x, {y} AS y FROM t_types"),
            _ => format!("SELECT id % 3 AS k, {x} AS x, {y} AS y FROM t_types GROUP BY 1"),
        }
    }

    /// The order of a subquery is that in which an aggregate and LIMIT read it.
    fn sorted_subquery(&mut self, of: &str) -> String {
        let (x, direction) = (self.expression(of, 1), self.one_of(&["", " DESC"]));
        let limit = self.one_of(&["", " LIMIT 5", " OFFSET 3"]);
        let sorted = format!("SELECT id, {x} AS x FROM t_types ORDER BY id{direction}{limit}");
        let aggregate = self.one_of(OVER_SORTED_ROWS);
        match self.choose(4) {
            0 => format!("SELECT {aggregate} AS y FROM ({sorted}) AS s"),
            1 => format!("WITH s AS ({sorted}) SELECT {aggregate} AS y FROM s"),
            2 => format!("SELECT id, row_number() OVER () AS n, lag(id) OVER () AS l FROM ({sorted}) AS s"),
            _ => format!("SELECT id FROM ({sorted}) AS s LIMIT 3"),
        }
    }

    fn form(&mut self, of: &str, depth: usize) -> String {
        let forms = &self.grammar.forms[of];
        let form = forms[self.choose(forms.len())].clone();
        self.filled(&form, depth)
    }

    fn expression(&mut self, of: &str, depth: usize) -> String {
        let has_forms = self.grammar.forms.contains_key(of);
        // A leaf is the first choice, so that shrinking ends in leaves.
        if has_forms && depth > 0 && self.choose(4) > 0 {
            return self.form(of, depth - 1);
        }
        let leaves = self.grammar.leaves.get(of).unwrap_or_else(|| panic!("signatures.txt has no leaves of {of}"));
        leaves[self.choose(leaves.len())].clone()
    }

    /// `form` with an expression in place of each `{type}`; other braces stand for themselves.
    fn filled(&mut self, form: &str, depth: usize) -> String {
        let (mut text, mut rest) = (String::new(), form);
        while let Some(start) = rest.find('{') {
            text.push_str(&rest[..start]);
            rest = &rest[start + 1..];
            let end = rest.find('}');
            match end.filter(|end| self.grammar.leaves.contains_key(&rest[..*end])) {
                Some(end) => {
                    text.push_str(&self.expression(&rest[..end], depth));
                    rest = &rest[end + 1..];
                }
                None => text.push('{'),
            }
        }
        text + rest
    }
}
