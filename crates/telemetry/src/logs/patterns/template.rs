//! The pattern of one message: numbers, addresses, times and other parts that vary become placeholders.

use std::net::Ipv6Addr;

/// The number of bytes of a message that its pattern contains; the rest and further lines are ignored.
const MESSAGE_BYTES_MAX: usize = 1_000;
/// Words of letters and digits of at least this length are identifiers.
const IDENTIFIER_LENGTH_MIN: usize = 20;
/// Words of hexadecimal digits of at least this length, with a letter and a digit, are hexadecimal numbers.
const HEXADECIMAL_LENGTH_MIN: usize = 8;

/// Writes the pattern of `message` to `out`, which is cleared before.
pub(super) fn write_template(message: &str, out: &mut String) {
    out.clear();
    let line = message.trim_start().lines().next().unwrap_or_default();
    let line = line.get(..line.floor_char_boundary(MESSAGE_BYTES_MAX)).unwrap_or(line).trim_end();
    let mut rest = line;
    let mut is_in_word = false;
    while let Some(first) = rest.chars().next() {
        let (length, placeholder) = match first {
            '"' | '\'' if !is_in_word => (quoted(rest), "<string>"),
            c if is_in_word || !(c.is_ascii_alphanumeric() || c == ':') => (None, ""),
            _ => placeholder(rest),
        };
        let length = if let Some(length) = length {
            out.push_str(placeholder);
            length
        } else {
            write_word(rest, first, out)
        };
        let (done, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        is_in_word = done.ends_with(char::is_alphanumeric);
        rest = after;
    }
}

/// Writes a word without the digits in it, or one other character, and returns its length.
fn write_word(rest: &str, first: char, out: &mut String) -> usize {
    if !first.is_ascii_alphanumeric() {
        out.push(if first.is_whitespace() { ' ' } else { first });
        return first.len_utf8();
    }
    let word = rest.get(..word_length(rest)).unwrap_or_default();
    let mut is_number = false;
    for character in word.chars() {
        if !character.is_ascii_digit() {
            out.push(character);
        } else if !is_number {
            out.push_str("<number>");
        }
        is_number = character.is_ascii_digit();
    }
    word.len()
}

/// The length of what a placeholder replaces at the start of `text`, and the placeholder.
fn placeholder(text: &str) -> (Option<usize>, &'static str) {
    let bytes = text.as_bytes();
    let found = time(bytes)
        .map(|length| (length, "<time>"))
        .or_else(|| uuid(bytes).map(|length| (length, "<uuid>")))
        .or_else(|| ip_address(text).map(|length| (length, "<ip>")))
        .or_else(|| word_placeholder(text));
    found.map_or((None, ""), |(length, placeholder)| (Some(length), placeholder))
}

fn word_length(text: &str) -> usize {
    text.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len())
}

fn word_placeholder(text: &str) -> Option<(usize, &'static str)> {
    let mut length = word_length(text);
    let word = text.get(..length)?.as_bytes();
    let has_digit = word.iter().any(u8::is_ascii_digit);
    if !has_digit {
        return None;
    }
    if word.iter().all(u8::is_ascii_digit) {
        // A decimal or a version; a unit after it is a part of the pattern.
        while let Some(digits) = text.get(length..)?.strip_prefix('.').map(|rest| digit_count(rest.as_bytes()))
            && digits > 0
        {
            length += 1 + digits;
        }
        return Some((length, "<number>"));
    }
    let is_hexadecimal = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    let is_prefixed = word.strip_prefix(b"0x").is_some_and(|digits| !digits.is_empty() && is_hexadecimal(digits));
    if is_prefixed || (word.len() >= HEXADECIMAL_LENGTH_MIN && is_hexadecimal(word)) {
        return Some((length, "<hex>"));
    }
    (word.len() >= IDENTIFIER_LENGTH_MIN).then_some((length, "<id>"))
}

fn digit_count(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The length of text in quotes. A name in quotes before a colon, as in JSON, is no value.
fn quoted(text: &str) -> Option<usize> {
    let mut characters = text.char_indices();
    let (_, quote) = characters.next()?;
    while let Some((index, character)) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if character == quote {
            let end = index + quote.len_utf8();
            let after = text.get(end..)?.chars().next();
            return after.is_none_or(|after| after != ':' && !after.is_alphanumeric()).then_some(end);
        }
    }
    None
}

fn uuid(bytes: &[u8]) -> Option<usize> {
    const LENGTH: usize = 36;
    let candidate = bytes.get(..LENGTH)?;
    let is_separator = |index: usize| matches!(index, 8 | 13 | 18 | 23);
    let fits = candidate.iter().enumerate().all(|(index, byte)| match is_separator(index) {
        true => *byte == b'-',
        false => byte.is_ascii_hexdigit(),
    });
    let ends = bytes.get(LENGTH).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    (fits && ends).then_some(LENGTH)
}

