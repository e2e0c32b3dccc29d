//! Reads request bodies within limits. A rejected body is still read to its end, so that the connection can be reused.

use std::io;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::BodyExt;

use super::answer::{ProblemDetails, ProblemType};

/// Maximum number of further bytes of a rejected body that are read and discarded. Beyond it the connection closes.
const DISCARDED_BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(super) const REVOKED_REASON: &str = "the caller's credentials were revoked";

enum BodyError {
    TooLarge,
    Incomplete,
    TooSlow,
}

pub(super) async fn read(body: Body, bytes_max: usize, within: Duration) -> Result<Bytes, ProblemDetails> {
    let read = tokio::time::timeout(within, collect_bounded(body, bytes_max as u64)).await;
    read.unwrap_or(Err(BodyError::TooSlow)).map_err(|error| match error {
        BodyError::TooLarge => {
            ProblemDetails::new(ProblemType::BodyTooLarge, format!("the body is larger than {bytes_max} bytes"))
        }
        BodyError::Incomplete => ProblemDetails::bad_request("the body is incomplete"),
        BodyError::TooSlow => ProblemDetails::new(ProblemType::TooSlow, "the body arrived too slowly"),
    })
}

pub(super) async fn discard(body: Body, within: Duration) {
    // The response is a refusal in any case.
    let _ = tokio::time::timeout(within, collect_bounded(body, 0)).await;
}

/// The error that breaks a connection. The yield lets earlier data be flushed first.
pub(super) async fn broken_body_error(reason: &'static str) -> io::Error {
    tokio::task::yield_now().await;
    io::Error::other(reason)
}

async fn collect_bounded(mut body: Body, bytes_max: u64) -> Result<Bytes, BodyError> {
    let readable_bytes_max = bytes_max + DISCARDED_BYTES_MAX;
    if body.size_hint().lower() > readable_bytes_max {
        return Err(BodyError::TooLarge);
    }
    // Most bodies arrive in one piece. Further pieces are copied together at once, because a handle to a small piece
    // keeps a larger buffer alive.
    let mut only = Bytes::new();
    let mut joined: Vec<u8> = Vec::new();
    let mut seen_bytes = 0;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| BodyError::Incomplete)?.into_data() else { continue };
        seen_bytes += piece.len() as u64;
        if seen_bytes > readable_bytes_max {
            return Err(BodyError::TooLarge);
        }
        if seen_bytes > bytes_max {
            (only, joined) = (Bytes::new(), Vec::new());
        } else if seen_bytes == piece.len() as u64 {
            only = piece;
        } else {
            joined.extend_from_slice(&std::mem::take(&mut only));
            joined.extend_from_slice(&piece);
        }
    }
    if seen_bytes > bytes_max {
        return Err(BodyError::TooLarge);
    }
    Ok(if joined.is_empty() { only } else { joined.into() })
}
