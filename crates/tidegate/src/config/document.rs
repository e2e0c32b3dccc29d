//! A YAML file as a tree of values, with the place of each in the text.
//!
//! Types come later: the tree is checked against the schema of the configuration, and every complaint is told
//! with line and column. Variables are put in after parsing, so that nothing they hold is ever read as YAML.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Value};

use super::expand::{Expanded, Filled, Held, Variables};
use super::problem::Problem;

/// Longer files are refused.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Values of a document, those that aliases repeat included.
const VALUES_MAX: usize = 200_000;
/// Bytes of texts of a document, those that aliases repeat included.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;
const DEPTH_MAX: usize = 64;
const TAGGED: &str = "tags (!…) are not understood; write the value alone";

/// Where a value stands in its file; both count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A YAML file.
#[derive(Debug)]
pub(crate) struct Document {
    /// The file.
    pub(crate) path: PathBuf,
    /// All that it says.
    pub(crate) value: Value,
    /// Where each value stands, by its path (`tools[0].sql`).
    places: BTreeMap<String, Place>,
    /// Values that hold variables: what a variable holds is told to nobody.
    filled: BTreeMap<String, Variable>,
}

/// A value that holds variables.
#[derive(Debug)]
struct Variable {
    /// As it was written.
    written: String,
    filled: Filled,
}

impl Document {
    /// What stands in no file.
    pub(crate) fn empty(path: &Path) -> Self {
        let (places, filled) = (BTreeMap::new(), BTreeMap::new());
        Self { path: path.to_owned(), value: Value::Null, places, filled }
    }

    /// Reads the file at `path`.
    pub(crate) fn read(path: &Path, variables: &Variables<'_>) -> Result<Self, Vec<Problem>> {
        let failed = |error: std::io::Error| vec![Problem::new("", format!("cannot be read: {error}"))];
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if metadata.len() > FILE_BYTES_MAX {
            return Err(vec![Problem::new("", format!("is larger than {FILE_BYTES_MAX} bytes"))]);
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        // Some editors begin a file with a mark of its byte order.
        Self::parse(path, text.strip_prefix('\u{feff}').unwrap_or(&text), variables)
    }

    /// Reads `text`, which stands in the file at `path`.
    pub(crate) fn parse(path: &Path, text: &str, variables: &Variables<'_>) -> Result<Self, Vec<Problem>> {
        let mut builder = Builder::default();
        for event in Parser::new_from_str(text) {
            match event {
                Ok((event, span)) => builder.hear(&event, span)?,
                Err(error) => {
                    let place = Place { line: error.marker().line(), column: error.marker().col() + 1 };
                    return Err(vec![Problem::at(place, format!("is no YAML: {}", error.info()))]);
                }
            }
        }
        let root =
            builder.root.unwrap_or(Node { place: Place { line: 1, column: 1 }, kind: Kind::Plain(String::new()) });
        let mut flat = Flat { places: BTreeMap::new(), filled: BTreeMap::new(), problems: Vec::new(), variables };
        // An empty file says nothing, which is a configuration too.
        let value = match flat.value(&root, String::new()) {
            Value::Null => Value::Object(Map::new()),
            value => value,
        };
        if flat.problems.is_empty() {
            Ok(Self { path: path.to_owned(), value, places: flat.places, filled: flat.filled })
        } else {
            Err(flat.problems)
        }
    }

    /// Where the value at `path` stands, or the nearest value around it that is in the file.
    pub(crate) fn place(&self, path: &str) -> Option<Place> {
        let mut path = path;
        loop {
            if let Some(place) = self.places.get(path) {
                return Some(*place);
            }
            if path.is_empty() {
                return None;
            }
            path = &path[..path.rfind(['.', '[']).unwrap_or(0)];
        }
    }

    /// The value at `path` as it was written, if it holds variables.
    pub(crate) fn written(&self, path: &str) -> Option<&str> {
        self.filled.get(path).map(|variable| variable.written.as_str())
    }

    /// The value at `path` as a template in which braces that variables hold mean nothing, if it holds any.
    pub(crate) fn template(&self, path: &str) -> Option<&str> {
        self.filled.get(path).map(|variable| variable.filled.template.as_str())
    }

    /// `text` as it may be told: with the names of variables for what they hold.
    pub(crate) fn told(&self, text: &str) -> String {
        let held = self.filled.values().flat_map(|variable| &variable.filled.values);
        held.fold(text.to_owned(), |text, held| held.hidden_in(&text))
    }

    /// What the variables of the value at `path`, and of all values in it, hold.
    pub(crate) fn values_within(&self, path: &str) -> impl Iterator<Item = &str> {
        let within = self.filled.range(path.to_owned()..).take_while(move |(other, _)| other.starts_with(path));
        let within = within.filter(move |(other, _)| is_within(other, path));
        within.flat_map(|(_, variable)| variable.filled.values.iter().map(Held::value))
    }

    /// The nearest value at or around `path` that holds variables, as it was written.
    pub(crate) fn written_around(&self, path: &str) -> Option<&str> {
        let mut around = self.filled.iter().filter(|(other, _)| is_within(path, other));
        around.next_back().map(|(_, variable)| variable.written.as_str())
    }
}

/// Whether `path` is that of the value at `around`, or of one in it.
fn is_within(path: &str, around: &str) -> bool {
    path.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', ' ']))
}

#[derive(Debug, Clone)]
struct Node {
    place: Place,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// A word without quotes, which may be a number or a truth.
    Plain(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Place, Node)>),
}

