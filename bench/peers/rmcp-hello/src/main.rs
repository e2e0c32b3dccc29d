//! One tool, `hello`, over Streamable HTTP with rmcp, in the fastest way that is still sensible:
//! stateless, JSON answers, a handler written by hand whose tool is built once, and hyper without a
//! router between. Prints its address.

use std::borrow::Cow;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::net::TcpListener;

struct Hello {
    tool: Tool,
}

impl Hello {
    fn new() -> Self {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        let Value::Object(schema) = schema else { unreachable!("the literal is an object") };
        Self { tool: Tool::new("hello", "Greets somebody by name.", schema) }
    }
}

impl ServerHandler for Hello {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![self.tool.clone()]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let name = arguments.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| ErrorData::invalid_params(Cow::Borrowed("name must be a string"), None))?;
        Ok(CallToolResult::success(vec![ContentBlock::text(format!("hello, {name}"))]).into())
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let hello = Arc::new(Hello::new());
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(None);
    let service =
        StreamableHttpService::new(move || Ok(hello.clone()), Arc::new(NeverSessionManager::default()), config);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            // A broken connection is the client's affair.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
