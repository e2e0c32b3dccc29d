//! The encoding of a text file: declared, marked in the file, or certain from its bytes; and the conversion to UTF-8
//! during reading.
//!
//! Bytes beyond ASCII stand for different letters in different encodings, and no statistics distinguish `è` of Latin-1
//! from `č` of Latin-2. So a file that is not UTF-8 is accepted without a declaration only if all such bytes are
//! letters that the Latin encodings of Europe have in common (`ä`, `é`, `ß`, …), each alone next to an ASCII letter. If
//! another byte follows later, reading fails.

use std::io::{self, BufRead, Read};

use encoding_rs::{
    DecoderResult, Encoding, ISO_8859_2, ISO_8859_15, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1250, WINDOWS_1252,
    WINDOWS_1254, WINDOWS_1257,
};

/// The character encoding of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TextEncoding {
    encoding: &'static Encoding,
    /// Whether the encoding was detected. Then only bytes with a certain meaning are accepted.
    is_recognised: bool,
}

impl Default for TextEncoding {
    fn default() -> Self {
        Self { encoding: UTF_8, is_recognised: false }
    }
}

/// The Latin encodings in which a byte must have the same meaning.
const LATIN: [&Encoding; 6] = [WINDOWS_1252, ISO_8859_15, ISO_8859_2, WINDOWS_1250, WINDOWS_1254, WINDOWS_1257];
const UTF_16_BYTES_MIN: usize = 8;

impl TextEncoding {
    /// Parses a name such as `utf-8`, `latin-1`, `windows-1252`, `utf-16` or `shift_jis`.
    pub fn parse(name: &str) -> Option<Self> {
        let folded = name.trim().to_ascii_lowercase();
        let label = match folded.as_str() {
            "utf-16" | "utf16" => "utf-16le",
            other => match other.strip_prefix("latin-") {
                Some(number) => &format!("latin{number}"),
                None => other,
            },
        };
        let encoding = Encoding::for_label_no_replacement(label.as_bytes())?;
        Some(Self { encoding, is_recognised: false })
    }

    pub(crate) fn name(self) -> &'static str {
        if self.encoding == WINDOWS_1252 { "latin-1" } else { self.encoding.name() }
    }

    pub(crate) fn is_recognised(self) -> bool {
        self.is_recognised
    }

    /// Detects the encoding of a text that begins with `sample`. The error names the first uncertain byte.
    pub(crate) fn recognise(sample: &[u8]) -> Result<Self, String> {
        if let Some((encoding, _)) = Encoding::for_bom(sample) {
            return Ok(Self { encoding, is_recognised: false });
        }
        if sample.contains(&0) {
            return detect_utf16(sample).ok_or_else(|| "it is not a text file".to_owned());
        }
        match std::str::from_utf8(sample) {
            Ok(_) => Ok(Self::default()),
            // The sample may end within a character.
            Err(error) if error.error_len().is_none() => Ok(Self::default()),
            Err(error) => match sample.iter().enumerate().find(|(position, _)| !is_certain_at(sample, *position)) {
                None => Ok(Self { encoding: WINDOWS_1252, is_recognised: true }),
                Some((position, byte)) => {
                    let position = position.max(error.valid_up_to());
                    Err(format!(
                        "it is not UTF-8 text, and byte {byte:#04x} at {position} does not identify its encoding"
                    ))
                }
            },
        }
    }

    pub(crate) fn decode<'a>(self, text: impl Read + Send + 'a) -> Box<dyn Read + Send + 'a> {
        if self.encoding == UTF_8 {
            return Box::new(text);
        }
        Box::new(Utf8Reader {
            inner: text,
            encoding: self,
            decoder: self.encoding.new_decoder_with_bom_removal(),
            input: vec![0; BUFFER_BYTES],
            output: Vec::with_capacity(BUFFER_BYTES * 3 + 16),
            bytes_returned: 0,
            has_ended: false,
        })
    }
}

/// Detects UTF-16 without a byte order mark: in Western text nearly every second byte is zero.
fn detect_utf16(sample: &[u8]) -> Option<TextEncoding> {
    let zeros = |offset: usize| sample.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd, half) = (zeros(0), zeros(1), sample.len() / 2);
    if sample.len() < UTF_16_BYTES_MIN {
        return None;
    }
    let encoding = match () {
        () if even == 0 && odd * 10 >= half * 9 => UTF_16LE,
        () if odd == 0 && even * 10 >= half * 9 => UTF_16BE,
        () => return None,
    };
    let (_, has_errors) = encoding.decode_without_bom_handling(&sample[..half * 2]);
    (!has_errors).then_some(TextEncoding { encoding, is_recognised: false })
}

/// Whether the byte is the same letter in all [`LATIN`] encodings.
fn is_common_letter(byte: u8) -> bool {
    let letter = |encoding: &'static Encoding| encoding.decode_without_bom_handling(&[byte]).0.chars().next();
    byte.is_ascii() || {
        let first = letter(LATIN[0]);
        first.is_some_and(char::is_alphabetic) && LATIN.iter().all(|encoding| letter(encoding) == first)
    }
}

