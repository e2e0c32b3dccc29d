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
        match self.choose(8) {
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
            _ => {
                let (x, y) = (self.expression(of, 2), self.expression(of, 1));
                let word = ["UNION", "EXCEPT", "INTERSECT", "UNION ALL"][self.choose(4)];
                format!("SELECT {x} AS x FROM t_types {word} SELECT {y} FROM t_types WHERE id < 20")
            }
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
