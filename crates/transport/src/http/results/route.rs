//! The paths of stored results: a result, its rows, and each of its blocks.

use percent_encoding::percent_decode_str;
use uuid::Uuid;

use super::super::answer::{ProblemDetails, ProblemType};

const URI_PREFIX: &str = "tidegate://results/";
const FILE_ID_DIGITS: usize = 8;
const ID_BYTES: usize = 36;

/// The parsed path, whether or not such a result can exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResultRoute {
    /// The canonical id; as in the path if it is invalid.
    pub(super) id: String,
    pub(super) view: ResultView,
    is_valid: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum ResultView {
    Manifest,
    /// One block, by its number.
    Block(String),
    Data,
}

impl ResultRoute {
    pub(super) fn parse(path: &str) -> Result<Self, ProblemDetails> {
        let below: Vec<&str> = path.strip_prefix("/results/").unwrap_or_default().split('/').collect();
        let (id, view) = match below.as_slice() {
            [id] if !id.is_empty() => (id, ResultView::Manifest),
            [id, "data"] => (id, ResultView::Data),
            [id, "blocks", number] => (id, ResultView::Block((*number).to_owned())),
            _ => {
                let detail = "unknown path; the manifest of a result is at /results/{id}, its rows at \
                              /results/{id}/data, and its blocks at /results/{id}/blocks/{n}";
                return Err(ProblemDetails::new(ProblemType::NoSuchPath, detail.to_owned()));
            }
        };
        Ok(Self::parse_canonical(id, &view).unwrap_or_else(|| Self { id: (*id).to_owned(), view, is_valid: false }))
    }

    /// The route in canonical form; `None` if the id or the block number is invalid.
    fn parse_canonical(id: &str, view: &ResultView) -> Option<Self> {
        let decoded = |segment| percent_decode_str(segment).decode_utf8().ok();
        let id = decoded(id).filter(|id| id.len() == ID_BYTES)?;
        let id = Uuid::try_parse(&id).ok()?.hyphenated().to_string();
        let view = match view {
            ResultView::Manifest => ResultView::Manifest,
            ResultView::Data => ResultView::Data,
            ResultView::Block(number) => {
                let number = decoded(number)?;
                let read: u32 = number.parse().ok()?;
                // A block has exactly one path: `+7` and `007` are invalid.
                ResultView::Block(Some(read.to_string()).filter(|text| *text == *number)?)
            }
        };
        Some(Self { id, view, is_valid: true })
    }

    /// The URI of the resource; `None` if it cannot exist.
    pub(super) fn uri(&self) -> Option<String> {
        self.is_valid.then(|| self.requested_uri())
    }

    /// The same, without a check that it can exist.
    pub(super) fn requested_uri(&self) -> String {
        view_uri(&self.id, &self.view)
    }

    /// The file name without extension; `None` for a view that is not a file.
    pub(super) fn file_stem(&self) -> Option<String> {
        let id = self.id.get(..FILE_ID_DIGITS)?;
        match &self.view {
            ResultView::Manifest => None,
            ResultView::Block(number) => Some(format!("result-{id}-{number}")),
            ResultView::Data => Some(format!("result-{id}")),
        }
    }
}

pub(in super::super) fn view_uri(id: &str, view: &ResultView) -> String {
    match view {
        ResultView::Manifest => format!("{URI_PREFIX}{id}"),
        ResultView::Block(number) => format!("{URI_PREFIX}{id}/blocks/{number}"),
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
            let route = ResultRoute::parse(&path.replace("ID", ID));
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
