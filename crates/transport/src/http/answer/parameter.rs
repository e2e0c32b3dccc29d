//! Parameters of the query string, and their values as arguments.

use axum::extract::Query;
use axum::http::Uri;
use serde_json::{Map, Value};

use super::problem::ProblemDetails;

#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct QueryParameter {
    pub(in crate::http) name: &'static str,
    pub(in crate::http) kind: ParameterKind,
    pub(in crate::http) description: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum ParameterKind {
    Text,
    Integer,
    /// `true` or `false`.
    Flag,
    /// Texts separated by commas.
    List,
}

impl QueryParameter {
    pub(in crate::http) const fn new(name: &'static str, kind: ParameterKind, description: &'static str) -> Self {
        Self { name, kind, description }
    }
}

/// The format of the answer; every call accepts it.
pub(in crate::http) const FORMAT: QueryParameter =
    QueryParameter::new("format", ParameterKind::Text, "The format of the answer; overrides Accept");

/// The parameters of the query string that are `known`, and the format of the answer.
pub(in crate::http) fn parse_query(
    uri: &Uri,
    known: &[QueryParameter],
) -> Result<(Map<String, Value>, Option<String>), ProblemDetails> {
    let known: Vec<QueryParameter> = std::iter::once(FORMAT).chain(known.iter().copied()).collect();
    let mut arguments = parse_parameters(uri, &known)?;
    // It is text.
    let format = arguments.shift_remove(FORMAT.name).and_then(|format| format.as_str().map(str::to_owned));
    Ok((arguments, format))
}

/// The parameters of the query string, all of which must be `known`.
pub(in crate::http) fn parse_parameters(
    uri: &Uri,
    known: &[QueryParameter],
) -> Result<Map<String, Value>, ProblemDetails> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|_| ProblemDetails::bad_request("the query string cannot be parsed"))?;
    let mut arguments = Map::new();
    for (name, text) in pairs {
        if arguments.contains_key(&name) {
            return Err(ProblemDetails::bad_request(format!("the parameter {name} is given more than once")));
        }
        let Some(parameter) = known.iter().find(|parameter| parameter.name == name) else {
            let names = known.iter().map(|parameter| parameter.name);
            return Err(ProblemDetails::bad_request(format!("unknown query parameter {name:?}")).with_choices(names));
        };
        arguments.insert(name, parameter.parse_value(text)?);
    }
    Ok(arguments)
}

pub(in crate::http) fn require_no_parameters(uri: &Uri) -> Result<(), ProblemDetails> {
    match uri.query() {
        None | Some("") => Ok(()),
        Some(_) => Err(ProblemDetails::bad_request("this path has no query parameters")),
    }
}

impl QueryParameter {
    fn parse_value(&self, text: String) -> Result<Value, ProblemDetails> {
        match self.kind {
            ParameterKind::Text => Ok(text.into()),
            ParameterKind::List => Ok(text.split(',').map(|item| Value::from(item.trim())).collect()),
            ParameterKind::Integer => text.parse::<i64>().map(Value::from).map_err(|_| {
                ProblemDetails::bad_request(format!("the parameter {} must be a whole number, not {text:?}", self.name))
            }),
            ParameterKind::Flag => text.parse::<bool>().map(Value::from).map_err(|_| {
                ProblemDetails::bad_request(format!("the parameter {} must be true or false, not {text:?}", self.name))
            }),
        }
    }
}
