//! Decompression of a body in pieces, with bounds on its expansion.

use std::fmt;

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder, Operation};

use crate::error::BodyError;
use crate::options::{BodyCoding, BodyLimits};

/// The size of a decompressed piece.
const PIECE_BYTES: usize = 64 << 10;
/// The largest window of gzip, as a power of two.
const GZIP_WINDOW_BITS: u8 = 15;
/// The largest window of zstd that a receiver of `Content-Encoding` must accept, as a power of two: 8 MiB.
const ZSTD_WINDOW_BITS: u32 = 23;
/// What a decoder takes beside its window.
const DECODER_BYTES: u64 = 64 << 10;
/// Smaller bodies may be of any ratio: they take no time.
const UNCHECKED_BYTES: u64 = 16 << 20;

/// Decompresses a body in pieces.
#[derive(Debug)]
pub(crate) struct BodyDecompressor {
    codec: Codec,
    output: Vec<u8>,
    bytes_in: u64,
    bytes_out: u64,
    decompressed_bytes_max: u64,
    expansion_max: u64,
}

enum Codec {
    Identity,
    Gzip {
        inflate: Box<Decompress>,
        /// Whether a member has begun and not ended.
        is_open: bool,
    },
    Zstd {
        decoder: Decoder<'static>,
        is_open: bool,
    },
}

tidegate_core::impl_debug!(Codec, "Codec");

impl BodyDecompressor {
    pub(crate) fn new(coding: BodyCoding, limits: &BodyLimits) -> Result<Self, BodyError> {
        let codec = match coding {
            BodyCoding::Identity => Codec::Identity,
            BodyCoding::Gzip => {
                Codec::Gzip { inflate: Box::new(Decompress::new_gzip(GZIP_WINDOW_BITS)), is_open: false }
            }
            BodyCoding::Zstd => {
                let decoder = Decoder::new().and_then(|mut decoder| {
                    decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_BITS)).map(|()| decoder)
                });
                let decoder = decoder.map_err(|error| BodyError::Options(format!("zstd cannot be set up: {error}")))?;
                Codec::Zstd { decoder, is_open: false }
            }
        };
        let output = if coding == BodyCoding::Identity { Vec::new() } else { vec![0; PIECE_BYTES] };
        let BodyLimits { decompressed_bytes_max, expansion_max, .. } = *limits;
        Ok(Self { codec, output, bytes_in: 0, bytes_out: 0, decompressed_bytes_max, expansion_max })
    }

    /// How many bytes of the body were received so far.
    pub(crate) fn bytes_in(&self) -> u64 {
        self.bytes_in
    }

    /// The memory of the decoder. Its window is what it has decompressed last.
    pub(crate) fn memory_bytes(&self) -> usize {
        let window_bits = match self.codec {
            Codec::Identity => return 0,
            Codec::Gzip { .. } => u32::from(GZIP_WINDOW_BITS),
            Codec::Zstd { .. } => ZSTD_WINDOW_BITS,
        };
        self.output.len() + as_length(self.bytes_out.min(1 << window_bits) + DECODER_BYTES)
    }

    /// Decompresses the beginning of `input`. Returns how many bytes of it are used, and the piece. Both are zero only if
    /// there is no input.
    pub(crate) fn next_piece<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, &'a [u8]), BodyError> {
        let mut used_in_all = 0;
        loop {
            let rest = input.get(used_in_all..).unwrap_or_default();
            let (used, written) = self.decompress(rest)?;
            used_in_all += used;
            self.bytes_in += used as u64;
            self.bytes_out += written as u64;
            self.check_size()?;
            if written == 0 && used == 0 && !rest.is_empty() {
                return Err(malformed("compressed as declared", self.bytes_in, &"the decoder makes no progress"));
            }
            if written > 0 || used_in_all == input.len() {
                let piece = match self.codec {
                    Codec::Identity => input.get(used_in_all - used..used_in_all),
                    _ => self.output.get(..written),
                };
                return Ok((used_in_all, piece.unwrap_or_default()));
            }
        }
    }

    fn decompress(&mut self, input: &[u8]) -> Result<(usize, usize), BodyError> {
        match &mut self.codec {
            Codec::Identity => {
                let length = input.len().min(PIECE_BYTES);
                Ok((length, length))
            }
            Codec::Gzip { inflate, is_open } => {
                if !*is_open {
                    if input.is_empty() {
                        return Ok((0, 0));
                    }
                    inflate.reset(true);
                    *is_open = true;
                }
                let before = (inflate.total_in(), inflate.total_out());
                let status = inflate.decompress(input, &mut self.output, FlushDecompress::None);
                let status = status.map_err(|error| malformed("gzip", self.bytes_in, &error))?;
                let counts = (as_length(inflate.total_in() - before.0), as_length(inflate.total_out() - before.1));
                *is_open = status != Status::StreamEnd;
                Ok(counts)
            }
            Codec::Zstd { decoder, is_open } => {
                if input.is_empty() && !*is_open {
                    return Ok((0, 0));
                }
                let status = decoder.run_on_buffers(input, &mut self.output);
                let status = status.map_err(|error| malformed("zstd", self.bytes_in, &error))?;
                *is_open = status.remaining > 0;
                Ok((status.bytes_read, status.bytes_written))
            }
        }
    }

    fn check_size(&self) -> Result<(), BodyError> {
        if self.bytes_out > self.decompressed_bytes_max {
            let max = self.decompressed_bytes_max;
            return Err(BodyError::TooLarge(format!("the body has more than {max} bytes after decompression")));
        }
        let is_checked = self.bytes_out > UNCHECKED_BYTES && !matches!(self.codec, Codec::Identity);
        if is_checked && self.bytes_out / self.expansion_max.max(1) > self.bytes_in {
            let max = self.expansion_max;
            return Err(BodyError::TooLarge(format!(
                "the body is more than {max} times larger than its compressed form; send it with less compression"
            )));
        }
        Ok(())
    }

    /// Fails if the body ended within a member or frame.
    pub(crate) fn finish(&self) -> Result<(), BodyError> {
        let (name, is_open) = match &self.codec {
            Codec::Identity => return Ok(()),
            Codec::Gzip { is_open, .. } => ("gzip", *is_open),
            Codec::Zstd { is_open, .. } => ("zstd", *is_open),
        };
        if self.bytes_in == 0 {
            return Err(BodyError::Incomplete(format!("the body is empty, which is not {name}")));
        }
        if is_open {
            return Err(BodyError::Incomplete(format!("the compressed body ({name}) ends before it is complete")));
        }
        Ok(())
    }
}

fn malformed(name: &str, position: u64, error: &dyn fmt::Display) -> BodyError {
    BodyError::Malformed(format!("the body is not {name} after byte {position}: {error}"))
}

fn as_length(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
