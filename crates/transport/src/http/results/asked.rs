//! What a request asks for: the form, the coding, and whether a part of a result will do.

use axum::http::request::Parts;
use serde_json::{Map, Value};
use tidegate_core::AnswerFormat;

use super::super::rest::{Accept, FORMAT, Kind, Parameter, Problem, of_address};
use super::link::LINK;
use super::route::{Route, View};

pub(in super::super) const PARTIAL: Parameter =
    Parameter::new("partial", Kind::Flag, "Whether the rows of a result that broke off are wanted all the same");

/// The wishes of a request.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) format: AnswerFormat,
    /// Those of the call.
    pub(super) arguments: Map<String, Value>,
    /// Why no form of rows will do, although nobody knows yet whether the result has rows: a file is as it is.
    pub(super) refused: Option<Problem>,
    /// Whether a link opens the result.
    pub(super) has_link: bool,
}

impl Asked {
    /// What address and headers say.
    pub(super) fn read(route: &Route, parts: &Parts) -> Result<Self, Problem> {
        let known: &[Parameter] = match route.view {
            View::Data => &[PARTIAL, LINK],
            View::Block(_) | View::Manifest => &[LINK],
        };
        let (mut arguments, format) = of_address(&parts.uri, known)?;
        let has_link = arguments.remove(LINK.name).is_some();
        let accepted = Accept::best_of(&parts.headers, format.as_deref(), &offered(&route.view));
        let may_be_file = route.view == View::Data && format.is_none();
        let (format, refused) = match accepted {
            Ok(accepted) => {
                // What an address names is asked for whatever the result is.
                let named = format.filter(|_| route.view == View::Data);
                arguments.extend(named.map(|named| (FORMAT.name.to_owned(), named.into())));
                (accepted, None)
            }
            Err(problem) if may_be_file => (AnswerFormat::Arrow, Some(problem)),
            Err(problem) => return Err(problem),
        };
        Ok(Self { format, arguments, refused, has_link })
    }
}

/// The forms that there are of a view, the one it is stored in first. Tables for people are no files to download.
pub(in super::super) fn offered(view: &View) -> Vec<AnswerFormat> {
    if *view == View::Manifest {
        return vec![AnswerFormat::Json];
    }
    let is_other =
        |format: &AnswerFormat| !matches!(format, AnswerFormat::Arrow | AnswerFormat::Table | AnswerFormat::Markdown);
    std::iter::once(AnswerFormat::Arrow).chain(AnswerFormat::ALL.into_iter().filter(is_other)).collect()
}

/// How the name of a file ends that holds rows in `format`.
pub(super) fn extension(format: AnswerFormat) -> &'static str {
    match format {
        // The registered one of streams; `.arrow` is that of files, which have their index at the end.
        AnswerFormat::Arrow => "arrows",
        AnswerFormat::Table => "txt",
        AnswerFormat::Markdown => "md",
        named => named.name(),
    }
}
