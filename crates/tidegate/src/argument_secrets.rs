//! Passwords in texts that may quote an argument: they are masked before such a text is printed.

use std::borrow::Cow;
use std::ops::Range;

const MASK: &str = "***";
/// Ends of the names of settings with a password, in connection strings of any driver.
const SECRET_NAMES: [&str; 3] = ["password", "passwd", "pwd"];

/// `text` with the passwords of URLs and connection strings masked: `postgres://ann:***@db/shop`, `ann:***@db`,
/// `password=***`.
pub(crate) fn mask_secrets(text: &str) -> Cow<'_, str> {
    let mut secrets = passwords_of_urls(text);
    secrets.extend(passwords_without_scheme(text));
    secrets.extend(values_of_settings(text));
    secrets.sort_by_key(|secret| secret.start);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut end = 0;
    for secret in secrets {
        // One within another is masked with it.
        if secret.start >= end {
            masked.push_str(&text[end..secret.start]);
            masked.push_str(MASK);
        }
        end = end.max(secret.end);
    }
    masked.push_str(&text[end..]);
    Cow::Owned(masked)
}

/// The passwords between `SCHEME:/USER:` and the last `@` of a word: an unescaped password may contain `@` and `/`. One with
/// blanks ends at the first `@`.
fn passwords_of_urls(text: &str) -> Vec<Range<usize>> {
    let mut passwords = Vec::new();
    for (colon, _) in text.match_indices(":/") {
        let is_scheme = text[..colon].ends_with(|last: char| last.is_ascii_alphanumeric());
        let slashes = text[colon + 1..].bytes().take_while(|byte| *byte == b'/').count();
        let start = colon + 1 + slashes;
        let rest = &text[start..];
        let in_word = rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())].rfind('@');
        let after_blanks = || rest.find(['@', '/', '\n']).filter(|at| rest[*at..].starts_with('@'));
        let Some(at) = in_word.or_else(after_blanks).filter(|_| is_scheme) else { continue };
        let user = rest[..at].find(':').map_or(at, |user| user + 1);
        if user < at {
            passwords.push(start + user..start + at);
        }
    }
    passwords
}

/// Whether `text` contains `USER:PASSWORD@HOST`, such as a URL whose scheme is forgotten.
pub(crate) fn has_user_and_password(text: &str) -> bool {
    !passwords_without_scheme(text).is_empty()
}

/// The passwords between `USER:` and the last `@` of each word.
fn passwords_without_scheme(text: &str) -> Vec<Range<usize>> {
    let mut passwords = Vec::new();
    let mut start = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let is_user = |last: char| last.is_alphanumeric() || "_-.%".contains(last);
        // After `::` is a type of SQL, and after `://` what `passwords_of_urls` finds.
        let is_password = |rest: &str| !rest.starts_with(':') && !rest.starts_with("//");
        let colon = word
            .match_indices(':')
            .map(|(colon, _)| colon)
            .find(|colon| word[..*colon].ends_with(is_user) && is_password(&word[colon + 1..]));
        let is_host = |first: char| first.is_alphanumeric() || "[_".contains(first);
        let at = word.rfind('@').filter(|at| word[at + 1..].starts_with(is_host));
        if let Some((colon, at)) = colon.zip(at).filter(|(colon, at)| colon + 1 < *at) {
            passwords.push(start + colon + 1..start + at);
        }
        start += word.len();
    }
    passwords
}

/// The values after `password=` and the like, with blanks around `=`, and in quotes.
fn values_of_settings(text: &str) -> Vec<Range<usize>> {
    let mut values = Vec::new();
    for (equals, _) in text.match_indices('=') {
        let (before, name) = split_name(text[..equals].trim_end());
        let name: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if !SECRET_NAMES.iter().any(|secret| name.ends_with(secret)) {
            continue;
        }
        let start = text.len() - text[equals + 1..].trim_start().len();
        let length = match text[start..].chars().next() {
            Some(quote @ ('\'' | '"')) => quoted_length(&text[start..], quote),
            _ => unquoted_length(&text[start..], before.trim_end().chars().next_back()),
        };
        if length > 0 {
            values.push(start..start + length);
        }
    }
    values
}

/// What is before the name at the end of `text`, and the name.
fn split_name(text: &str) -> (&str, &str) {
    text.split_at(text.trim_end_matches(|c: char| c.is_alphanumeric() || "_-".contains(c)).len())
}

/// The length of a value without quotes, by the character before its name: between semicolons, a value may contain blanks;
/// after blanks, it may contain the characters that end it elsewhere.
fn unquoted_length(text: &str, before: Option<char>) -> usize {
    let ends_value = |c: char| match before {
        Some(';') => ";\"'\n".contains(c),
        Some('?' | '&') => c.is_whitespace() || "&;\"'".contains(c),
        _ => c.is_whitespace(),
    };
    // What quotes the string, and what follows it in a sentence, is no part of it.
    text[..text.find(ends_value).unwrap_or(text.len())].trim_end_matches(['\'', '"', ',', ':']).len()
}

/// The length of a text in quotes with escapes. One whose quote is not closed has no known end.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == quote => return at + character.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked() {
        for (text, masked) in [
            ("cannot open postgres://ann:s3cret@db/shop: gone", "cannot open postgres://ann:***@db/shop: gone"),
            ("'postgresql+asyncpg://ann:s3@cr/et@h/shop'", "'postgresql+asyncpg://ann:***@h/shop'"),
            ("/tmp/jdbc:postgresql:/ann:s3cret@db", "/tmp/jdbc:***@db"),
            ("cannot open ann:s3@cr:/et@db:5432/shop: gone", "cannot open ann:***@db:5432/shop: gone"),
            ("'crm=postgres//ann:s3cret@[::1]/shop' is no path", "'crm=postgres//ann:***@[::1]/shop' is no path"),
            ("cannot open ann:/s3cret@db/shop", "cannot open ann:***@db/shop"),
            ("cannot open ann:@s3cret@_db/shop", "cannot open ann:***@_db/shop"),
            (
                "jdbc:postgresql://db/shop?user=ann&password=s3cret&ssl=true",
                "jdbc:postgresql://db/shop?user=ann&password=***&ssl=true",
            ),
            ("mysql://:s3cret@db", "mysql://:***@db"),
            ("postgres://ann:s3 cret@db/shop", "postgres://ann:***@db/shop"),
            ("host=db password=s3cret: no such file", "host=db password=***: no such file"),
            ("password = 's3\\'cr et' dbname=shop", "password = *** dbname=shop"),
            ("Server=h;User Id=u;Password=s3cret;Pwd=s3cret", "Server=h;User Id=u;Password=***;Pwd=***"),
            ("'Server=h;Password=s3 cret;Database=d'", "'Server=h;Password=***;Database=d'"),
            ("[\"host=db password=a&b;c'd\",\n", "[\"host=db password=***\",\n"),
            ("SSL_PASSWORD=s3cret", "SSL_PASSWORD=***"),
            ("postgres://ann:a?password=s3cret@db", "postgres://ann:***"),
        ] {
            assert_eq!(mask_secrets(text), masked);
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in [
            "postgres://ann@db/shop?sslmode=require",
            "http://127.0.0.1:7070/mcp is no address",
            "a=b, password: put it into PGPASSWORD or .pgpass",
            "password=",
            "ann@example.com at 12:30",
            "ann:@db and text::tsvector@@query",
            "git@example.com:shop/data and select tags::text@>'{}'",
        ] {
            assert!(matches!(mask_secrets(text), Cow::Borrowed(_)), "{text}");
        }
    }
}
