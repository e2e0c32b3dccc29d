//! Reads the bytes of a text file: decompressed, without a byte order mark, with a limit, and converted to UTF-8 from
//! its encoding: declared, marked in the file, or guessed from its bytes.
//!
//! Bytes beyond ASCII stand for different letters in different encodings. A detector that web browsers use guesses the
//! one of a file that is not UTF-8; the catalog says what was guessed. The detector compares pairs of letters, and
//! each two bytes are a character of Big5 or GBK: `5 µm`. So an encoding with characters of several bytes needs three
//! of them in a row, which Western text seldom has. A script without Latin letters needs several bytes that are not
//! all the same one, and Latin letters of other regions need a word around them, or several bytes: two bytes `0xFF`
//! are none of these. The detector knows no encoding of DOS; a file that looks like one is refused, and so is a file
//! in which the guess gives control characters. A file that is UTF-8 but for a few bytes is read as UTF-8, so that the
//! line with the first of them is an error.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use encoding_rs::{
    DecoderResult, Encoding, ISO_8859_2, ISO_8859_4, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1250, WINDOWS_1252,
    WINDOWS_1254, WINDOWS_1257, WINDOWS_1258,
};

use super::file_kind::Compression;

const BUFFER_BYTES: usize = 64 * 1_024;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The conversion from the bytes of a text file to its rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct TextDecoding {
    pub(crate) encoding: TextEncoding,
    /// Number of lines to skip at the beginning.
    pub(crate) skip_lines: usize,
}

/// The number of bytes of a text file that may be read until the budget is reset.
///
/// An unclosed quote makes the rest of the file one row. Without a limit, the whole row would be buffered.
#[derive(Debug, Clone)]
pub(crate) struct ReadBudget {
    bytes_max: usize,
    bytes_left: Arc<AtomicUsize>,
}

impl ReadBudget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes_left: Arc::new(AtomicUsize::new(bytes_max)) }
    }

    fn reset(&self) {
        self.bytes_left.store(self.bytes_max, Ordering::Relaxed);
    }

    /// The error is of the kind `FileTooLarge`.
    fn spend(&self, bytes: usize) -> io::Result<()> {
        let left = self.bytes_left.load(Ordering::Relaxed);
        self.bytes_left.store(left.saturating_sub(bytes), Ordering::Relaxed);
        if bytes <= left {
            return Ok(());
        }
        let mebibytes = self.bytes_max >> 20;
        let message = format!("a row is longer than {mebibytes} MiB; check for an unclosed quote or bracket");
        Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
    }
}

pub(crate) fn open_text(
    file: File,
    compression: Compression,
    decoding: TextDecoding,
    budget: ReadBudget,
) -> Result<BufReader<Box<dyn Read + Send>>, String> {
    let decoded = decoding.encoding.decode(BudgetedReader { inner: open_decompressed(file, compression)?, budget });
    let mut text = BufReader::with_capacity(BUFFER_BYTES, decoded);
    match skip_byte_order_mark(&mut text).and_then(|()| skip_lines(&mut text, decoding.skip_lines)) {
        Ok(()) => Ok(text),
        Err(error) => Err(read_error_reason(&error, compression)),
    }
}

pub(crate) fn read_beginning(file: File, compression: Compression, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = open_decompressed(file, compression)?.take(bytes_max).read_to_end(&mut bytes);
    read.map_err(|error| read_error_reason(&error, compression))?;
    Ok(bytes)
}

pub(crate) fn open_decompressed(file: File, compression: Compression) -> Result<Box<dyn Read + Send>, String> {
    FileCompressionType::from(compression).convert_read(file).map_err(|error| error.strip_backtrace().to_string())
}

pub(crate) fn read_error_reason(error: &io::Error, compression: Compression) -> String {
    let text = super::path_sandbox::io_error_reason(error);
    match compression {
        Compression::UNCOMPRESSED => text,
        _ => format!("the compressed file is damaged or cut off: {text}"),
    }
}

fn skip_byte_order_mark(text: &mut impl BufRead) -> io::Result<()> {
    if text.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        text.consume(BYTE_ORDER_MARK.len());
    }
    Ok(())
}

