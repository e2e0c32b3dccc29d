//! The trees of YAML documents, built from the parser's events, within bounds.
//!
//! The trees of the crate `saphyr` (0.3.4) bound neither the depth nor the bytes that aliases repeat, and its error for a
//! key that stands twice does not have the place of the first one.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::problem::{ConfigProblem, ValuePosition};
use super::yaml_errors::YamlError;

/// Values of a document, those that aliases repeat included.
const VALUES_MAX: usize = 200_000;
/// Bytes of texts of a document, those that aliases repeat included.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;
const DEPTH_MAX: usize = 64;
const TAG_MESSAGE: &str = "tags (!…) are not understood; write the value alone";

#[derive(Debug, Clone)]
pub(super) struct YamlNode {
    pub(super) position: ValuePosition,
    pub(super) kind: YamlContent,
}

#[derive(Debug, Clone)]
pub(super) enum YamlContent {
    /// Without quotes, so it may be a number or a boolean.
    Plain(String),
    Text(String),
    List(Vec<YamlNode>),
    Map(Vec<(String, ValuePosition, YamlNode)>),
}

impl YamlNode {
    pub(super) fn members(&self) -> &[(String, ValuePosition, YamlNode)] {
        match &self.kind {
            YamlContent::Map(members) => members,
            YamlContent::Plain(_) | YamlContent::Text(_) | YamlContent::List(_) => &[],
        }
    }

    pub(super) fn items(&self) -> &[YamlNode] {
        match &self.kind {
            YamlContent::List(items) => items,
            YamlContent::Plain(_) | YamlContent::Text(_) | YamlContent::Map(_) => &[],
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&YamlNode> {
        self.members().iter().find(|(other, _, _)| other == name).map(|(_, _, node)| node)
    }
}

/// The document `text`, which is the file with the number `file`.
pub(super) fn parse_document(text: &str, file: usize) -> Result<YamlNode, Vec<ConfigProblem>> {
    let mut documents = parse_documents(text, file)?.into_iter();
    let position = ValuePosition { file, line: 1, column: 1 };
    let first = documents.next().map(|(_, document)| document);
    match documents.next() {
        Some((position, _)) => {
            Err(vec![ConfigProblem::at_position(position, "is a second document; a configuration is one")])
        }
        None => Ok(first.unwrap_or(YamlNode { position, kind: YamlContent::Plain(String::new()) })),
    }
}

/// The documents of `text`, with their positions. The bounds apply to all together.
pub(super) fn parse_documents(text: &str, file: usize) -> Result<Vec<(ValuePosition, YamlNode)>, Vec<ConfigProblem>> {
    let mut builder = YamlTreeBuilder { file, ..YamlTreeBuilder::default() };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => builder.on_event(&event, span)?,
            Err(error) => {
                let marker = error.marker();
                let YamlError { line, column, message } =
                    YamlError::new(text, marker.line(), marker.col() + 1, error.info());
                return Err(vec![ConfigProblem::at_position(ValuePosition { file, line, column }, message)]);
            }
        }
    }
    Ok(builder.documents)
}

enum OpenCollection {
    List(ValuePosition, usize, Vec<YamlNode>),
    Map(ValuePosition, usize, Vec<(String, ValuePosition, YamlNode)>, Option<(String, ValuePosition)>),
}

#[derive(Default)]
struct YamlTreeBuilder {
    documents: Vec<(ValuePosition, YamlNode)>,
    /// Where the current document starts.
    start: Option<ValuePosition>,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, YamlNode>,
    values: usize,
    text_bytes: usize,
    /// The number of the file, for the positions.
    file: usize,
}