/// Whether the meaning of the byte at `position` is certain: a common letter, alone next to an ASCII letter.
fn is_certain_at(sample: &[u8], position: usize) -> bool {
    let byte = sample[position];
    if byte.is_ascii() {
        return true;
    }
    let before = position.checked_sub(1).map(|previous| sample[previous]);
    let after = sample.get(position + 1).copied();
    let is_letter = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphabetic());
    let is_foreign = |byte: Option<u8>| byte.is_some_and(|byte| !byte.is_ascii());
    is_common_letter(byte) && (is_letter(before) || is_letter(after)) && !is_foreign(before) && !is_foreign(after)
}

const BUFFER_BYTES: usize = 16 << 10;

struct Utf8Reader<R> {
    inner: R,
    encoding: TextEncoding,
    decoder: encoding_rs::Decoder,
    input: Vec<u8>,
    output: Vec<u8>,
    bytes_returned: usize,
    has_ended: bool,
}

impl<R: Read> Utf8Reader<R> {
    fn fill(&mut self) -> io::Result<()> {
        let read = self.inner.read(&mut self.input)?;
        let input = &self.input[..read];
        self.has_ended = read == 0;
        if self.encoding.is_recognised
            && let Some(byte) = input.iter().find(|byte| !is_common_letter(**byte))
        {
            return Err(invalid_data(format!(
                "byte {byte:#04x} has no unambiguous meaning; declare the encoding of the table"
            )));
        }
        self.output.clear();
        self.bytes_returned = 0;
        let needed = self.decoder.max_utf8_buffer_length_without_replacement(input.len()).unwrap_or(BUFFER_BYTES * 4);
        self.output.resize(needed, 0);
        let (result, _, written) =
            self.decoder.decode_to_utf8_without_replacement(input, &mut self.output, self.has_ended);
        self.output.truncate(written);
        match result {
            DecoderResult::InputEmpty => Ok(()),
            DecoderResult::OutputFull => Err(invalid_data("it cannot be converted to UTF-8".to_owned())),
            DecoderResult::Malformed(..) => Err(invalid_data(format!("it is not {} text", self.encoding.name()))),
        }
    }
}

impl<R: Read> Read for Utf8Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.bytes_returned == self.output.len() && !self.has_ended {
            self.fill()?;
        }
        let count = buffer.len().min(self.output.len() - self.bytes_returned);
        buffer[..count].copy_from_slice(&self.output[self.bytes_returned..self.bytes_returned + count]);
        self.bytes_returned += count;
        Ok(count)
    }
}

fn invalid_data(subject: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, subject)
}

pub(crate) fn skip_lines(text: &mut impl BufRead, count: usize) -> io::Result<()> {
    for _ in 0..count {
        text.skip_until(b'\n')?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<String, String> {
        let encoding = TextEncoding::recognise(bytes)?;
        let mut text = String::new();
        encoding.decode(bytes).read_to_string(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    #[test]
    fn recognises_unambiguous_encodings() {
        assert_eq!(read("Zürich".as_bytes()), Ok("Zürich".to_owned()));
        assert_eq!(read(b"Z\xFCrich;K\xF6ln;Orl\xE9ans"), Ok("Zürich;Köln;Orléans".to_owned()));
        let utf_16: Vec<u8> = "a;Zürich\r\n1;2".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&utf_16), Ok("a;Zürich\r\n1;2".to_owned()));
        assert_eq!(read(&[b"\xFF\xFE", utf_16.as_slice()].concat()), Ok("a;Zürich\r\n1;2".to_owned()));
    }

    #[test]
    fn rejects_ambiguous_encodings() {
        // French, Czech, Russian, and a code page of DOS.
        for bytes in [&b"m\xE8re"[..], b"\xE8esk\xFD", b"\xCC\xEE\xF1\xEA\xE2\xE0", b"Z\x81rich"] {
            assert!(read(bytes).unwrap_err().contains("does not identify its encoding"), "{bytes:?}");
        }
        assert_eq!(read(b"\x00\x01\x02\x03PK"), Err("it is not a text file".to_owned()));
        let late = TextEncoding::recognise(b"Z\xFCrich").unwrap();
        let error = late.decode(&b"Z\xFCrich m\xE8re"[..]).read_to_string(&mut String::new()).unwrap_err();
        assert!(error.to_string().contains("declare the encoding"), "{error}");
    }

    #[test]
    fn parses_encoding_names() {
        for name in ["utf-8", "latin-1", "Latin1", "windows-1252", "cp1251", "utf-16", "utf-16be", "shift_jis"] {
            assert!(TextEncoding::parse(name).is_some(), "{name}");
        }
        assert_eq!(TextEncoding::parse("latin-1"), TextEncoding::parse("windows-1252"));
        assert_eq!(TextEncoding::parse("ebcdic"), None);
    }
}
