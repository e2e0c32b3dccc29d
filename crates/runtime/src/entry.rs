//! The entries of the registry, which hosts add, and the code behind them: tools, which a model can call; resources and
//! resource templates, which are read by URI; prompts, which are message templates that a person selects. A handler
//! turns a call into an answer.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_core::{
    Access, Annotations, CallLimits, Caller, Completion, CompletionRequest, Error, Icon, JsonSchema, JsonSchemaError,
    Principal, TemplateVariables, UriTemplate,
};

use crate::job::Job;
use crate::reply::{Answer, RunningCall};

/// The code behind a tool, a resource or a prompt.
///
/// A handler returns its answer: a value, or what writes it. It observes [`Job::cancelled`]. A panic becomes an internal
/// error with an id; the process continues.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Answers `call`.
    ///
    /// # Errors
    /// Any [`Error`], written for the caller.
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error>;
}

/// Completes the arguments of one prompt or resource template.
#[async_trait]
pub trait Completer: Send + Sync + 'static {
    /// Completes `request`.
    ///
    /// # Errors
    /// Any [`Error`], written for the caller.
    async fn complete(&self, request: &CompletionRequest, job: Arc<Job>) -> Result<Completion, Error>;
}

/// Makes a handler from an async function, for hosts with small tools.
///
/// ```
/// use tidegate_runtime::{Answer, handler_fn};
///
/// let hello = handler_fn(|_call| async { Ok(Answer::text("hello")) });
/// # let _ = hello;
/// ```
pub fn handler_fn<F, Fut>(function: F) -> Arc<dyn Handler>
where
    F: Fn(RunningCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Answer, Error>> + Send + 'static,
{
    Arc::new(ClosureHandler(function))
}

struct ClosureHandler<F>(F);

#[async_trait]
impl<F, Fut> Handler for ClosureHandler<F>
where
    F: Fn(RunningCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Answer, Error>> + Send + 'static,
{
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        (self.0)(call).await
    }
}

pub(crate) fn panic_to_error(panic: &(dyn std::any::Any + Send)) -> Error {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    Error::internal(format!("a handler panicked: {message}"))
}

/// Hints on what a tool does. Clients must not trust them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy data; has a meaning only for tools that are not read-only.
    pub destructive: Option<bool>,
    /// Repeating the same call changes nothing more.
    pub idempotent: Option<bool>,
    /// It accesses more than this server's data.
    pub open_world: Option<bool>,
}

/// The bodies of requests that a tool takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestBodyTypes {
    /// The media types, without parameters, in lower case.
    pub media_types: &'static [&'static str],
    /// The content codings, in lower case.
    pub codings: &'static [&'static str],
}

impl RequestBodyTypes {
    /// Whether a body with this value of `Content-Type` is taken.
    pub fn takes_media_type(&self, content_type: &str) -> bool {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        self.media_types.iter().any(|taken| media_type.eq_ignore_ascii_case(taken))
    }

    /// Whether a body with this value of `Content-Encoding` is taken.
    pub fn takes_coding(&self, coding: &str) -> bool {
        self.codings.iter().any(|taken| coding.trim().eq_ignore_ascii_case(taken))
    }
}

/// A tool of the registry.
#[derive(Clone)]
pub struct Tool {
    /// The name: 1 to 128 letters, digits, `_`, `-`, `.`.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// A description for the model: when to use it, and what to call first.
    pub description: Option<String>,
    /// Icons.
    pub icons: Vec<Icon>,
    /// The schema of its arguments, as it is listed.
    pub input_schema: Arc<JsonSchema>,
    /// The schema of all its arguments, if lists leave some out.
    pub full_schema: Option<Arc<JsonSchema>>,
    /// The bodies of requests that it takes instead of arguments; `None` for none.
    pub request_body: Option<RequestBodyTypes>,
    /// The schema of its structured answer.
    pub output_schema: Option<Arc<JsonSchema>>,
    /// Hints on what it does.
    pub annotations: Option<ToolAnnotations>,
    /// Further members of `_meta`.
    pub meta: Map<String, Value>,
    /// What it requires of a caller.
    pub access: Access,
    /// The limits of its calls.
    pub limits: CallLimits,
    /// How long clients may cache an answer; not stated without it.
    pub cache: Option<CacheHint>,
    /// Whether an answer that does not fit has a cursor, with which the next call continues it.
    pub supports_pagination: bool,
    /// Whether it sends rows while it reads them.
    pub supports_streaming: bool,
    /// The tool that it calls, and arguments that it adds to those of its callers; `None` for a tool of its own.
    pub preset: Option<Arc<ToolPreset>>,
    /// The handler.
    pub handler: Arc<dyn Handler>,
}