/// What is open while the events come.
enum Open {
    List(Place, usize, Vec<Node>),
    Map(Place, usize, Vec<(String, Place, Node)>, Option<(String, Place)>),
}

/// Puts nodes together from the parser's events.
#[derive(Default)]
struct Builder {
    root: Option<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    values: usize,
    text_bytes: usize,
    documents: usize,
}

impl Builder {
    fn hear(&mut self, event: &Event<'_>, span: Span) -> Result<(), Vec<Problem>> {
        let place = Place { line: span.start.line(), column: span.start.col() + 1 };
        let refuse = |message: &str| Err(vec![Problem::at(place, message)]);
        if self.open.len() > DEPTH_MAX {
            return refuse("is nested too deeply");
        }
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return refuse("is a second document; a configuration is one");
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                if tag.is_some() {
                    return refuse(TAGGED);
                }
                let text = Cow::clone(text).into_owned();
                self.text_bytes += text.len();
                let kind = if *style == ScalarStyle::Plain { Kind::Plain(text) } else { Kind::Text(text) };
                self.close(Node { place, kind }, *anchor)
            }
            Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => refuse(TAGGED),
            Event::SequenceStart(anchor, None) => {
                self.open.push(Open::List(place, *anchor, Vec::new()));
                Ok(())
            }
            Event::MappingStart(anchor, None) => {
                self.open.push(Open::Map(place, *anchor, Vec::new(), None));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(place, anchor, items)) => self.close(Node { place, kind: Kind::List(items) }, anchor),
                Some(Open::Map(place, anchor, members, _)) => {
                    self.close(Node { place, kind: Kind::Map(members) }, anchor)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => match self.anchors.get(anchor).cloned() {
                Some(node) => {
                    let size = Size::of(&node);
                    if self.open.len() + size.depth > DEPTH_MAX {
                        return refuse("is nested too deeply");
                    }
                    // The node itself is counted when it is put where it belongs.
                    self.values += size.values - 1;
                    self.text_bytes += size.text_bytes;
                    self.close(node, 0)
                }
                None => refuse("refers to something that is not there"),
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    /// Puts a node that is complete where it belongs.
    fn close(&mut self, node: Node, anchor: usize) -> Result<(), Vec<Problem>> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(vec![Problem::at(node.place, format!("makes the file larger than {VALUES_MAX} values"))]);
        }
        if anchor > 0 {
            // What may be repeated is kept a second time.
            self.text_bytes += Size::of(&node).text_bytes;
        }
        if self.text_bytes > TEXT_BYTES_MAX {
            let message = format!("makes the texts of the file larger than {TEXT_BYTES_MAX} bytes");
            return Err(vec![Problem::at(node.place, message)]);
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List(_, _, items)) => items.push(node),
            Some(Open::Map(_, _, members, key)) => match (key.take(), node) {
                (Some((name, place)), node) => {
                    if let Some((_, first, _)) = members.iter().find(|(other, _, _)| *other == name) {
                        let message =
                            format!("{name:?} stands here a second time; the first is in line {}", first.line);
                        return Err(vec![Problem::at(place, message)]);
                    }
                    members.push((name, place, node));
                }
                (None, Node { place, kind: Kind::Plain(name) | Kind::Text(name) }) => *key = Some((name, place)),
                (None, node) => return Err(vec![Problem::at(node.place, "a key must be a word")]),
            },
        }
        Ok(())
    }
}

