//! The paths of stored results: a result, its rows, and each of its blocks.

use axum::http::Method;
use percent_encoding::percent_decode_str;
use uuid::Uuid;

use super::super::answer::{ProblemDetails, ProblemType};
use super::super::endpoints::{Endpoint, EndpointHandler, endpoint_at};

const URI_PREFIX: &str = "tidegate://results/";
const FILE_ID_DIGITS: usize = 8;
const ID_BYTES: usize = 36;

/// The parsed path, whether or not such a result can exist.
pub(super) struct ResultRoute {
    pub(super) endpoint: &'static Endpoint,
    /// The canonical id; as in the path if it is invalid.
    pub(super) id: String,
    pub(super) view: ResultView,
    /// The number of the block; empty for another view.
    block: String,
    is_valid: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum ResultView {
    Manifest,
    Block,
    Data,
}

impl ResultRoute {
    pub(super) fn parse(path: &str, method: &Method) -> Result<Self, ProblemDetails> {
        let endpoint = endpoint_at(path);
        let EndpointHandler::Results(Some(view)) = endpoint.handler else {
            let detail = "unknown path; the manifest of a result is at /results/{id}, its rows at \
                          /results/{id}/data, and its blocks at /results/{id}/blocks/{n}";
            return Err(ProblemDetails::new(ProblemType::NoSuchPath, detail));
        };
        endpoint.for_method(method)?;
        let mut values = endpoint.parameters(path.split('/')).map(|(_, value)| value);
        let (id, block) = (values.next().unwrap_or_default(), values.next());
        let canonical = parse_id(id).zip(block.map_or(Some(String::new()), parse_block));
        let is_valid = canonical.is_some();
        let (id, block) = canonical.unwrap_or_else(|| (id.to_owned(), block.unwrap_or_default().to_owned()));
        Ok(Self { endpoint, id, view, block, is_valid })
    }

    /// The URI of the resource; `None` if it cannot exist.
    pub(super) fn uri(&self) -> Option<String> {
        self.is_valid.then(|| self.requested_uri())
    }

    /// The same, without a check that it can exist.
    pub(super) fn requested_uri(&self) -> String {
        view_uri(&self.id, self.view, &self.block)
    }

    /// The file name without extension; `None` for a view that is not a file.
    pub(super) fn file_stem(&self) -> Option<String> {
        let id = self.id.get(..FILE_ID_DIGITS)?;
        match self.view {
            ResultView::Manifest => None,
            ResultView::Block => Some(format!("result-{id}-{}", self.block)),
            ResultView::Data => Some(format!("result-{id}")),
        }
    }
}

/// The id in canonical form; `None` if it is invalid.
fn parse_id(segment: &str) -> Option<String> {
    let id = percent_decode_str(segment).decode_utf8().ok().filter(|id| id.len() == ID_BYTES)?;
    Some(Uuid::try_parse(&id).ok()?.hyphenated().to_string())
}

/// The number of a block, which has exactly one path: `+7` and `007` are invalid.
fn parse_block(segment: &str) -> Option<String> {
    let number = percent_decode_str(segment).decode_utf8().ok()?;
    let read: u32 = number.parse().ok()?;
    Some(read.to_string()).filter(|text| *text == *number)
}

pub(in super::super) fn view_uri(id: &str, view: ResultView, block: &str) -> String {
    match view {
        ResultView::Manifest => format!("{URI_PREFIX}{id}"),
        ResultView::Block => format!("{URI_PREFIX}{id}/blocks/{block}"),
        ResultView::Data => format!("{URI_PREFIX}{id}/data"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0a1b2c3d-1111-4222-8333-444455556666";

    #[test]
    fn maps_paths_to_resource_uris() {
        let mut table = String::new();
        for path in [
            "/results/ID",
            "/results/ID/data",
            "/results/ID/blocks/0",
            "/results/ID/blocks/4294967295",
            "/results/%30a1b2c3d-1111-4222-8333-444455556666/blocks/%37",
            "/results/0A1B2C3D-1111-4222-8333-444455556666",
            "/results/ID/blocks/4294967296",
            "/results/ID/blocks/+7",
            "/results/ID/blocks/007",
            "/results/ID/blocks/-1",
            "/results/ID/blocks/%FF",
            "/results/ID/blocks/",
            "/results/0a1b2c3d111142228333444455556666",
            "/results/{ID}",
            "/results/nothing/data",
            "/results/%FF",
            "/results/ID/blocks",
            "/results/ID/rows",
            "/results/ID/",
            "/results/",
            "/results",
        ] {
            let route = ResultRoute::parse(&path.replace("ID", ID), &Method::GET);
            let message = route.map_or("no such path".to_owned(), |route| route.uri().unwrap_or("absent".to_owned()));
            table.push_str(&format!("{path:60} {}\n", message.replace(ID, "ID")));
        }
        insta::assert_snapshot!(table, @r#"
        /results/ID                                                  tidegate://results/ID
        /results/ID/data                                             tidegate://results/ID/data
        /results/ID/blocks/0                                         tidegate://results/ID/blocks/0
        /results/ID/blocks/4294967295                                tidegate://results/ID/blocks/4294967295
        /results/%30a1b2c3d-1111-4222-8333-444455556666/blocks/%37   tidegate://results/ID/blocks/7
        /results/0A1B2C3D-1111-4222-8333-444455556666                tidegate://results/ID
        /results/ID/blocks/4294967296                                absent
        /results/ID/blocks/+7                                        absent
        /results/ID/blocks/007                                       absent
        /results/ID/blocks/-1                                        absent
        /results/ID/blocks/%FF                                       absent
        /results/ID/blocks/                                          absent
        /results/0a1b2c3d111142228333444455556666                    absent
        /results/{ID}                                                absent
        /results/nothing/data                                        absent
        /results/%FF                                                 absent
        /results/ID/blocks                                           no such path
        /results/ID/rows                                             no such path
        /results/ID/                                                 no such path
        /results/                                                    no such path
        /results                                                     no such path
        "#);
    }
}
