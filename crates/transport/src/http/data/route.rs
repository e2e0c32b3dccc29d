//! The path of a table, and the entry that a request calls.

use axum::http::Method;
use percent_encoding::percent_decode_str;
use tidegate_core::WriteRows;
use tidegate_mcp::NAME_BYTES_MAX;

use crate::http::answer::{ProblemDetails, ProblemType};
use crate::http::endpoints::{Endpoint, EndpointHandler, endpoint_at};

pub(super) struct DataRoute {
    pub(super) endpoint: &'static Endpoint,
    pub(super) entry: WriteRows,
    pub(super) database: String,
    pub(super) table: String,
}

impl DataRoute {
    /// Parses the path of a table. Each segment is percent-decoded separately, because names may contain slashes.
    pub(super) fn parse(path: &str, method: &Method) -> Result<Self, ProblemDetails> {
        let no_such_path = || {
            let detail = format!("there is no path {path}; rows are sent to /data/{{database}}/{{table}}");
            ProblemDetails::new(ProblemType::NoSuchPath, detail)
        };
        let at_path = endpoint_at(path);
        let names: Vec<_> = at_path.parameters(path.split('/')).collect();
        let [(_, database), (_, table)] = names[..] else { return Err(no_such_path()) };
        let (database, table) = (parse_name("database", database)?, parse_name("table", table)?);
        let endpoint = at_path.for_method(method)?;
        let EndpointHandler::Rows(Some(entry)) = endpoint.handler else { return Err(no_such_path()) };
        Ok(Self { endpoint, entry, database, table })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_after_the_path_is_split() {
        let route = DataRoute::parse("/data/plant/a%2Fb%20c", &Method::PUT).unwrap();
        assert_eq!((&*route.database, &*route.table, route.entry), ("plant", "a/b c", WriteRows::ReplaceRows));
        for path in ["/data", "/data/", "/data/plant", "/data/plant/", "/data//sensors", "/data/a/b/c", "/data/a/%ff"] {
            assert!(DataRoute::parse(path, &Method::POST).is_err(), "{path}");
        }
    }
}
