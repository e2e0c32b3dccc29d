//! Connection strings in URI form: `postgresql://reader@db.example.com/shop?sslmode=verify-full`.
//!
//! The syntax is that of libpq, including several hosts and sockets.
//! <https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS>

use super::keyword;
use super::settings::KeywordValue;
use super::target_error::{SettingOrigin, TargetError};

const SCHEMES: [&str; 2] = ["postgresql://", "postgres://"];

/// The part after the scheme, if `text` is such a URI.
pub(super) fn strip_scheme(text: &str) -> Option<&str> {
    SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme))
}

/// Parses the URI `text`; `rest` is its part after the scheme.
pub(super) fn parse(text: &str, rest: &str) -> Result<Vec<KeywordValue>, TargetError> {
    let mut uri = UriParser { text, pairs: Vec::new(), has_password_parameter: false };
    let rest = uri.read_user(rest)?;
    let rest = uri.read_hosts(rest)?;
    let (database, parameters) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    if database.contains('@') {
        // Most likely the end of a password that began much earlier.
        return Err(uri.malformed("an @ after the hosts; write it as %40 in a name or password", database));
    }
    if let Some(database) = database.strip_prefix('/') {
        uri.push("dbname", database)?;
    }
    for parameter in parameters.into_iter().filter(|query| !query.is_empty()).flat_map(|query| query.split('&')) {
        uri.read_parameter(parameter)?;
    }
    Ok(uri.pairs)
}

struct UriParser<'a> {
    text: &'a str,
    pairs: Vec<KeywordValue>,
    has_password_parameter: bool,
}

impl<'a> UriParser<'a> {
    fn read_user(&mut self, rest: &'a str) -> Result<&'a str, TargetError> {
        let Some(end) = rest.find(['@', '/']).filter(|end| rest[*end..].starts_with('@')) else {
            return Ok(rest);
        };
        let (user, password) =
            rest[..end].split_once(':').map_or((&rest[..end], None), |(user, password)| (user, Some(password)));
        self.push("user", user)?;
        if let Some(password) = password {
            self.push("password", password)?;
        }
        Ok(&rest[end + 1..])
    }

    /// Parses `host:port,host:port` up to the path or the query.
    fn read_hosts(&mut self, mut rest: &'a str) -> Result<&'a str, TargetError> {
        let (mut hosts, mut ports) = (Vec::new(), Vec::new());
        loop {
            let host;
            (host, rest) = self.take_host(rest)?;
            let mut port = "";
            if let Some(after) = rest.strip_prefix(':') {
                let end = after.find(['/', '?', ',']).unwrap_or(after.len());
                (port, rest) = after.split_at(end);
            }
            if host.contains('@') || port.contains('@') {
                return Err(self.malformed("an @ among the hosts; write it as %40 in a name or password", host));
            }
            hosts.push(self.decode(host)?);
            ports.push(self.decode(port)?);
            let Some(after) = rest.strip_prefix(',') else { break };
            rest = after;
        }
        for (name, list) in [("host", hosts), ("port", ports)] {
            if list.iter().any(|member| !member.is_empty()) {
                self.store(name, list.join(","), rest)?;
            }
        }
        Ok(rest)
    }

    /// A host, which may be an IPv6 address in brackets, and the text after it.
    fn take_host(&self, rest: &'a str) -> Result<(&'a str, &'a str), TargetError> {
        let Some(bracketed) = rest.strip_prefix('[') else {
            return Ok(rest.split_at(rest.find([':', '/', '?', ',']).unwrap_or(rest.len())));
        };
        let Some((address, after)) = bracketed.split_once(']') else {
            return Err(self.malformed("a [ without ]", rest));
        };
        if address.is_empty() {
            return Err(self.malformed("an empty address between [ and ]", rest));
        }
        if !after.is_empty() && !after.starts_with([':', '/', '?', ',']) {
            return Err(self.malformed("unexpected text after ]", after));
        }
        Ok((address, after))
    }

    fn read_parameter(&mut self, parameter: &'a str) -> Result<(), TargetError> {
        let Some((name, value)) = parameter.split_once('=') else {
            return Err(self.malformed("a parameter without =", parameter));
        };
        if value.contains('=') {
            return Err(self.malformed("a second = in a parameter; write it as %3D in a value", parameter));
        }
        // Other drivers use this form, and libpq accepts it too.
        if (name, value) == ("ssl", "true") {
            return self.store("sslmode", "require".to_owned(), parameter);
        }
        let (name, value) = (self.decode(name)?, self.decode(value)?);
        self.has_password_parameter |= name == "password";
        self.store(&name, value, parameter)
    }

    /// Stores the percent-encoded value `encoded`, unless it is empty.
    fn push(&mut self, name: &str, encoded: &'a str) -> Result<(), TargetError> {
        let value = self.decode(encoded)?;
        if value.is_empty() { Ok(()) } else { self.store(name, value, encoded) }
    }

    fn store(&mut self, name: &str, value: String, at: &'a str) -> Result<(), TargetError> {
        let Some(keyword) = keyword::find(name) else {
            // The text before an @, or after a password among the parameters, may be part of the password.
            let position = self.position(at);
            let before_at = self.text.chars().skip(position.saturating_sub(1)).any(|character| character == '@');
            return Err(TargetError::UnknownKeyword {
                origin: SettingOrigin::ConnectionString,
                name: (!before_at && !self.has_password_parameter).then(|| name.to_owned()),
                position,
                nearest: keyword::nearest(name),
            });
        };
        self.pairs.push(KeywordValue { keyword, value });
        Ok(())
    }

    fn decode(&self, encoded: &'a str) -> Result<String, TargetError> {
        let mut bytes = Vec::with_capacity(encoded.len());
        let mut rest = encoded.as_bytes().iter().copied();
        while let Some(byte) = rest.next() {
            let decoded = match byte {
                b'%' => match (rest.next().and_then(hex_digit), rest.next().and_then(hex_digit)) {
                    (Some(high), Some(low)) => high * 16 + low,
                    _ => return Err(self.malformed("a % without two hexadecimal digits", encoded)),
                },
                byte => byte,
            };
            if decoded == 0 {
                return Err(self.malformed("a NUL character", encoded));
            }
            bytes.push(decoded);
        }
        String::from_utf8(bytes).map_err(|_| self.malformed("an encoding that is not UTF-8", encoded))
    }

    fn malformed(&self, problem: &'static str, at: &'a str) -> TargetError {
        TargetError::Malformed { origin: SettingOrigin::ConnectionString, problem, position: self.position(at) }
    }

    /// The position of the part `at` in the text, in characters from 1.
    fn position(&self, at: &str) -> usize {
        let before = (at.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        self.text.get(..before).map_or(0, |before| before.chars().count()) + 1
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