struct BudgetedReader<R> {
    inner: R,
    budget: ReadBudget,
}

impl<R: Read> Read for BudgetedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.budget.spend(read)?;
        Ok(read)
    }
}

const RECORD_BUFFER_BYTES: usize = 128 << 10;

/// Gives one byte at a time.
#[cfg(test)]
pub(crate) struct SingleBytes<'t>(pub(crate) &'t [u8]);

#[cfg(test)]
impl Read for SingleBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(&mut buffer[..1])
    }
}

/// Reads a text in pieces, and keeps what belongs to the record that is read.
pub(crate) struct RecordBuffer<R> {
    text: R,
    /// Makes a record that never ends an error.
    budget: ReadBudget,
    bytes: Vec<u8>,
    /// Where the record begins.
    start: usize,
    /// The end of the bytes that were read.
    filled: usize,
    is_at_end: bool,
}

impl<R: Read> RecordBuffer<R> {
    pub(crate) fn new(text: R, budget: ReadBudget) -> Self {
        Self { text, budget, bytes: vec![0; RECORD_BUFFER_BYTES], start: 0, filled: 0, is_at_end: false }
    }

    /// The bytes from the beginning of the record on, as far as they were read.
    #[inline]
    pub(crate) fn rest(&self) -> &[u8] {
        self.bytes.get(self.start..self.filled).unwrap_or_default()
    }

    /// Whether all bytes of the text were read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Begins the next record so many bytes behind the beginning of this one.
    #[inline]
    pub(crate) fn advance(&mut self, length: usize) {
        self.start = (self.start + length).min(self.filled);
    }

    /// Ends the text here.
    pub(crate) fn close(&mut self) {
        (self.is_at_end, self.start, self.filled) = (true, 0, 0);
    }

