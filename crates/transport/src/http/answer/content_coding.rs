//! Bodies that are compressed by gzip or zstd for clients that accept them.
//!
//! The encoder flushes as soon as it has to wait for further bytes, so that the first rows of a result that is still being
//! written arrive before the last ones exist.
//!
//! [RFC 9110, 12.5.3](https://www.rfc-editor.org/rfc/rfc9110#name-accept-encoding)

use std::io;

use async_compression::Level;
use async_compression::tokio::bufread::{GzipEncoder, ZstdEncoder};
use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use futures::stream::BoxStream;
use tokio_util::io::{ReaderStream, StreamReader};

use super::accept::parse_quality;

const PIECE_BYTES: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum ContentCoding {
    Zstd,
    Gzip,
}

impl ContentCoding {
    /// In the order of preference at equal weight: zstd is smaller and needs less work.
    const ALL: [Self; 2] = [Self::Zstd, Self::Gzip];

    /// The coding that a client prefers; `None` if it prefers the identity coding.
    pub(in crate::http) fn negotiate(headers: &HeaderMap) -> Option<Self> {
        let text: Vec<&str> =
            headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).collect();
        Self::choose(&text.join(","))
    }

    fn choose(text: &str) -> Option<Self> {
        let weight_of = |names: &[&str]| {
            let of_name = |member: &str| {
                let (name, parameters) = member.split_once(';').unwrap_or((member, ""));
                let is_named = names.iter().any(|known| name.trim().eq_ignore_ascii_case(known));
                let weight = parameters.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
                is_named.then(|| weight.map_or(1_000, |(_, weight)| parse_quality(weight.trim())))
            };
            text.split(',').filter_map(of_name).max().unwrap_or_default()
        };
        let least = weight_of(&["identity"]).max(1);
        let best = Self::ALL.into_iter().rev().max_by_key(|coding| weight_of(coding.names()))?;
        (weight_of(best.names()) >= least).then_some(best)
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Zstd => &["zstd"],
            Self::Gzip => &["gzip", "x-gzip"],
        }
    }

    pub(in crate::http) fn name(self) -> &'static str {
        self.names()[0]
    }

    pub(in crate::http) fn encode(self, pieces: BoxStream<'static, io::Result<Bytes>>) -> Body {
        let reader = StreamReader::new(pieces);
        match self {
            Self::Zstd => {
                let encoder = ZstdEncoder::with_quality(reader, Level::Fastest);
                Body::from_stream(ReaderStream::with_capacity(encoder, PIECE_BYTES))
            }
            Self::Gzip => {
                let encoder = GzipEncoder::with_quality(reader, Level::Fastest);
                Body::from_stream(ReaderStream::with_capacity(encoder, PIECE_BYTES))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiates_content_coding() {
        let mut table = String::new();
        for text in [
            "",
            "*",
            "identity",
            "br",
            "gzip",
            "x-gzip",
            "GZIP;Q=0.5",
            "zstd",
            "gzip, deflate, br, zstd",
            "gzip;q=1.0, zstd;q=0.5",
            "gzip;q=0.5, identity",
            "gzip, identity;q=0.5",
            "gzip;q=0",
            "zstd;q=0, gzip;q=0.1, *;q=0",
        ] {
            table.push_str(&format!("{text:30} {:?}\n", ContentCoding::choose(text)));
        }
        insta::assert_snapshot!(table, @r#"
                                       None
        *                              None
        identity                       None
        br                             None
        gzip                           Some(Gzip)
        x-gzip                         Some(Gzip)
        GZIP;Q=0.5                     Some(Gzip)
        zstd                           Some(Zstd)
        gzip, deflate, br, zstd        Some(Zstd)
        gzip;q=1.0, zstd;q=0.5         Some(Gzip)
        gzip;q=0.5, identity           None
        gzip, identity;q=0.5           Some(Gzip)
        gzip;q=0                       None
        zstd;q=0, gzip;q=0.1, *;q=0    Some(Gzip)
        "#);
    }
}
