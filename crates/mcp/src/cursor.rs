//! Opaque cursors of paged lists: the key of the last entry sent, so that a changed list continues at the right
//! position.
//!
//! [MCP 2026-07-28, Pagination](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination)

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::jsonrpc::RpcError;

/// The number of entries per page.
pub(crate) const PAGE_ENTRIES: usize = 250;

/// One page of `entries`, which must be in list order, and the cursor of the next page.
///
/// # Errors
/// `-32602` if `cursor` is invalid, belongs to another list, or its entry no longer exists.
pub(crate) fn paginate<T>(
    list: &str,
    mut entries: Vec<T>,
    key: impl Fn(&T) -> &str,
    cursor: Option<&str>,
) -> Result<(Vec<T>, Option<String>), RpcError> {
    if let Some(cursor) = cursor {
        let last = decode_cursor(list, cursor).ok_or_else(|| invalid_cursor_error(cursor))?;
        let position =
            entries.iter().position(|entry| key(entry) == last).ok_or_else(|| invalid_cursor_error(cursor))?;
        entries.drain(..=position);
    }
    let next = (entries.len() > PAGE_ENTRIES).then(|| encode_cursor(list, key(&entries[PAGE_ENTRIES - 1])));
    entries.truncate(PAGE_ENTRIES);
    Ok((entries, next))
}

fn encode_cursor(list: &str, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}\n{key}"))
}

fn decode_cursor(list: &str, cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    Some(text.strip_prefix(list)?.strip_prefix('\n')?.to_owned())
}

fn invalid_cursor_error(cursor: &str) -> RpcError {
    RpcError::invalid_params(format!("the cursor {cursor:?} is unknown or no longer valid; begin again without one"))
}
