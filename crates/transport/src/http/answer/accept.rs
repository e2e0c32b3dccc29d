//! Content negotiation: the formats that a client accepts, and the one it prefers.
//!
//! [RFC 9110, Accept](https://www.rfc-editor.org/rfc/rfc9110#name-accept)

use axum::http::{HeaderMap, header};
use tidegate_core::Format;

use super::problem::{ProblemDetails, ProblemType};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Accept {
    /// The formats, most preferred first.
    formats: Vec<Format>,
    /// Media ranges for an image, sound or file that a tool may return.
    files: Vec<(String, String)>,
}

struct MediaRange {
    kind: String,
    subtype: String,
    quality: u16,
}

impl Accept {
    /// Reads the headers, unless `format` names one. Without a preference, the order in `offered` decides.
    pub(in crate::http) fn read(
        headers: &HeaderMap,
        format: Option<&str>,
        offered: &[Format],
    ) -> Result<Self, ProblemDetails> {
        if let Some(name) = format {
            let format = Format::parse(name, offered).ok_or_else(|| {
                let names: Vec<&str> = offered.iter().map(|format| format.name()).collect();
                let detail = format!("unknown format {name:?}; available formats: {}", names.join(", "));
                ProblemDetails::bad_request(detail).with_choices(names)
            })?;
            return Ok(Self { formats: vec![format], files: Vec::new() });
        }
        let text: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        let text = if text.is_empty() { "*/*".to_owned() } else { text.join(",") };
        let accept = Self::parse_header(&text, offered);
        if accept.formats.is_empty() && accept.files.is_empty() { Err(none_acceptable(offered)) } else { Ok(accept) }
    }

    pub(in crate::http) fn best_of(
        headers: &HeaderMap,
        format: Option<&str>,
        offered: &[Format],
    ) -> Result<Format, ProblemDetails> {
        let accept = Self::read(headers, format, offered)?;
        accept.formats.first().copied().ok_or_else(|| none_acceptable(offered))
    }

    fn parse_header(text: &str, offered: &[Format]) -> Self {
        let ranges: Vec<MediaRange> = text.split(',').filter_map(MediaRange::parse).collect();
        let mut formats: Vec<(u16, u8, Format)> = offered
            .iter()
            .filter_map(|&format| {
                let fitting = ranges.iter().filter_map(|range| Some((range.match_exactness(format)?, range.quality)));
                let (exactness, quality) = fitting.max_by_key(|(exactness, _)| *exactness)?;
                (quality > 0).then_some((quality, exactness, format))
            })
            .collect();
        // Ties keep the order of the formats: the sort is stable.
        formats.sort_by_key(|(quality, exactness, _)| std::cmp::Reverse((*quality, *exactness)));
        let is_file = |range: &&MediaRange| {
            let is_octets = range.kind == "application" && range.subtype == "octet-stream";
            range.quality > 0 && (is_octets || matches!(range.kind.as_str(), "image" | "audio" | "video" | "font"))
        };
        Self {
            formats: formats.into_iter().map(|(_, _, format)| format).collect(),
            files: ranges.iter().filter(is_file).map(|range| (range.kind.clone(), range.subtype.clone())).collect(),
        }
    }

    pub(in crate::http) fn best(&self) -> Format {
        self.formats.first().copied().unwrap_or(Format::Json)
    }

    pub(in crate::http) fn accepts_tables(&self) -> bool {
        !self.formats.is_empty()
    }

    /// The best format for an answer that is not a table: JSON or text.
    pub(in crate::http) fn best_of_blocks(&self) -> Option<Format> {
        self.formats.iter().copied().find(|format| format.writes_content())
    }

    pub(in crate::http) fn accepts_file(&self, media_type: &str) -> bool {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let Some((kind, subtype)) = essence.split_once('/') else { return false };
        self.files.iter().any(|(of_kind, of_subtype)| of_kind == kind && (of_subtype == "*" || of_subtype == subtype))
    }
}

