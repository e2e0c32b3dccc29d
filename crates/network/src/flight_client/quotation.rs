//! How a server of another program reads quotation marks.
//!
//! In some servers `"name"` is a text, `'it''s'` is `its`, or a backslash begins an escape. A statement would then have
//! another answer without an error. So two statements are tried, before the first one of a caller is sent.

use std::time::Duration;

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow_flight::sql::{CommandStatementQuery, ProstMessageExt};
use tidegate_core::{Error, ErrorKind, Principal};

use super::connection::NodeConnection;
use super::node_client::NodeClient;
use super::other_catalog::{is_refused, reported_quote};

/// Texts as literals: what a server with standard texts reads, and what any server reads.
const STANDARD_TEXT: (&str, &str) = (r"'a''b\c'", r"a'b\c");
const PLAIN_TEXT: (&str, &str) = ("'a'", "a");

/// How a server reads quotation marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quotation {
    /// The quotation mark of identifiers.
    pub(super) identifiers: char,
    /// Whether two quotation marks in a text are one, and a backslash is itself.
    pub(super) has_standard_texts: bool,
}

/// Tries how the server reads quotation marks.
///
/// # Errors
/// `Failed` when it reads neither `"` nor backquotes as those of identifiers.
pub(super) async fn find(
    client: &NodeClient,
    connection: &NodeConnection,
    principal: &Principal,
    within: Duration,
) -> Result<Quotation, Error> {
    let reported = reported_quote(client, connection, principal, within).await?;
    let first = reported.filter(|quote| *quote == '`').unwrap_or('"');
    let mut refusal = None;
    for identifiers in [first, if first == '`' { '"' } else { '`' }] {
        for (has_standard_texts, (literal, expected)) in [(true, STANDARD_TEXT), (false, PLAIN_TEXT)] {
            match client.read_text(connection, principal, (identifiers, literal), within).await {
                Ok(text) if text.as_deref() == Some(expected) => {
                    return Ok(Quotation { identifiers, has_standard_texts });
                }
                Ok(_) => {}
                Err(error) if is_refused(&error) => refusal = Some(error),
                Err(error) => return Err(error),
            }
        }
    }
    let message = format!("node {:?} quotes identifiers neither with \" nor with backquotes", client.name);
    let error = Error::new(ErrorKind::Failed, message);
    Err(match refusal {
        Some(refusal) => error.with_hint(refusal.message()),
        None => error,
    })
}

impl NodeClient {
    /// What the server reads as `literal`, through a quoted name.
    async fn read_text(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        (quote, literal): (char, &str),
        within: Duration,
    ) -> Result<Option<String>, Error> {
        let query = format!("SELECT {quote}x y{quote} FROM (SELECT {literal} AS {quote}x y{quote}) AS t");
        let command = CommandStatementQuery { query, transaction_id: None };
        let batches = self.collect(connection, principal, command.as_any(), within).await?;
        let column = batches.iter().find(|batch| batch.num_rows() > 0).and_then(|batch| batch.columns().first());
        let text = column.and_then(|column| cast(column, &DataType::Utf8).ok());
        let text = text.filter(|text| text.is_valid(0));
        Ok(text.map(|text| text.as_string::<i32>().value(0).to_owned()))
    }
}
