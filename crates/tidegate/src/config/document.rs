//! A YAML file as a tree of values, with the place of each in the text.
//!
//! Types come later: the tree is checked against the schema of the configuration, and every complaint is told
//! with line and column. Variables are put in after parsing, so that nothing they hold is ever read as YAML.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use saphyr_parser::Parser;
use serde_json::{Map, Value};

use super::problem::{ConfigProblem, SourcePosition};
use super::renamed_keys;
use super::variables::{ExpandedText, VariableResolver, VariableValue};
use super::yaml_tree::{YamlContent, YamlNode, YamlTreeBuilder};

/// Longer files are refused.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A YAML file.
#[derive(Debug)]
pub(crate) struct Document {
    /// The file.
    pub(crate) path: PathBuf,
    /// All that it says.
    pub(crate) value: Value,
    /// Where each value stands, by its path (`tools[0].sql`).
    positions: BTreeMap<String, SourcePosition>,
    /// Values that hold variables: what a variable holds is told to nobody.
    expanded: BTreeMap<String, ExpandedText>,
    /// Keys that were written with their old names.
    pub(super) deprecations: Vec<ConfigProblem>,
}

impl Document {
    /// What stands in no file.
    pub(crate) fn empty(path: &Path) -> Self {
        let (positions, expanded) = (BTreeMap::new(), BTreeMap::new());
        Self { path: path.to_owned(), value: Value::Null, positions, expanded, deprecations: Vec::new() }
    }