impl MediaRange {
    /// Parses `text/*;q=0.5`; `None` for an invalid media range.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';');
        let (kind, subtype) = parts.next()?.trim().split_once('/')?;
        let quality = parts.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| parse_quality(value.trim()))
        });
        Some(Self {
            kind: kind.to_ascii_lowercase(),
            subtype: subtype.to_ascii_lowercase(),
            quality: quality.unwrap_or(1_000),
        })
    }

    /// How exactly the range names `format`; `None` if it does not match.
    fn match_exactness(&self, format: Format) -> Option<u8> {
        if format.has_media_type(&format!("{}/{}", self.kind, self.subtype)) {
            return Some(2);
        }
        match (self.kind.as_str(), self.subtype.as_str()) {
            ("*", "*") => Some(0),
            (kind, "*") if format.media_type().split_once('/').is_some_and(|(of, _)| of == kind) => Some(1),
            _ => None,
        }
    }
}

fn none_acceptable(offered: &[Format]) -> ProblemDetails {
    not_acceptable("none of the media types in Accept is available", offered)
}

/// The refusal of an answer that has only the media types of `offered`.
pub(in crate::http) fn not_acceptable(subject: &str, offered: &[Format]) -> ProblemDetails {
    let mut types: Vec<&str> = Vec::new();
    for media_type in offered.iter().map(|format| format.media_type()) {
        // Two formats of JSON have one media type.
        if !types.contains(&media_type) {
            types.push(media_type);
        }
    }
    let detail = format!("{subject}; available types: {}", types.join(", "));
    ProblemDetails::new(ProblemType::NotAcceptable, detail).with_choices(types)
}

/// A weight in thousandths. A value that is not a number counts as the smallest nonzero weight.
pub(in crate::http) fn parse_quality(text: &str) -> u16 {
    let weight: f32 = text.parse().unwrap_or(0.001);
    // Between 0 and 1000, which fits.
    (weight.clamp(0.0, 1.0) * 1_000.0).round() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefers_highest_quality_then_most_specific_range() {
        let mut table = String::new();
        for output in [
            "*/*",
            "text/*",
            "text/csv, */*",
            "application/json;q=0.5, text/csv",
            "text/*;q=0.3, text/plain, application/json;q=0.2",
            "TEXT/Markdown ; charset=utf-8 ; Q=1",
            "application/x-ndjson;q=0, application/*",
            "application/jsonl",
            "application/vnd.apache.arrow.stream, */*;q=0.1",
            "application/vnd.apache.parquet",
            "text/html, application/xhtml+xml, */*;q=0.8",
            "image/png",
            "application/xml",
            "text/csv;q=0",
            "nonsense",
        ] {
            let accept = Accept::parse_header(output, &Format::FOR_REST);
            let names: Vec<&str> = accept.formats.iter().map(|format| format.name()).collect();
            table.push_str(&format!("{output:50} {} {:?}\n", names.join(" "), accept.files));
        }
        insta::assert_snapshot!(table, @r#"
        */*                                                json ndjson csv arrow parquet table markdown mcp []
        text/*                                             csv table markdown []
        text/csv, */*                                      csv json ndjson arrow parquet table markdown mcp []
        application/json;q=0.5, text/csv                   csv json mcp []
        text/*;q=0.3, text/plain, application/json;q=0.2   table csv markdown json mcp []
        TEXT/Markdown ; charset=utf-8 ; Q=1                markdown []
        application/x-ndjson;q=0, application/*            json arrow parquet mcp []
        application/jsonl                                  ndjson []
        application/vnd.apache.arrow.stream, */*;q=0.1     arrow json ndjson csv parquet table markdown mcp []
        application/vnd.apache.parquet                     parquet []
        text/html, application/xhtml+xml, */*;q=0.8        json ndjson csv arrow parquet table markdown mcp []
        image/png                                           [("image", "png")]
        application/xml                                     []
        text/csv;q=0                                        []
        nonsense                                            []
        "#);
    }
}
