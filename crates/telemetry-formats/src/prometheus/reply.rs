//! The answer to a request of remote write.

use super::{RemoteWriteRows, RemoteWriteVersion};
use crate::error::cut_text;

const SAMPLES_HEADER: &str = "X-Prometheus-Remote-Write-Samples-Written";
const HISTOGRAMS_HEADER: &str = "X-Prometheus-Remote-Write-Histograms-Written";
const EXEMPLARS_HEADER: &str = "X-Prometheus-Remote-Write-Exemplars-Written";

/// The longest message of an answer, in bytes. The rest is left out.
const MESSAGE_BYTES_MAX: usize = 4_096;
const NO_CONTENT: u16 = 204;
const BAD_REQUEST: u16 = 400;

/// How many records of each kind are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenCounts {
    /// Samples, with those that mark the end of a series.
    pub samples: u64,
    /// Native histograms, which are never stored.
    pub histograms: u64,
    /// Exemplars.
    pub exemplars: u64,
}

impl WrittenCounts {
    /// The headers that answers of version 2.0 must have, also when nothing was stored.
    #[must_use]
    pub fn headers(self) -> [(&'static str, String); 3] {
        [
            (SAMPLES_HEADER, self.samples.to_string()),
            (HISTOGRAMS_HEADER, self.histograms.to_string()),
            (EXEMPLARS_HEADER, self.exemplars.to_string()),
        ]
    }
}

/// The answer once the rows of a request are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteWriteReply {
    /// 204; or 400 if records were left out, so that the sender reports them and does not repeat the request.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body, as plain text. Empty with status 204.
    pub message: String,
}

impl RemoteWriteRows {
    /// The answer once all of the rows are stored.
    #[must_use]
    pub fn reply(&self, version: RemoteWriteVersion) -> RemoteWriteReply {
        let message = self.tables.rejected.to_string();
        RemoteWriteReply {
            status: if self.tables.rejected.count == 0 { NO_CONTENT } else { BAD_REQUEST },
            headers: match version {
                RemoteWriteVersion::V1 => Vec::new(),
                RemoteWriteVersion::V2 => self.written.headers().to_vec(),
            },
            message: cut_text(&message, MESSAGE_BYTES_MAX).to_owned(),
        }
    }
}