    /// Reads the file at `path`.
    pub(crate) fn read(path: &Path, variables: &VariableResolver<'_>) -> Result<Self, Vec<ConfigProblem>> {
        let failed = |error: std::io::Error| vec![ConfigProblem::new("", format!("cannot be read: {error}"))];
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if metadata.len() > FILE_BYTES_MAX {
            return Err(vec![ConfigProblem::new("", format!("is larger than {FILE_BYTES_MAX} bytes"))]);
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        // Some editors begin a file with a mark of its byte order.
        Self::parse(path, text.strip_prefix('\u{feff}').unwrap_or(&text), variables)
    }

    /// Reads `text`, which stands in the file at `path`.
    pub(crate) fn parse(path: &Path, text: &str, variables: &VariableResolver<'_>) -> Result<Self, Vec<ConfigProblem>> {
        let mut builder = YamlTreeBuilder::default();
        for event in Parser::new_from_str(text) {
            match event {
                Ok((event, span)) => builder.on_event(&event, span)?,
                Err(error) => {
                    let place = SourcePosition { line: error.marker().line(), column: error.marker().col() + 1 };
                    return Err(vec![ConfigProblem::at_position(place, format!("is no YAML: {}", error.info()))]);
                }
            }
        }
        let root = builder.root.unwrap_or(YamlNode {
            position: SourcePosition { line: 1, column: 1 },
            kind: YamlContent::Plain(String::new()),
        });
        let mut flat = ValueBuilder {
            positions: BTreeMap::new(),
            expanded: BTreeMap::new(),
            problems: Vec::new(),
            deprecations: Vec::new(),
            parents: Vec::new(),
            variables,
        };
        // An empty file says nothing, which is a configuration too.
        let value = match flat.build_value(&root, String::new()) {
            Value::Null => Value::Object(Map::new()),
            value => value,
        };
        if flat.problems.is_empty() {
            let ValueBuilder { positions, expanded, deprecations, .. } = flat;
            Ok(Self { path: path.to_owned(), value, positions, expanded, deprecations })
        } else {
            Err(flat.problems)
        }
    }

    /// Where the value at `path` stands, or the nearest value around it that is in the file.
    pub(crate) fn position(&self, path: &str) -> Option<SourcePosition> {
        let mut path = path;
        loop {
            if let Some(place) = self.positions.get(path) {
                return Some(*place);
            }
            if path.is_empty() {
                return None;
            }
            path = &path[..path.rfind(['.', '[']).unwrap_or(0)];
        }
    }

    /// The value at `path` as it was written, if it holds variables.
    pub(crate) fn source_text(&self, path: &str) -> Option<&str> {
        self.expanded.get(path).map(|variable| variable.source_text.as_str())
    }

    /// The value at `path` as a template in which braces that variables hold mean nothing, if it holds any.
    pub(crate) fn template(&self, path: &str) -> Option<&str> {
        self.expanded.get(path).map(|variable| variable.template.as_str())
    }

    /// `text` as it may be told: with the names of variables for what they hold.
    pub(crate) fn redact(&self, text: &str) -> String {
        let held = self.expanded.values().flat_map(|variable| &variable.values);
        held.fold(text.to_owned(), |text, held| held.redact_in(&text))
    }

    /// What the variables of the value at `path`, and of all values in it, hold.
    pub(crate) fn secret_values_within(&self, path: &str) -> impl Iterator<Item = &str> {
        let within = self.expanded.range(path.to_owned()..).take_while(move |(other, _)| other.starts_with(path));
        let within = within.filter(move |(other, _)| is_within(other, path));
        within.flat_map(|(_, variable)| variable.values.iter().map(VariableValue::value))
    }

    /// The nearest value at or around `path` that holds variables, as it was written.
    pub(crate) fn enclosing_source_text(&self, path: &str) -> Option<&str> {
        let mut around = self.expanded.iter().filter(|(other, _)| is_within(path, other));
        around.next_back().map(|(_, variable)| variable.source_text.as_str())
    }
}

/// `file:line:column: path: message`, one problem after the other in the order of the file.
pub(crate) fn render_report(problems: &[ConfigProblem], file: &Path, document: Option<&Document>) -> String {
    let place = |problem: &ConfigProblem| problem.position.or_else(|| document?.position(&problem.path));
    let mut sorted: Vec<&ConfigProblem> = problems.iter().collect();
    sorted.sort_by_key(|problem| place(problem));
    let mut text = String::new();
    for problem in sorted {
        let _ = write!(text, "{}", file.display());
        if let Some(SourcePosition { line, column }) = place(problem) {
            let _ = write!(text, ":{line}:{column}");
        }
        // A name may hold any character; a line stays one.
        let path = problem.path.replace('\n', "\\n").replace('\r', "\\r");
        let path = if path.is_empty() { path } else { format!("{path}: ") };
        let message = document.map_or_else(|| problem.message.clone(), |document| document.redact(&problem.message));
        // A message of several lines stays together.
        let _ = writeln!(text, ": {path}{}", message.replace('\n', "\n    "));
    }
    text
}

/// Whether `path` is the path `around`, or is below it.
fn is_within(path: &str, around: &str) -> bool {
    path.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', ' ']))
}

/// Makes values out of nodes and notes their places.
struct ValueBuilder<'a> {
    positions: BTreeMap<String, SourcePosition>,
    expanded: BTreeMap<String, ExpandedText>,
    problems: Vec<ConfigProblem>,
    deprecations: Vec<ConfigProblem>,
    /// The keys around the value, `[]` for an item of a list.
    parents: Vec<&'a str>,
    variables: &'a VariableResolver<'a>,
}

impl<'a> ValueBuilder<'a> {
    fn build_value(&mut self, node: &'a YamlNode, path: String) -> Value {
        self.positions.entry(path.clone()).or_insert(node.position);
        match &node.kind {
            YamlContent::Plain(text) => self.expand_scalar(text, true, node.position, path),
            YamlContent::Text(text) => self.expand_scalar(text, false, node.position, path),
            YamlContent::List(items) => {
                self.parents.push("[]");
                let item = |(index, item)| self.build_value(item, format!("{path}[{index}]"));
                let values = items.iter().enumerate().map(item).collect();
                self.parents.pop();
                Value::Array(values)
            }
            YamlContent::Map(members) => {
                let mut object = Map::new();
                for (name, place, node) in members {
                    let name = self.current_name(name, *place, members);
                    let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                    self.positions.insert(path.clone(), *place);
                    self.parents.push(name);
                    object.insert(name.to_owned(), self.build_value(node, path));
                    self.parents.pop();
                }
                Value::Object(object)
            }
        }
    }