/// Arguments with which a tool calls another one, whose handler it has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolPreset {
    /// The name of the other tool.
    pub tool: String,
    /// The arguments that callers cannot choose; the schema of the tool lacks them.
    pub arguments: Map<String, Value>,
    /// The arguments that apply to calls without them.
    pub defaults: Map<String, Value>,
}

impl ToolPreset {
    /// The arguments of a call that has `arguments`.
    pub(crate) fn complete(&self, mut arguments: Map<String, Value>) -> Map<String, Value> {
        for (name, value) in &self.defaults {
            arguments.entry(name.as_str()).or_insert_with(|| value.clone());
        }
        arguments.extend(self.arguments.clone());
        arguments
    }
}

impl Tool {
    /// A tool without arguments, open to all callers. The other methods add to it.
    pub fn new(name: impl Into<String>, description: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: Some(description.into()),
            icons: Vec::new(),
            input_schema: JsonSchema::empty_object(),
            full_schema: None,
            request_body: None,
            output_schema: None,
            annotations: None,
            meta: Map::new(),
            access: Access::default(),
            limits: CallLimits::default(),
            cache: None,
            supports_pagination: false,
            supports_streaming: false,
            preset: None,
            handler,
        }
    }

    /// Sets the schema of its arguments (JSON Schema 2020-12, `type: object`).
    ///
    /// # Errors
    /// If it is not a valid schema of an object.
    pub fn with_input_schema(mut self, schema: Value) -> Result<Self, JsonSchemaError> {
        self.input_schema = Arc::new(JsonSchema::object(schema)?);
        Ok(self)
    }

    /// Leaves the arguments `names` out of lists. Calls may still have them.
    ///
    /// # Errors
    /// If the other arguments are not a valid schema.
    pub fn with_unlisted_arguments(mut self, names: &[&str]) -> Result<Self, JsonSchemaError> {
        let mut listed = self.input_schema.json().clone();
        let Some(properties) = listed.get_mut("properties").and_then(Value::as_object_mut) else { return Ok(self) };
        let count = properties.len();
        properties.retain(|name, _| !names.contains(&name.as_str()));
        if properties.len() == count {
            return Ok(self);
        }
        // A client that checks arguments itself would refuse those that the list lacks.
        if let Some(members) = listed.as_object_mut() {
            members.shift_remove("additionalProperties");
        }
        self.full_schema = Some(std::mem::replace(&mut self.input_schema, Arc::new(JsonSchema::object(listed)?)));
        Ok(self)
    }

    /// The schema of the arguments that a call may have.
    pub fn call_schema(&self) -> &Arc<JsonSchema> {
        self.full_schema.as_ref().unwrap_or(&self.input_schema)
    }

    /// Sets the schema of its structured answer.
    ///
    /// # Errors
    /// If it is not a valid schema.
    pub fn with_output_schema(mut self, schema: Value) -> Result<Self, JsonSchemaError> {
        self.output_schema = Some(Arc::new(JsonSchema::new(schema)?));
        Ok(self)
    }

    /// Sets the bodies of requests that it takes.
    #[must_use]
    pub fn with_request_body(mut self, types: RequestBodyTypes) -> Self {
        self.request_body = Some(types);
        self
    }

    /// Sets its title.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the hints on what it does.
    #[must_use]
    pub fn with_annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// States that an answer which does not fit has a cursor.
    #[must_use]
    pub fn with_pagination(mut self) -> Self {
        self.supports_pagination = true;
        self
    }

    /// States that it sends rows while it reads them.
    #[must_use]
    pub fn with_streaming(mut self) -> Self {
        self.supports_streaming = true;
        self
    }

    /// States how long clients may cache an answer.
    #[must_use]
    pub fn with_cache(mut self, cache: CacheHint) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sets what it requires of a caller.
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the limits of its calls.
    #[must_use]
    pub fn with_limits(mut self, limits: CallLimits) -> Self {
        self.limits = limits;
        self
    }
}

tidegate_core::impl_debug!(Tool { name });

/// How long clients may cache a list or the contents of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// The time that it stays fresh.
    pub time_to_live: Duration,
    /// Whether shared caches may store it; only if it is the same for every caller.
    pub public: bool,
}

impl CacheHint {
    /// The hint for lists, unless another one is set.
    pub const LISTS: Self = Self { time_to_live: Duration::from_secs(60), public: true };
}

