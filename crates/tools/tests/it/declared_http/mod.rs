//! Declared tools of kind `http` against a real server on this machine.
//!
//! - `test_server`: that server.
//! - `answers`: tables, JSON, text, and their limits.
//! - `api_errors`: errors when the API rejects a request, fails or cannot be reached.
//! - `redirects_and_hosts`: allowed and rejected targets of requests.

mod answers;
mod api_errors;
mod redirects_and_hosts;
pub(crate) mod test_server;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_core::{AnswerProtection, CallLimits};
use tidegate_query::Executor;
use tidegate_runtime::{Registry, SnapshotBuilder, Tool, event::EventDispatcher};
use tidegate_tools::declared::{
    AllowedHosts, DnsResolver, HttpArgument, HttpClient, HttpDefinition, HttpRequestTemplate, HttpToolHandler,
};

/// Only the API may receive this.
const SECRET: &str = "s3cr3t-token";

/// A registry with one http tool, `api`.
struct ApiFixture {
    hosts: Vec<String>,
    definition: HttpDefinition,
    arguments: Vec<HttpArgument>,
    limits: CallLimits,
    names: FakeResolver,
    protection: AnswerProtection,
}

impl ApiFixture {
    /// The tool GETs `url` of `hosts` with secret headers.
    fn get<const N: usize>(url: String, hosts: [String; N]) -> Self {
        let headers = [("Authorization", format!("Bearer {SECRET}")), ("X-Api-Key", SECRET.to_owned())];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Self {
            hosts: hosts.to_vec(),
            definition: HttpDefinition { url, headers, ..HttpDefinition::default() },
            arguments: Vec::new(),
            limits: CallLimits::default(),
            names: FakeResolver(Vec::new()),
            protection: AnswerProtection::default(),
        }
    }

    /// The tool GETs `/` of `test_server`.
    fn for_server(server: &test_server::TestServer) -> Self {
        Self::get(server.url("/"), [server.host()])
    }

    /// The same with the definition changed.
    fn with(mut self, change: impl FnOnce(&mut HttpDefinition)) -> Self {
        change(&mut self.definition);
        self
    }

    /// The same with one more argument, which must be given.
    fn with_argument(mut self, name: &str) -> Self {
        self.arguments.push(HttpArgument { name: name.to_owned(), is_required: true, default: None });
        self
    }

    fn registry(self) -> Arc<Registry> {
        let allowed = Arc::new(AllowedHosts::parse(&self.hosts).unwrap());
        let template = HttpRequestTemplate::parse(&self.definition, &self.arguments, &allowed).unwrap();
        let client = HttpClient::with_resolver(allowed, "1.2.3", Arc::new(self.names)).unwrap();
        let tool = HttpToolHandler::new(template, client, Executor::new(EventDispatcher::default()));
        assert!(!format!("{tool:?}").contains(SECRET));
        let tool = Tool::new("api", "An API", Arc::new(tool)).with_limits(self.limits);
        let tool = tool.with_input_schema(json!({"type": "object"})).unwrap();
        let snapshot = SnapshotBuilder::new().tool(tool).protection(self.protection).build();
        Registry::new(snapshot, EventDispatcher::default())
    }

    /// The answer to a call with these arguments.
    async fn call(self, arguments: Value) -> String {
        let answer = crate::fake::call_tool(&self.registry(), "api", arguments).await;
        assert!(!answer.contains(SECRET), "{answer}");
        answer
    }
}

/// Names with their addresses. Other names are unknown.
#[derive(Clone)]
struct FakeResolver(Vec<(&'static str, Vec<IpAddr>)>);

impl FakeResolver {
    fn one(name: &'static str, address: &str) -> Self {
        Self(vec![(name, vec![address.parse().unwrap()])])
    }
}

#[async_trait]
impl DnsResolver for FakeResolver {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, addresses)| addresses.clone()).ok_or_else(|| io::Error::other("no such name"))
    }
}
