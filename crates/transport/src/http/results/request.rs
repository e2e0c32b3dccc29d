//! Parses a download request: format, content coding, and whether a part of a result is acceptable.

use axum::http::request::Parts;
use serde_json::{Map, Value};
use tidegate_core::Format;

use super::super::answer::{Accept, FORMAT, ParameterKind, ProblemDetails, QueryParameter, parse_query};
use super::link::LINK;
use super::route::{ResultRoute, ResultView};

pub(in super::super) const PARTIAL: QueryParameter =
    QueryParameter::new("partial", ParameterKind::Flag, "Whether to return the existing rows of an incomplete result");

#[derive(Debug)]
pub(super) struct ResultRequest {
    pub(super) format: Format,
    pub(super) arguments: Map<String, Value>,
    /// Why no row format is acceptable. The result may still be a file, which needs no row format.
    pub(super) format_problem: Option<ProblemDetails>,
    pub(super) has_link: bool,
}

impl ResultRequest {
    pub(super) fn read(route: &ResultRoute, parts: &Parts) -> Result<Self, ProblemDetails> {
        let parameters: &[QueryParameter] = match route.view {
            ResultView::Data => &[PARTIAL, LINK],
            ResultView::Block | ResultView::Manifest => &[LINK],
        };
        let (mut arguments, format) = parse_query(&parts.uri, parameters)?;
        let has_link = arguments.remove(LINK.name).is_some();
        let accepted = Accept::best_of(&parts.headers, format.as_deref(), &offered_formats(route.view));
        let may_be_file = route.view == ResultView::Data && format.is_none();
        let (format, refused) = match accepted {
            Ok(accepted) => {
                // A format in the query string applies to any kind of result.
                let requested = format.filter(|_| route.view == ResultView::Data);
                arguments.extend(requested.map(|format| (FORMAT.name.to_owned(), format.into())));
                (accepted, None)
            }
            Err(problem) if may_be_file => (Format::Arrow, Some(problem)),
            Err(problem) => return Err(problem),
        };
        Ok(Self { format, arguments, format_problem: refused, has_link })
    }
}

/// The formats of a view, the stored one first.
pub(in super::super) fn offered_formats(view: ResultView) -> Vec<Format> {
    if view == ResultView::Manifest {
        return vec![Format::Json];
    }
    let is_other = |format: &Format| *format != Format::Arrow && Format::FOR_DOWNLOADS.contains(format);
    std::iter::once(Format::Arrow).chain(Format::FOR_REST.into_iter().filter(is_other)).collect()
}
