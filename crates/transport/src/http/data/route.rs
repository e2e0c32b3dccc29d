//! The path of a table, and the tool of each method.

use axum::http::Method;
use percent_encoding::percent_decode_str;
use tidegate_mcp::NAME_BYTES_MAX;

use crate::http::answer::{ProblemDetails, ProblemType};

pub(super) const METHODS: &str = "POST, PUT, DELETE, OPTIONS";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DataRoute {
    pub(super) database: String,
    pub(super) table: String,
}

impl DataRoute {
    /// Parses `/data/{database}/{table}`. Each segment is percent-decoded separately, because names may contain slashes.
    pub(super) fn parse(path: &str) -> Result<Self, ProblemDetails> {
        let names: Vec<&str> = path.strip_prefix("/data/").unwrap_or_default().split('/').collect();
        let [database, table] = names[..] else {
            let detail = format!("there is no path {path}; rows are sent to /data/{{database}}/{{table}}");
            return Err(ProblemDetails::new(ProblemType::NoSuchPath, detail));
        };
        Ok(Self { database: parse_name("database", database)?, table: parse_name("table", table)? })
    }
}

fn parse_name(subject: &str, segment: &str) -> Result<String, ProblemDetails> {
    let name = percent_decode_str(segment).decode_utf8();
    let name = name.map_err(|_| ProblemDetails::bad_request("the path is not UTF-8 after percent-decoding"))?;
    match name.len() {
        0 => Err(ProblemDetails::bad_request(format!("the name of the {subject} in the path is empty"))),
        bytes if bytes > NAME_BYTES_MAX => {
            let detail = format!("the name of the {subject} is {bytes} bytes long; at most {NAME_BYTES_MAX}");
            Err(ProblemDetails::bad_request(detail))
        }
        _ => Ok(name.into_owned()),
    }
}

/// The tool that a request with this method calls.
pub(in crate::http) fn tool_for(method: &Method) -> Option<&'static str> {
    match *method {
        Method::POST => Some("append_rows"),
        Method::PUT => Some("replace_rows"),
        Method::DELETE => Some("drop_table"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_after_the_path_is_split() {
        let route = DataRoute::parse("/data/plant/a%2Fb%20c").unwrap();
        assert_eq!(route, DataRoute { database: "plant".to_owned(), table: "a/b c".to_owned() });
        for path in ["/data", "/data/", "/data/plant", "/data/plant/", "/data//sensors", "/data/a/b/c", "/data/a/%ff"] {
            assert!(DataRoute::parse(path).is_err(), "{path}");
        }
    }
}