    /// Reads further bytes behind those of the record.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
            // The record before ended, so what is read from here on belongs to this one.
            self.budget.reset();
        }
        if self.filled == self.bytes.len() {
            self.bytes.resize(self.filled * 2, 0);
        }
        loop {
            match self.text.read(&mut self.bytes[self.filled..]) {
                Ok(0) => self.is_at_end = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

/// The character encoding of a text file. Where it comes from makes no difference to its text.
#[derive(Debug, Clone, Copy)]
pub struct TextEncoding {
    encoding: &'static Encoding,
    origin: EncodingOrigin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EncodingOrigin {
    /// It is declared, marked in the file, or proved by its bytes.
    Known,
    Guessed,
    /// It was guessed from very few characters, or from some that words of its languages seldom have.
    GuessedFromLittle,
}

tidegate_pgsql::compare_by!(TextEncoding { encoding });

impl Default for TextEncoding {
    fn default() -> Self {
        Self::known(UTF_8)
    }
}

const UTF_16_BYTES_MIN: usize = 8;
/// A guess from fewer bytes beyond ASCII is reported as uncertain.
const GUESSED_BYTES_MIN: usize = 4;
/// A text is UTF-8 with wrong bytes if it has so many bytes of characters of UTF-8 for each other one.
const UTF8_RATIO_MIN: usize = 9;
/// Characters of several bytes are guessed only if so many bytes beyond ASCII are in a row. Latin text seldom has them.
const WIDE_RUN_MIN: usize = 3;

/// Why the encoding of a file cannot be detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncodingProblem {
    /// It is not a text file.
    NoText,
    /// This byte at this position is not UTF-8, and the guess gives control characters.
    Unknown { byte: u8, position: usize },
    /// Words have this byte, which is a letter in encodings before Windows only.
    OfDos { byte: u8 },
}

impl EncodingProblem {
    /// The reason, for the operator. `declare` writes where an option is declared.
    pub(crate) fn reason(self, declare: impl Fn(&str) -> String) -> String {
        match self {
            Self::NoText => "it is not a text file".to_owned(),
            Self::Unknown { byte, position } => format!(
                "it is not UTF-8 text, and byte {byte:#04x} at {position} does not identify its encoding; convert it to UTF-8, \
                 or write its encoding {}",
                declare("encoding: latin-1")
            ),
            Self::OfDos { byte } => format!(
                "it is not UTF-8 text, and has the byte {byte:#04x} within words, as texts of DOS (cp437, cp850) and of old \
                 Macs have it; convert it to UTF-8 (iconv -f CP850 -t UTF-8); or, if it is of a Mac, write {}",
                declare("encoding: macintosh")
            ),
        }
    }
}

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
        Some(Self::known(encoding))
    }

    fn known(encoding: &'static Encoding) -> Self {
        Self { encoding, origin: EncodingOrigin::Known }
    }

    pub(crate) fn name(self) -> &'static str {
        self.encoding.name()
    }

    pub(crate) fn is_guessed(self) -> bool {
        self.origin != EncodingOrigin::Known
    }

    /// What was guessed, for the comment of the table.
    pub(crate) fn note(self) -> Option<String> {
        let name = self.name();
        match self.origin {
            EncodingOrigin::Known => None,
            EncodingOrigin::Guessed => Some(format!("guessed encoding: {name}")),
            EncodingOrigin::GuessedFromLittle => {
                Some(format!("guessed encoding: {name}, which is uncertain; if characters are wrong, declare encoding"))
            }
        }
    }

    /// Detects the encoding of a text that begins with `sample`.
    pub(crate) fn recognise(sample: &[u8]) -> Result<Self, EncodingProblem> {
        if let Some((encoding, _)) = Encoding::for_bom(sample) {
            return Ok(Self::known(encoding));
        }
        if sample.contains(&0) {
            return detect_utf16(sample).ok_or(EncodingProblem::NoText);
        }
        match std::str::from_utf8(sample) {
            Ok(_) => Ok(Self::default()),
            // The sample may end within a character.
            Err(error) if error.error_len().is_none() => Ok(Self::default()),
            Err(error) => {
                let high_bytes = HighBytes::count(sample);
                if high_bytes.are_damaged_utf8() {
                    return Ok(Self::default());
                }
                if let Some(byte) = high_bytes.letter_of_dos() {
                    return Err(EncodingProblem::OfDos { byte });
                }
                let position = error.valid_up_to();
                let byte = sample.get(position).copied().unwrap_or_default();
                guess_encoding(sample, &high_bytes).ok_or(EncodingProblem::Unknown { byte, position })
            }
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
            input: vec![0; DECODER_INPUT_BYTES],
            output: Vec::with_capacity(DECODER_INPUT_BYTES * 3 + 16),
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
    (!has_errors).then_some(TextEncoding::known(encoding))
}

/// The bytes beyond ASCII of a text.
#[derive(Debug, Default)]
struct HighBytes {
    count: usize,
    /// The most that are in a row.
    longest_run: usize,
    /// The number of those between two ASCII letters that are letters there only in encodings before Windows.
    letters_of_dos: usize,
    /// The first of them.
    first_letter_of_dos: Option<u8>,
    /// The number of those that are signs in Western text, and are beside no letter but that of a unit.
    lone_signs: usize,
    /// The number of such signs beside a letter. There they are letters of other encodings.
    signs_in_words: usize,
    /// The number of those beside an ASCII letter.
    in_words: usize,
    /// The number of those that are characters of UTF-8.
    of_utf8: usize,
    /// The first of all.
    first: Option<u8>,
    /// Whether another one differs from the first.
    are_different: bool,
}

impl HighBytes {
    fn count(text: &[u8]) -> Self {
        let (mut found, mut run) = (Self::default(), 0);
        let valid = text.utf8_chunks().flat_map(|chunk| chunk.valid().bytes());
        found.of_utf8 = valid.filter(|byte| !byte.is_ascii()).count();
        for (position, &byte) in text.iter().enumerate() {
            run = if byte.is_ascii() { 0 } else { run + 1 };
            if run == 0 {
                continue;
            }
            found.count += 1;
            found.longest_run = found.longest_run.max(run);
            found.are_different |= *found.first.get_or_insert(byte) != byte;
            // In Windows, these are quotation marks and the like in all of Europe, or nothing.
            let is_letter_of_dos = matches!(byte, 0x81 | 0x82 | 0x84 | 0x87..=0x89 | 0x8B | 0x90 | 0x93 | 0x94);
            let before = position.checked_sub(1).and_then(|before| text.get(before)).copied().unwrap_or_default();
            let after = text.get(position + 1).copied().unwrap_or_default();
            found.in_words += usize::from(before.is_ascii_alphabetic() || after.is_ascii_alphabetic());
            let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte >= 0xC0;
            let is_of_unit = match byte {
                // `µg`
                0xB5 => !is_letter(before) && b"mglLsSAVFWT".contains(&after),
                // `m²` and `cm³`
                0xB2 | 0xB3 => before == b'm' && !is_letter(after),
                _ => false,
            };
            match byte {
                0x80..0xC0 if !is_of_unit && (is_letter(before) || is_letter(after)) => found.signs_in_words += 1,
                0xA0..0xC0 => found.lone_signs += 1,
                _ => {}
            }
            if is_letter_of_dos && before.is_ascii_alphabetic() && after.is_ascii_alphabetic() {
                found.letters_of_dos += 1;
                found.first_letter_of_dos = found.first_letter_of_dos.or(Some(byte));
            }
        }
        found
    }

    /// Whether nearly all are characters of UTF-8. Short texts in Japanese encodings have some, too.
    fn are_damaged_utf8(&self) -> bool {
        self.of_utf8 >= (self.count - self.of_utf8) * UTF8_RATIO_MIN
    }

    /// A byte that shows that the text is of DOS or of an old Mac, if it is.
    fn letter_of_dos(&self) -> Option<u8> {
        let is_of_dos = self.longest_run < WIDE_RUN_MIN && self.letters_of_dos * 4 >= self.count;
        self.first_letter_of_dos.filter(|_| is_of_dos)
    }
}

/// Whether it has Latin letters of other regions. The detector also finds them in signs of Western text: `£5`.
fn is_other_latin(encoding: &'static Encoding) -> bool {
    [WINDOWS_1250, WINDOWS_1254, WINDOWS_1257, WINDOWS_1258, ISO_8859_2, ISO_8859_4].contains(&encoding)
}

/// Guesses the encoding of a text that begins with `sample` and has these `high_bytes`. Nothing if it then has control
/// characters.
fn guess_encoding(sample: &[u8], high_bytes: &HighBytes) -> Option<TextEncoding> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, false);
    let guessed = detector.guess(None, Utf8Detection::Deny);
    let has_long_runs = high_bytes.longest_run >= WIDE_RUN_MIN;
    let has_only_lone_signs = high_bytes.lone_signs > 0 && high_bytes.signs_in_words == 0;
    let is_too_wide = !guessed.is_single_byte() && !has_long_runs;
    let are_few = high_bytes.count < GUESSED_BYTES_MIN;
    let is_unfounded = match is_other_latin(guessed) {
        true => has_only_lone_signs || are_few && high_bytes.in_words == 0,
        false => guessed != WINDOWS_1252 && (are_few || !high_bytes.are_different),
    };
    let is_western = is_too_wide || is_unfounded;
    let encoding = if is_western { WINDOWS_1252 } else { guessed };
    let is_latin = encoding == WINDOWS_1252 || is_other_latin(encoding);
    let is_uncertain = are_few || is_too_wide || !high_bytes.are_different && is_unfounded;
    let origin = match is_uncertain || (is_latin && (has_long_runs || high_bytes.of_utf8 > 0)) {
        true => EncodingOrigin::GuessedFromLittle,
        false => EncodingOrigin::Guessed,
    };
    // The sample may end within a character.
    let (text, _) = encoding.decode_without_bom_handling(sample);
    let whole = text.trim_end_matches('\u{fffd}');
    let is_strange =
        |character: char| character == '\u{fffd}' || character.is_control() && !matches!(character, '\t' | '\n' | '\r');
    (!whole.contains(is_strange)).then_some(TextEncoding { encoding, origin })
}