fn ip_address(text: &str) -> Option<usize> {
    ipv4_address(text.as_bytes()).or_else(|| {
        let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.';
        let length = text.bytes().position(|byte| !is_part(byte)).unwrap_or(text.len());
        let candidate = text.get(..length)?.trim_end_matches(['.', ':']);
        let is_address = candidate.contains("::") || candidate.matches(':').count() == 7;
        (is_address && candidate.len() > 2 && candidate.parse::<Ipv6Addr>().is_ok()).then_some(candidate.len())
    })
}

/// An IPv4 address, with its port if there is one.
fn ipv4_address(bytes: &[u8]) -> Option<usize> {
    let mut length = 0;
    for part in 0..4 {
        if part > 0 {
            length += usize::from(*bytes.get(length)? == b'.');
        }
        let digits = digit_count(bytes.get(length..)?);
        if !(1..=3).contains(&digits) {
            return None;
        }
        length += digits;
    }
    let dots = bytes.get(..length)?.iter().filter(|byte| **byte == b'.').count();
    let next = bytes.get(length).copied();
    let continues = bytes.get(length + 1).is_some_and(u8::is_ascii_digit);
    match next {
        _ if dots != 3 => None,
        Some(byte) if byte.is_ascii_alphanumeric() || (byte == b'.' && continues) => None,
        Some(b':') if continues => Some(length + 1 + digit_count(bytes.get(length + 1..)?)),
        _ => Some(length),
    }
}

/// A date with or without a time of day, or a time of day with seconds.
fn time(bytes: &[u8]) -> Option<usize> {
    let date = matched(bytes, "dddd-dd-dd").or_else(|| matched(bytes, "dddd/dd/dd"));
    let access_log = matched(bytes, "dd/aaa/dddd:dd:dd:dd");
    let mut length = access_log.or(date).unwrap_or(0);
    let rest = bytes.get(length..)?;
    if date.is_some() {
        let clock = match rest.first() {
            Some(b'T' | b' ') => rest.get(1..).and_then(clock).map(|clock| clock + 1),
            _ => None,
        };
        length += clock.unwrap_or(0);
    } else if access_log.is_none() {
        length = clock(rest)?;
    }
    length += zone(bytes.get(length..)?);
    let is_end = bytes.get(length).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    is_end.then_some(length)
}

fn clock(bytes: &[u8]) -> Option<usize> {
    let length = matched(bytes, "dd:dd:dd")?;
    let rest = bytes.get(length..)?;
    let fraction = match rest.first() {
        Some(b'.' | b',') => rest.get(1..).map_or(0, digit_count),
        _ => 0,
    };
    Some(if fraction > 0 { length + 1 + fraction } else { length })
}

fn zone(bytes: &[u8]) -> usize {
    let forms = ["Z", "+dd:dd", "-dd:dd", "+dddd", "-dddd", " +dddd", " -dddd"];
    forms.iter().find_map(|form| matched(bytes, form)).unwrap_or(0)
}

/// The length of `form` if `bytes` begin with it: `d` is a digit, `a` a letter, and others are themselves.
fn matched(bytes: &[u8], form: &str) -> Option<usize> {
    let start = bytes.get(..form.len())?;
    let fits = start.iter().zip(form.bytes()).all(|(byte, form)| match form {
        b'd' => byte.is_ascii_digit(),
        b'a' => byte.is_ascii_alphabetic(),
        form => *byte == form,
    });
    fits.then_some(form.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(message: &str) -> String {
        let mut out = String::new();
        write_template(message, &mut out);
        out
    }

    #[test]
    fn what_varies_becomes_a_placeholder() {
        let check = |message: &str, expected: &str| assert_eq!(template(message), expected, "{message}");
        check("took 12ms, 3.5 of 10", "took <number>ms, <number> of <number>");
        check("user 550e8400-e29b-41d4-a716-446655440000 gone", "user <uuid> gone");
        check("from 10.0.0.1:8080 to [2001:db8::1]", "from <ip> to [<ip>]");
        check("at 0xdeadbeef and 5f3a9c01", "at <hex> and <hex>");
        check("2026-03-01T12:30:00.123Z start", "<time> start");
        check("2026-03-01 12:30:00,5 +0100 start 12:30:01", "<time> start <time>");
        check("[01/Mar/2026:12:30:00 +0000]", "[<time>]");
        check("open \"a b\" failed: 'x'", "open <string> failed: <string>");
        check("GET /users/42/orders?id=7", "GET /users/<number>/orders?id=<number>");
        check("worker-3 on eth0", "worker-<number> on eth<number>");
        check("token AKIAIOSFODNN7EXAMPLE0", "token <id>");
        check("can't open the file", "can't open the file");
        check("{\"level\":\"info\"}", "{\"level\":<string>}");
        check("first\nsecond", "first");
        check("deadline feedface", "deadline feedface");
        check("größe 5", "größe <number>");
        check("10.0.0.256.1 1.2.3", "<number> <number>");
        check("", "");
    }

    proptest::proptest! {
        #[test]
        fn no_message_panics(message in ".{0,60}", repeated in 0usize..40) {
            template(&message);
            template(&message.repeat(repeated));
        }
    }
}