    /// The name of the key `written` today, with a warning if that is another one.
    fn current_name(
        &mut self,
        written: &'a str,
        position: SourcePosition,
        members: &[(String, SourcePosition, YamlNode)],
    ) -> &'a str {
        let Some(new) = renamed_keys::new_name(&self.parents, written) else { return written };
        if members.iter().any(|(name, _, _)| name == new) {
            let message = format!("{written:?} is the old name of {new:?}, which is set too; remove {written:?}");
            self.problems.push(ConfigProblem::at_position(position, message));
            return written;
        }
        let message = format!("{written:?} is deprecated; write {new:?}");
        self.deprecations.push(ConfigProblem::at_position(position, message));
        new
    }

    fn expand_scalar(&mut self, text: &str, is_plain: bool, place: SourcePosition, path: String) -> Value {
        match self.variables.expand(text) {
            Ok(None) if is_plain => parse_plain_scalar(text),
            Ok(None) => Value::from(text),
            // What a variable holds is text, whatever it looks like.
            Ok(Some(filled)) => {
                let value = Value::from(filled.text.as_str());
                self.expanded.insert(path, filled);
                value
            }
            Err(message) => {
                self.problems.push(ConfigProblem::at_position(place, message));
                Value::Null
            }
        }
    }
}

/// A word without quotes, by the core schema of YAML 1.2.
fn parse_plain_scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let looks_like_a_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    if !looks_like_a_number {
        return Value::from(text);
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Value::from(integer);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => {
            serde_json::Number::from_f64(number).map_or(Value::from(text), Value::Number)
        }
        _ => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Document, Vec<ConfigProblem>> {
        Document::parse(Path::new("/x.yaml"), text, &VariableResolver::new(Path::new("/"), |_| None))
    }

    #[test]
    fn scalars_have_the_types_of_the_core_schema() {
        let document = parse("[1, -2.5, true, null, ~, '1', no, 0x1f, 1e400, 2013-01-01, .5]").unwrap();
        let expected = serde_json::json!([1, -2.5, true, null, null, "1", "no", "0x1f", "1e400", "2013-01-01", 0.5]);
        assert_eq!(document.value, expected);
    }

    #[test]
    fn places_are_found_by_path() {
        let document = parse("a:\n  - b: 1\n    c: {d: 2}\n").unwrap();
        let place = |path: &str| document.position(path).map(|place| (place.line, place.column));
        assert_eq!((place("a"), place("a[0].c"), place("a[0].c.d")), (Some((1, 1)), Some((3, 5)), Some((3, 9))));
        assert_eq!(place("a[0].nothing.at_all"), place("a[0]"), "the nearest around it");
    }

    #[test]
    fn alias_expansion_is_bounded() {
        let document = parse("a: &x [1, 2]\nb: *x\n").unwrap();
        assert_eq!(document.value["b"], serde_json::json!([1, 2]));
        let bomb: String = (1..12)
            .map(|level| format!("l{level}: &l{level} [{}]\n", vec![format!("*l{}", level - 1); 10].join(", ")))
            .collect();
        let problems = parse(&format!("l0: &l0 [x]\n{bomb}")).unwrap_err();
        assert!(problems[0].message.contains("larger than"), "{problems:?}");
        let long = format!("l: &l {}\nall: [{}]\n", "x".repeat(1 << 20), vec!["*l"; 20].join(", "));
        assert!(parse(&long).unwrap_err()[0].message.contains("larger than 16777216 bytes"));
        let chain: String = (1..100).map(|level| format!("l{level}: &l{level} [*l{}]\n", level - 1)).collect();
        assert_eq!(parse(&format!("l0: &l0 x\n{chain}")).unwrap_err()[0].message, "is nested too deeply");
        let many = "- [1, 2, 3, [4, [5]]]\n".repeat(15_000);
        assert!(parse(&many).is_ok(), "a long honest file is taken");
        assert!(parse(&"[".repeat(100)).is_err());
    }
}
