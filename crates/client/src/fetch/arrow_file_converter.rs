//! Makes a file of Arrow from the stream that is the answer of a call.

use arrow::buffer::Buffer;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use bytes::Bytes;
use tidegate_core::{Error, Format};
use tidegate_query::RowEncoder;

use super::error::FetchError;

/// Converts a stream batch by batch, so that no more than one is in memory.
#[derive(Debug, Default)]
pub struct ArrowFileConverter {
    decoder: StreamDecoder,
    /// From the schema on.
    encoder: Option<RowEncoder>,
}

impl ArrowFileConverter {
    /// The bytes of the file that the next `bytes` of the stream complete, possibly none.
    ///
    /// # Errors
    /// Only because of an internal error.
    pub fn write(&mut self, bytes: Bytes) -> Result<Vec<u8>, FetchError> {
        let (mut rest, mut written) = (Buffer::from(bytes), Vec::new());
        while let Some(batch) = self.decoder.decode(&mut rest).map_err(stream_error)? {
            written.extend_from_slice(&self.encoder()?.write(&batch).map_err(FetchError::Format)?);
        }
        Ok(written)
    }

    /// The end of the file.
    ///
    /// # Errors
    /// If the stream has no end.
    pub fn finish(mut self) -> Result<Bytes, FetchError> {
        self.decoder.finish().map_err(stream_error)?;
        self.encoder()?;
        let encoder = self.encoder.ok_or_else(missing_schema)?;
        encoder.finish(false).map_err(FetchError::Format)
    }

    fn encoder(&mut self) -> Result<&mut RowEncoder, FetchError> {
        let encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => {
                let schema = self.decoder.schema().ok_or_else(missing_schema)?;
                RowEncoder::new(Format::ArrowFile, &schema).map_err(FetchError::Format)?
            }
        };
        Ok(self.encoder.insert(encoder))
    }
}

fn missing_schema() -> FetchError {
    FetchError::Format(Error::internal("the answer has no schema"))
}

fn stream_error(error: ArrowError) -> FetchError {
    FetchError::Format(Error::internal(format!("the answer is no stream of Arrow: {error}")))
}