/// How much a node is, with all that is in it: an alias repeats it.
struct Size {
    values: usize,
    text_bytes: usize,
    depth: usize,
}

impl Size {
    fn of(node: &Node) -> Self {
        match &node.kind {
            Kind::Plain(text) | Kind::Text(text) => Self { values: 1, text_bytes: text.len(), depth: 0 },
            Kind::List(items) => Self::around(0, items.iter()),
            Kind::Map(members) => {
                let names = members.iter().map(|(name, _, _)| name.len()).sum();
                Self::around(names, members.iter().map(|(_, _, node)| node))
            }
        }
    }

    fn around<'a>(text_bytes: usize, nodes: impl Iterator<Item = &'a Node>) -> Self {
        nodes.map(Self::of).fold(Self { values: 1, text_bytes, depth: 1 }, |sum, inner| Self {
            values: sum.values + inner.values,
            text_bytes: sum.text_bytes + inner.text_bytes,
            depth: sum.depth.max(inner.depth + 1),
        })
    }
}

/// Makes values out of nodes and notes their places.
struct Flat<'a> {
    places: BTreeMap<String, Place>,
    filled: BTreeMap<String, Variable>,
    problems: Vec<Problem>,
    variables: &'a Variables<'a>,
}

impl Flat<'_> {
    fn value(&mut self, node: &Node, path: String) -> Value {
        self.places.entry(path.clone()).or_insert(node.place);
        match &node.kind {
            Kind::Plain(text) => self.scalar(text, true, node.place, path),
            Kind::Text(text) => self.scalar(text, false, node.place, path),
            Kind::List(items) => {
                let item = |(index, item)| self.value(item, format!("{path}[{index}]"));
                Value::Array(items.iter().enumerate().map(item).collect())
            }
            Kind::Map(members) => {
                let mut object = Map::new();
                for (name, place, node) in members {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.places.insert(path.clone(), *place);
                    object.insert(name.clone(), self.value(node, path));
                }
                Value::Object(object)
            }
        }
    }

    fn scalar(&mut self, text: &str, is_plain: bool, place: Place, path: String) -> Value {
        match self.variables.expand(text) {
            Ok(Expanded::AsWritten) if is_plain => plain(text),
            Ok(Expanded::AsWritten) => Value::from(text),
            // What a variable holds is text, whatever it looks like.
            Ok(Expanded::Filled(filled)) => {
                let value = Value::from(filled.text.as_str());
                self.filled.insert(path, Variable { written: text.to_owned(), filled });
                value
            }
            Err(message) => {
                self.problems.push(Problem::at(place, message));
                Value::Null
            }
        }
    }
}

/// A word without quotes, by the core schema of YAML 1.2.
fn plain(text: &str) -> Value {
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

    fn parse(text: &str) -> Result<Document, Vec<Problem>> {
        Document::parse(Path::new("/x.yaml"), text, &Variables::new(Path::new("/"), |_| None))
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
        let place = |path: &str| document.place(path).map(|place| (place.line, place.column));
        assert_eq!((place("a"), place("a[0].c"), place("a[0].c.d")), (Some((1, 1)), Some((3, 5)), Some((3, 9))));
        assert_eq!(place("a[0].nothing.at_all"), place("a[0]"), "the nearest around it");
    }

    #[test]
    fn aliases_repeat_what_they_name_within_bounds() {
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