impl YamlTreeBuilder {
    fn on_event(&mut self, event: &Event<'_>, span: Span) -> Result<(), Vec<ConfigProblem>> {
        let position = ValuePosition { file: self.file, line: span.start.line(), column: span.start.col() + 1 };
        let refuse = |message: &str| Err(vec![ConfigProblem::at_position(position, message)]);
        if self.open.len() > DEPTH_MAX {
            return refuse("is nested too deeply");
        }
        match event {
            Event::DocumentStart(_) => {
                self.start = Some(position);
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                if tag.is_some() {
                    return refuse(TAG_MESSAGE);
                }
                let text = Cow::clone(text).into_owned();
                self.text_bytes += text.len();
                let kind =
                    if *style == ScalarStyle::Plain { YamlContent::Plain(text) } else { YamlContent::Text(text) };
                self.finish_node(YamlNode { position, kind }, *anchor)
            }
            Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => refuse(TAG_MESSAGE),
            Event::SequenceStart(anchor, None) => {
                self.open.push(OpenCollection::List(position, *anchor, Vec::new()));
                Ok(())
            }
            Event::MappingStart(anchor, None) => {
                self.open.push(OpenCollection::Map(position, *anchor, Vec::new(), None));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(OpenCollection::List(position, anchor, items)) => {
                    self.finish_node(YamlNode { position, kind: YamlContent::List(items) }, anchor)
                }
                Some(OpenCollection::Map(position, anchor, members, _)) => {
                    self.finish_node(YamlNode { position, kind: YamlContent::Map(members) }, anchor)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => match self.anchors.get(anchor).cloned() {
                Some(node) => {
                    let size = NodeSize::measure(&node);
                    if self.open.len() + size.depth > DEPTH_MAX {
                        return refuse("is nested too deeply");
                    }
                    // `finish_node` counts the node itself.
                    self.values += size.values - 1;
                    self.text_bytes += size.text_bytes;
                    self.finish_node(node, 0)
                }
                None => refuse("refers to something that is not there"),
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn finish_node(&mut self, node: YamlNode, anchor: usize) -> Result<(), Vec<ConfigProblem>> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(vec![ConfigProblem::at_position(
                node.position,
                format!("makes the file larger than {VALUES_MAX} values"),
            )]);
        }
        if anchor > 0 {
            // A node with an anchor is stored a second time.
            self.text_bytes += NodeSize::measure(&node).text_bytes;
        }
        if self.text_bytes > TEXT_BYTES_MAX {
            let message = format!("makes the texts of the file larger than {TEXT_BYTES_MAX} bytes");
            return Err(vec![ConfigProblem::at_position(node.position, message)]);
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.documents.push((self.start.unwrap_or(node.position), node)),
            Some(OpenCollection::List(_, _, items)) => items.push(node),
            Some(OpenCollection::Map(_, _, members, key)) => match (key.take(), node) {
                (Some((name, position)), node) => {
                    if let Some((_, first, _)) = members.iter().find(|(other, _, _)| *other == name) {
                        let message =
                            format!("{name:?} stands here a second time; the first is in line {}", first.line);
                        return Err(vec![ConfigProblem::at_position(position, message)]);
                    }
                    members.push((name, position, node));
                }
                (None, YamlNode { position, kind: YamlContent::Plain(name) | YamlContent::Text(name) }) => {
                    *key = Some((name, position))
                }
                (None, node) => return Err(vec![ConfigProblem::at_position(node.position, "a key must be a word")]),
            },
        }
        Ok(())
    }
}

/// The size of a node with its children, which each alias adds again.
struct NodeSize {
    values: usize,
    text_bytes: usize,
    depth: usize,
}

impl NodeSize {
    fn measure(node: &YamlNode) -> Self {
        match &node.kind {
            YamlContent::Plain(text) | YamlContent::Text(text) => Self { values: 1, text_bytes: text.len(), depth: 0 },
            YamlContent::List(items) => Self::sum_children(0, items.iter()),
            YamlContent::Map(members) => {
                let names = members.iter().map(|(name, _, _)| name.len()).sum();
                Self::sum_children(names, members.iter().map(|(_, _, node)| node))
            }
        }
    }

    fn sum_children<'a>(text_bytes: usize, nodes: impl Iterator<Item = &'a YamlNode>) -> Self {
        nodes.map(Self::measure).fold(Self { values: 1, text_bytes, depth: 1 }, |sum, inner| Self {
            values: sum.values + inner.values,
            text_bytes: sum.text_bytes + inner.text_bytes,
            depth: sum.depth.max(inner.depth + 1),
        })
    }
}
