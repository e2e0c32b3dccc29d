//! Reading request bodies within their bounds. A refused body is read to its end all the same, so
//! that its connection lives on.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::BodyExt;

/// Of a body that is refused this much more is read and thrown away; beyond it the connection closes.
const DISCARDED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLarge,
    Incomplete,
    TooSlow,
}

/// The whole body.
pub(super) async fn read(body: Body, bytes_max: usize, within: Duration) -> Result<Bytes, BodyError> {
    tokio::time::timeout(within, collect_bounded(body, bytes_max as u64)).await.unwrap_or(Err(BodyError::TooSlow))
}

/// Throws the body away.
pub(super) async fn discard(body: Body, within: Duration) {
    // Whatever comes of it, the answer is a refusal.
    let _ = tokio::time::timeout(within, collect_bounded(body, 0)).await;
}

async fn collect_bounded(mut body: Body, bytes_max: u64) -> Result<Bytes, BodyError> {
    let readable_bytes_max = bytes_max + DISCARDED_BYTES_MAX;
    if body.size_hint().lower() > readable_bytes_max {
        return Err(BodyError::TooLarge);
    }
    // Most bodies come in one piece. Further ones are joined at once: each handle of a small piece keeps more than it.
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
