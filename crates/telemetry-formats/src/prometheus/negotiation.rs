//! Which version of remote write a request has.

use crate::error::FormatError;

/// A version of remote write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteWriteVersion {
    /// 1.0: the message `prometheus.WriteRequest`.
    V1,
    /// 2.0: the message `io.prometheus.write.v2.Request`.
    V2,
}

const MEDIA_TYPE: &str = "application/x-protobuf";
const CODING: &str = "snappy";

impl RemoteWriteVersion {
    /// The version from the headers `Content-Type` and `Content-Encoding` of a request. Without a parameter `proto`, it is
    /// 1.0.
    ///
    /// # Errors
    /// `Unsupported` with the media types that are read, for an answer with status 415.
    pub fn from_headers(content_type: Option<&str>, content_encoding: Option<&str>) -> Result<Self, FormatError> {
        let coding = content_encoding.unwrap_or_default().trim();
        if !coding.eq_ignore_ascii_case(CODING) {
            let message = format!("the coding {coding:?} is not read; use Content-Encoding: {CODING}");
            return Err(FormatError::Unsupported(message));
        }
        let content_type = content_type.unwrap_or(MEDIA_TYPE);
        Self::from_content_type(content_type).ok_or_else(|| {
            let [one, two] = [Self::V1, Self::V2].map(Self::content_type);
            let message = format!("the media type {content_type:?} is not read; use {one} or {two}");
            FormatError::Unsupported(message)
        })
    }

    fn from_content_type(content_type: &str) -> Option<Self> {
        let mut parts = content_type.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case(MEDIA_TYPE) {
            return None;
        }
        let mut version = None;
        for part in parts {
            let Some((name, value)) = part.split_once('=') else { continue };
            if !name.trim().eq_ignore_ascii_case("proto") {
                continue;
            }
            let message = value.trim().trim_matches('"');
            let named = [Self::V1, Self::V2].into_iter().find(|version| version.message_name() == message)?;
            if version.replace(named).is_some_and(|other| other != named) {
                return None;
            }
        }
        Some(version.unwrap_or(Self::V1))
    }

    /// The value of the parameter `proto`.
    #[must_use]
    pub const fn message_name(self) -> &'static str {
        match self {
            Self::V1 => "prometheus.WriteRequest",
            Self::V2 => "io.prometheus.write.v2.Request",
        }
    }

    /// The header `Content-Type` of requests.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::V1 => "application/x-protobuf;proto=prometheus.WriteRequest",
            Self::V2 => "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_have_versions() {
        let version = |content_type| RemoteWriteVersion::from_headers(content_type, Some("snappy"));
        assert_eq!(version(None), Ok(RemoteWriteVersion::V1));
        assert_eq!(version(Some("application/x-protobuf")), Ok(RemoteWriteVersion::V1));
        assert_eq!(version(Some("Application/X-Protobuf; charset=utf-8")), Ok(RemoteWriteVersion::V1));
        assert_eq!(
            version(Some("application/x-protobuf; proto=\"prometheus.WriteRequest\"")),
            Ok(RemoteWriteVersion::V1)
        );
        assert_eq!(
            version(Some("application/x-protobuf;proto=io.prometheus.write.v2.Request")),
            Ok(RemoteWriteVersion::V2)
        );
        for wrong in [
            "application/json",
            "",
            "application/x-protobuf;proto=io.prometheus.write.v3.Request",
            "application/x-protobuf;proto=prometheus.WriteRequest;proto=io.prometheus.write.v2.Request",
        ] {
            assert!(matches!(version(Some(wrong)), Err(FormatError::Unsupported(_))), "{wrong}");
        }
        for coding in [None, Some(""), Some("gzip")] {
            assert!(RemoteWriteVersion::from_headers(None, coding).is_err(), "{coding:?}");
        }
    }
}