/// A resource of the registry.
#[derive(Clone)]
pub struct Resource {
    /// The URI.
    pub uri: String,
    /// The name.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// A description.
    pub description: Option<String>,
    /// The media type.
    pub mime_type: Option<String>,
    /// The size in bytes, if known.
    pub size_bytes: Option<u64>,
    /// Hints for clients.
    pub annotations: Option<Annotations>,
    /// Icons.
    pub icons: Vec<Icon>,
    /// Further members of `_meta`.
    pub meta: Map<String, Value>,
    /// What it requires of a caller.
    pub access: Access,
    /// The limits of its reads.
    pub limits: CallLimits,
    /// How long clients may cache its contents; not at all without it.
    pub cache: Option<CacheHint>,
    /// Detects changes. Without one, the resource changes only with the registry.
    pub watcher: Option<Arc<dyn ResourceWatcher>>,
    /// The handler that reads it.
    pub handler: Arc<dyn Handler>,
}

impl Resource {
    /// A resource open to all callers. Set the public fields for more.
    pub fn new(uri: impl Into<String>, name: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size_bytes: None,
            annotations: None,
            icons: Vec::new(),
            meta: Map::new(),
            access: Access::default(),
            limits: CallLimits::default(),
            cache: None,
            watcher: None,
            handler,
        }
    }
}

/// Resources whose URIs follow a template.
#[derive(Clone)]
pub struct ResourceTemplate {
    /// The URI template.
    pub template: UriTemplate,
    /// The name.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// A description of its resources.
    pub description: Option<String>,
    /// The media type, if all resources have the same.
    pub mime_type: Option<String>,
    /// Hints for clients.
    pub annotations: Option<Annotations>,
    /// Icons.
    pub icons: Vec<Icon>,
    /// Further members of `_meta`.
    pub meta: Map<String, Value>,
    /// What it requires of a caller.
    pub access: Access,
    /// The limits of reads.
    pub limits: CallLimits,
    /// How long clients may cache the contents; not at all without it.
    pub cache: Option<CacheHint>,
    /// Detects changes of its resources. Without one, they change only with the registry.
    pub watcher: Option<Arc<dyn ResourceWatcher>>,
    /// The handler that reads its resources.
    pub handler: Arc<dyn Handler>,
    /// Completes its variables.
    pub completer: Option<Arc<dyn Completer>>,
    /// Lists its current resources.
    pub lister: Option<Arc<dyn ResourceLister>>,
}

impl ResourceTemplate {
    /// A template open to all callers. Set the public fields for more.
    pub fn new(template: UriTemplate, name: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        Self {
            template,
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            annotations: None,
            icons: Vec::new(),
            meta: Map::new(),
            access: Access::default(),
            limits: CallLimits::default(),
            cache: None,
            watcher: None,
            handler,
            completer: None,
            lister: None,
        }
    }
}

/// Lists the current resources of a template.
#[async_trait]
pub trait ResourceLister: Send + Sync + 'static {
    /// The resources that `principal` can see, in a stable order.
    ///
    /// # Errors
    /// Any [`Error`], written for the caller.
    async fn list(&self, principal: &Principal) -> Result<Vec<Resource>, Error>;
}

/// Detects whether the contents of a resource have changed, for listeners.
#[async_trait]
pub trait ResourceWatcher: Send + Sync + 'static {
    /// A version tag of the contents that `caller` sees; equal version tags mean equal contents. `None` if the resource
    /// does not exist or is hidden from the caller. `variables` are those of its template, percent-decoded. Must be
    /// cheap: it is polled while there are listeners. Takes the caller, not only the principal, because anonymous
    /// callers are distinguished by their addresses.
    ///
    /// # Errors
    /// If the state cannot be determined now; it counts as unchanged then.
    async fn version_tag(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error>;
}

tidegate_core::impl_debug!(Resource { uri });

tidegate_core::impl_debug!(ResourceTemplate { template });

/// An argument of a prompt; its value is always text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// A description.
    pub description: Option<String>,
    /// Whether a value is required.
    pub required: bool,
}

/// A prompt of the registry.
#[derive(Clone)]
pub struct Prompt {
    /// The name.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// The purpose.
    pub description: Option<String>,
    /// The arguments.
    pub arguments: Vec<PromptArgument>,
    /// Icons.
    pub icons: Vec<Icon>,
    /// Further members of `_meta`.
    pub meta: Map<String, Value>,
    /// What it requires of a caller.
    pub access: Access,
    /// The limits of its calls.
    pub limits: CallLimits,
    /// The handler.
    pub handler: Arc<dyn Handler>,
    /// Completes the arguments.
    pub completer: Option<Arc<dyn Completer>>,
}

impl Prompt {
    /// A prompt without arguments, open to all callers. Set the public fields for more.
    pub fn new(name: impl Into<String>, description: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: Some(description.into()),
            arguments: Vec::new(),
            icons: Vec::new(),
            meta: Map::new(),
            access: Access::default(),
            limits: CallLimits::default(),
            handler,
            completer: None,
        }
    }
}

tidegate_core::impl_debug!(Prompt { name });
