//! The encoding of a text file: declared, marked in the file, or guessed from its bytes; and the conversion to UTF-8
//! during reading.
//!
//! Bytes beyond ASCII stand for different letters in different encodings. A detector that web browsers use guesses the one of
//! a file that is not UTF-8; the catalog says what was guessed. If the guess gives control characters, the file is refused.

use std::io::{self, BufRead, Read};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// The character encoding of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TextEncoding {
    encoding: &'static Encoding,
    /// Whether the encoding was guessed.
    is_guessed: bool,
}

impl Default for TextEncoding {
    fn default() -> Self {
        Self { encoding: UTF_8, is_guessed: false }
    }
}

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
        Some(Self { encoding, is_guessed: false })
    }

    pub(crate) fn name(self) -> &'static str {
        self.encoding.name()
    }

    pub(crate) fn is_guessed(self) -> bool {
        self.is_guessed
    }

    /// Detects the encoding of a text that begins with `sample`. The error is the reason why that is not possible.
    pub(crate) fn recognise(sample: &[u8]) -> Result<Self, String> {
        if let Some((encoding, _)) = Encoding::for_bom(sample) {
            return Ok(Self { encoding, is_guessed: false });
        }
        if sample.contains(&0) {
            return detect_utf16(sample).ok_or_else(|| "it is not a text file".to_owned());
        }
        match std::str::from_utf8(sample) {
            Ok(_) => Ok(Self::default()),
            // The sample may end within a character.
            Err(error) if error.error_len().is_none() => Ok(Self::default()),
            Err(error) => guess_encoding(sample).ok_or_else(|| {
                let position = error.valid_up_to();
                let byte = sample.get(position).copied().unwrap_or_default();
                format!("it is not UTF-8 text, and byte {byte:#04x} at {position} does not identify its encoding")
            }),
        }
    }

    pub(crate) fn decode<'a>(self, text: impl Read + Send + 'a) -> Box<dyn Read + Send + 'a> {
        if self.encoding == UTF_8 {
            return Box::new(text);
        }
        Box::new(Utf8Reader {
            inner: text,
            encoding: self.encoding,
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
    (!has_errors).then_some(TextEncoding { encoding, is_guessed: false })
}

/// Guesses the encoding of a text that begins with `sample`. Nothing if it then has control characters.
fn guess_encoding(sample: &[u8]) -> Option<TextEncoding> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, false);
    let encoding = detector.guess(None, Utf8Detection::Deny);
    // The sample may end within a character.
    let (text, _) = encoding.decode_without_bom_handling(sample);
    let whole = text.trim_end_matches('\u{fffd}');
    let is_strange =
        |character: char| character == '\u{fffd}' || character.is_control() && !matches!(character, '\t' | '\n' | '\r');
    (!whole.contains(is_strange)).then_some(TextEncoding { encoding, is_guessed: true })
}

const BUFFER_BYTES: usize = 16 << 10;

struct Utf8Reader<R> {
    inner: R,
    encoding: &'static Encoding,
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
    fn recognises_encodings() {
        assert_eq!(read("Zürich".as_bytes()), Ok("Zürich".to_owned()));
        for (label, text) in [
            ("windows-1252", "Zürich;Köln;Orléans"),
            ("windows-1252", "Süß kostet 5 €; m\u{e8}re"),
            ("koi8-u", "город;страна\nМосква;Россия\nКиев;Украина\n"),
            ("windows-1251", "город;страна\nМосква;Россия\nКиев;Украина\n"),
            ("shift_jis", "都市;国\n東京;日本です\nカタカナ;ひらがな\n"),
            ("euc-kr", "도시;나라\n서울;대한민국\n"),
            ("gbk", "城市;国家\n北京;中国人民\n"),
        ] {
            let (bytes, ..) = Encoding::for_label(label.as_bytes()).unwrap().encode(text);
            assert_eq!(read(&bytes), Ok(text.to_owned()), "{label}");
            assert!(TextEncoding::recognise(&bytes).unwrap().is_guessed());
        }
        let utf_16: Vec<u8> = "a;Zürich\r\n1;2".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&utf_16), Ok("a;Zürich\r\n1;2".to_owned()));
        assert_eq!(read(&[b"\xFF\xFE", utf_16.as_slice()].concat()), Ok("a;Zürich\r\n1;2".to_owned()));
    }

    #[test]
    fn rejects_what_is_no_text() {
        assert!(read(b"Z\x81\x8d\x8f\x90rich;\x01").unwrap_err().contains("does not identify its encoding"));
        assert_eq!(read(b"\x00\x01\x02\x03PK"), Err("it is not a text file".to_owned()));
        let late = TextEncoding::parse("shift_jis").unwrap();
        let error = late.decode(&b"a\x81\x20"[..]).read_to_string(&mut String::new()).unwrap_err();
        assert!(error.to_string().contains("it is not Shift_JIS text"), "{error}");
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
