//! A YAML file as a tree of values, each with its position in the text.
//!
//! Variables are expanded after parsing, so that their values are never read as YAML.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::includes::{self, FileMerger};
use super::problem::{ConfigProblem, ValuePosition};
use super::variables::{ExpandedText, VariableResolver, VariableValue};
use super::yaml_tree::{YamlContent, YamlNode, parse_document};

const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Bytes of the texts and paths of all values. A long key is in the path of each value below it.
const VALUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The same for a file that others write.
const DATA_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Document {
    /// The main file, then the included ones.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) value: Value,
    /// By the path of the value (`tools[0].sql`).
    positions: BTreeMap<String, ValuePosition>,
    /// The texts with variables, whose values are secret.
    expanded: BTreeMap<String, ExpandedText>,
}

impl Document {
    pub(crate) fn empty(path: &Path) -> Self {
        let (positions, expanded) = (BTreeMap::new(), BTreeMap::new());
        Self { files: vec![path.to_owned()], value: Value::Null, positions, expanded }
    }

    pub(crate) fn read(path: &Path, variables: &VariableResolver<'_>) -> Result<Self, Vec<ConfigProblem>> {
        Self::parse(path, &read_file(path)?, variables)
    }

    /// Parses the text of the file at `path`, and reads the files that it includes.
    pub(crate) fn parse(path: &Path, text: &str, variables: &VariableResolver<'_>) -> Result<Self, Vec<ConfigProblem>> {
        let mut root = parse_document(text, 0)?;
        let mut files = vec![path.to_owned()];
        files.extend(includes::included_files(&root, path, variables)?);
        let mut merger = FileMerger { files: &files, problems: Vec::new() };
        for (index, file) in files.iter().enumerate().skip(1) {
            match read_file(file).and_then(|text| parse_document(&text, index)) {
                Ok(added) => merger.merge(&mut root, added, ""),
                Err(unreadable) => merger.problems.extend(
                    unreadable.into_iter().map(|problem| ConfigProblem { file: Some(file.clone()), ..problem }),
                ),
            }
        }
        let problems = merger.problems;
        if problems.is_empty() { Self::build(files, &root, Some(variables)) } else { Err(problems) }
    }

    /// Parses the text of a file that others write: no variable is expanded, and no file is included.
    pub(crate) fn parse_data(path: &Path, text: &str) -> Result<Self, Vec<ConfigProblem>> {
        Self::build(vec![path.to_owned()], &parse_document(text, 0)?, None)
    }

    fn build(
        files: Vec<PathBuf>,
        root: &YamlNode,
        variables: Option<&VariableResolver<'_>>,
    ) -> Result<Self, Vec<ConfigProblem>> {
        let bytes_left = Some(if variables.is_some() { VALUE_BYTES_MAX } else { DATA_BYTES_MAX });
        let mut builder = ValueBuilder {
            positions: BTreeMap::new(),
            expanded: BTreeMap::new(),
            problems: Vec::new(),
            variables,
            bytes_left,
        };
        // An empty file is a valid configuration.
        let value = match builder.build_value(root, String::new()) {
            Value::Null => Value::Object(Map::new()),
            value => value,
        };
        if builder.problems.is_empty() {
            let ValueBuilder { positions, expanded, .. } = builder;
            Ok(Self { files, value, positions, expanded })
        } else {
            Err(builder.problems.into_iter().map(|problem| problem.in_file(&files)).collect())
        }
    }

    /// The main file.
    pub(crate) fn path(&self) -> &Path {
        self.files.first().map_or(Path::new(""), PathBuf::as_path)
    }

    fn file(&self, position: ValuePosition) -> Option<&Path> {
        self.files.get(position.file).map(PathBuf::as_path)
    }

    /// The position of the value at `path`, else of the nearest enclosing value in the file.
    pub(crate) fn position(&self, path: &str) -> Option<ValuePosition> {
        let mut path = path;
        loop {
            if let Some(position) = self.positions.get(path) {
                return Some(*position);
            }
            if path.is_empty() {
                return None;
            }
            path = &path[..path.rfind(['.', '[']).unwrap_or(0)];
        }
    }

    pub(crate) fn source_text(&self, path: &str) -> Option<&str> {
        self.expanded.get(path).map(|text| text.source_text.as_str())
    }

    pub(crate) fn expanded(&self, path: &str) -> Option<&ExpandedText> {
        self.expanded.get(path)
    }

    /// `text` with the names of variables instead of their values.
    pub(crate) fn redact(&self, text: &str) -> String {
        let values = self.expanded.values().flat_map(|text| &text.values);
        values.fold(text.to_owned(), |text, value| value.redact_in(&text))
    }

    /// The values of the variables in the value at `path` and below it.
    pub(crate) fn secret_values_within(&self, path: &str) -> impl Iterator<Item = &str> {
        let within = self.expanded.range(path.to_owned()..).take_while(move |(other, _)| other.starts_with(path));
        let within = within.filter(move |(other, _)| is_within(other, path));
        within.flat_map(|(_, text)| text.values.iter().map(VariableValue::value))
    }

