//! The request of the client, as handlers receive it: its id and its `_meta`.

use serde_json::Value;
use tidegate_core::{Error, Violation};
use tidegate_runtime::Job;

use crate::call::find_nul;

/// The id and `_meta` of a request, as text that PostgreSQL can cast to jsonb.
pub(crate) struct RequestParameters {
    pub(crate) id: String,
    pub(crate) meta: Option<String>,
}

impl RequestParameters {
    /// A call without a JSON-RPC request has the id of its job, which is in the log.
    ///
    /// # Errors
    /// `InvalidArguments` if PostgreSQL cannot represent the id or `_meta`.
    pub(crate) fn from_job(job: &Job) -> Result<Self, Error> {
        let Some(request) = &job.request().client_request else {
            return Ok(Self { id: format!("\"{}\"", job.id()), meta: None });
        };
        let mut violations = Vec::new();
        for (path, text) in [("id", Some(&request.id)), ("params._meta", request.meta.as_ref())] {
            match text.map(|text| serde_json::from_str::<Value>(text)).transpose() {
                Ok(value) => value.iter().for_each(|value| find_nul(value, path, &mut violations)),
                Err(error) => violations.push(Violation { path: path.to_owned(), message: error.to_string() }),
            }
        }
        match violations.is_empty() {
            true => Ok(Self { id: (*request.id).to_owned(), meta: request.meta.as_deref().map(str::to_owned) }),
            false => Err(Error::invalid_arguments("the database cannot represent the request:", violations)),
        }
    }
}