const DECODER_INPUT_BYTES: usize = 16 << 10;

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
        let needed =
            self.decoder.max_utf8_buffer_length_without_replacement(input.len()).unwrap_or(DECODER_INPUT_BYTES * 4);
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
        let encoding = TextEncoding::recognise(bytes).map_err(|problem| problem.reason(str::to_owned))?;
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
    fn few_bytes_beyond_ascii_are_western_and_reported() {
        let units = "station;unit;value\n1;µg/m³;5\n2;µg/m³;6\n3;µg/m³;7\n";
        for text in ["id;t\n1;5 µm\n", "caf\u{e9} – 5 €", "Süß", "18 °C; 50 %\n", "naïve « é »", "£5 to ½ l", units]
        {
            let (bytes, ..) = WINDOWS_1252.encode(text);
            assert_eq!(read(&bytes), Ok(text.to_owned()));
        }
        let note = |text: &str| TextEncoding::recognise(&WINDOWS_1252.encode(text).0).unwrap().note().unwrap();
        assert!(note("5 µm").ends_with("windows-1252, which is uncertain; if characters are wrong, declare encoding"));
        assert_eq!(note("Süß, Köln, Zürich"), "guessed encoding: windows-1252");
        // The detector takes it for windows-1250.
        let (short, ..) = encoding_rs::SHIFT_JIS.encode("id,t\n1,東京\n");
        assert!(TextEncoding::recognise(&short).unwrap().note().unwrap().contains("uncertain"));
        // The second byte of many katakana is that of an ASCII letter.
        let (katakana, ..) = encoding_rs::SHIFT_JIS.encode("id,name\n1,Aア社B\n2,テスト\n");
        assert!(TextEncoding::recognise(&katakana).unwrap().note().unwrap().contains("uncertain"));
        assert_eq!(TextEncoding::default().note(), None);
    }

    #[test]
    fn bytes_that_make_no_words_are_not_taken_for_another_script() {
        for (bytes, text) in [
            (&b"id,name\n1,\xFF\xFF\n"[..], "ÿÿ"),
            (b"id,name\n1,\xFF\xFF\xFF\xFF\n", "ÿÿÿÿ"),
            (b"id,name\n1,ok \xFF\xFF ok\n2,fine\n", "ok ÿÿ ok"),
            (b"\xFF\xFF,name\n1,2\n", "ÿÿ,name"),
            (b"id,name\n1,\xFF\xFE\n", "ÿþ"),
            (b"id,name\n1,\xF0\xF1\n", "ðñ"),
        ] {
            let found = read(bytes).unwrap();
            assert!(found.contains(text), "{found}");
            let note = TextEncoding::recognise(bytes).unwrap().note().unwrap();
            assert!(note.starts_with("guessed encoding: windows-1252, which is uncertain"), "{note}");
        }
    }

    #[test]
    fn utf8_with_a_wrong_byte_is_not_another_encoding() {
        let words = "café, Zürich, Köln, Süß".as_bytes();
        for wrong in [&b" \xFF\n"[..], b" M\xFCller\n"] {
            let encoding = TextEncoding::recognise(&[words, wrong].concat()).unwrap();
            assert!(encoding == TextEncoding::default() && !encoding.is_guessed());
        }
        let mixed = TextEncoding::recognise(b"caf\xE9, caf\xC3\xA9, \xE9t\xE9\n").unwrap();
        assert!(mixed.note().unwrap().ends_with("which is uncertain; if characters are wrong, declare encoding"));
    }

    #[test]
    fn letters_of_dos_are_refused_and_not_taken_for_quotes() {
        // `März`, `für` and `Zoë` of cp850.
        for bytes in [&b"M\x84rz\n"[..], b"f\x81r;2 \xE1\n", b"Zo\x89s\n"] {
            let reason = read(bytes).unwrap_err();
            assert!(reason.contains("(iconv -f CP850 -t UTF-8)"), "{reason}");
        }
        let (quoted, ..) = WINDOWS_1252.encode("„Wort“ und ‚Teil‘ – “word”, l’été");
        assert!(read(&quoted).unwrap().starts_with('„'));
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