    pub(crate) fn enclosing_source_text(&self, path: &str) -> Option<&str> {
        let mut around = self.expanded.iter().filter(|(other, _)| is_within(path, other));
        around.next_back().map(|(_, text)| text.source_text.as_str())
    }
}

/// The text of a file of the configuration.
fn read_file(path: &Path) -> Result<String, Vec<ConfigProblem>> {
    let failed = |error: std::io::Error| vec![ConfigProblem::new("", format!("cannot be read: {error}"))];
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(vec![ConfigProblem::new("", format!("is larger than {FILE_BYTES_MAX} bytes"))]);
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    // Some editors begin a file with a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// `file:line:column: path: message` for each problem, in the order of the files. `file` is the main file.
pub(crate) fn render_report(problems: &[ConfigProblem], file: &Path, document: Option<&Document>) -> String {
    let position = |problem: &ConfigProblem| problem.position.or_else(|| document?.position(&problem.path));
    let mut sorted: Vec<&ConfigProblem> = problems.iter().collect();
    sorted.sort_by_key(|problem| position(problem));
    let mut text = String::new();
    for problem in sorted {
        let own = problem.file.as_deref().or_else(|| document?.file(position(problem)?));
        let _ = write!(text, "{}", own.unwrap_or(file).display());
        if let Some(ValuePosition { line, column, .. }) = position(problem) {
            let _ = write!(text, ":{line}:{column}");
        }
        // A key may contain any character, but a problem begins one line.
        let path = problem.path.replace('\n', "\\n").replace('\r', "\\r");
        let path = if path.is_empty() { path } else { format!("{path}: ") };
        let message = document.map_or_else(|| problem.message.clone(), |document| document.redact(&problem.message));
        let related = document.zip(position(problem)).and_then(|(document, position)| {
            let related = document.position(problem.related.as_deref()?)?;
            let file = document.file(related).filter(|_| related.file != position.file)?;
            Some(format!("; the other is in {}:{}:{}", file.display(), related.line, related.column))
        });
        let message = message.replace('\n', "\n    ");
        let _ = writeln!(text, ": {path}{message}{}", related.unwrap_or_default());
    }
    text
}

fn is_within(path: &str, around: &str) -> bool {
    path.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', ' ']))
}

struct ValueBuilder<'a> {
    positions: BTreeMap<String, ValuePosition>,
    expanded: BTreeMap<String, ExpandedText>,
    problems: Vec<ConfigProblem>,
    /// Without it, no variable is expanded.
    variables: Option<&'a VariableResolver<'a>>,
    /// `None` after the first value that does not fit.
    bytes_left: Option<usize>,
}

impl ValueBuilder<'_> {
    fn build_value(&mut self, node: &YamlNode, path: String) -> Value {
        if !self.fits(node, &path) {
            return Value::Null;
        }
        self.positions.entry(path.clone()).or_insert(node.position);
        match &node.kind {
            YamlContent::Plain(text) => self.expand_scalar(text, true, node.position, path),
            YamlContent::Text(text) => self.expand_scalar(text, false, node.position, path),
            YamlContent::List(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    if self.bytes_left.is_none() {
                        break;
                    }
                    values.push(self.build_value(item, format!("{path}[{index}]")));
                }
                Value::Array(values)
            }
            YamlContent::Map(members) => {
                let mut object = Map::new();
                for (name, position, node) in members {
                    if self.bytes_left.is_none() {
                        break;
                    }
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.positions.insert(path.clone(), *position);
                    object.insert(name.clone(), self.build_value(node, path));
                }
                Value::Object(object)
            }
        }
    }

    /// Counts `node`, and reports the first one that does not fit.
    fn fits(&mut self, node: &YamlNode, path: &str) -> bool {
        let text = match &node.kind {
            YamlContent::Plain(text) | YamlContent::Text(text) => text.len(),
            YamlContent::List(_) | YamlContent::Map(_) => 0,
        };
        let Some(left) = self.bytes_left else { return false };
        self.bytes_left = left.checked_sub(path.len() + text);
        if self.bytes_left.is_none() {
            let message =
                "makes the file too large: long keys and repeated values (*name) count for each value below them";
            self.problems.push(ConfigProblem::at_position(node.position, message));
        }
        self.bytes_left.is_some()
    }

    fn expand_scalar(&mut self, text: &str, is_plain: bool, position: ValuePosition, path: String) -> Value {
        match self.variables.map_or(Ok(None), |variables| variables.expand(text)) {
            Ok(None) if is_plain => parse_plain_scalar(text),
            Ok(None) => Value::from(text),
            // The value of a variable is always text.
            Ok(Some(expanded)) => {
                let value = Value::from(expanded.text.as_str());
                self.expanded.insert(path, expanded);
                value
            }
            Err(message) => {
                self.problems.push(ConfigProblem::at_position(position, message));
                Value::Null
            }
        }
    }
}

/// A scalar without quotes, by the core schema of YAML 1.2.
pub(super) fn parse_plain_scalar(text: &str) -> Value {
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
