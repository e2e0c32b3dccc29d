//! The domain types of a call: who calls, what they may call, what an answer consists of, how it is limited.
//!
//! This crate holds no state and runs nothing. The registry that runs calls is in `tidegate-runtime`.

mod access;
mod argument_coercion;
mod authenticator;
mod backoff;
mod call;
mod caller;
mod caller_tokens;
mod content;
mod control_characters;
mod debug;
mod digest;
mod error;
mod format;
mod grants;
mod input;
mod json_schema;
mod limits;
mod memory;
mod message_text;
mod missing_nodes;
mod name_pattern;
mod principal;
pub mod private_file;
mod redaction;
mod scopes;
mod stored_results;
mod uri_template;

pub use access::{Access, Acl, DatabaseTenants, IpNetwork, PrincipalRule, RowPolicyFingerprints};
pub use argument_coercion::json_text;
pub use authenticator::{
    AllowAll, AuthenticationError, Authenticator, ClientCertificate, Credentials, is_bearer_token,
};
pub use backoff::Backoff;
pub use call::{AuditedStatement, CallTarget, Completion, CompletionReference, CompletionRequest, LogLevel, WriteRows};
pub use caller::{Caller, CallerIdentity, Toolset};
pub use caller_tokens::{CallerTokens, HOPS_CLAIM};
pub use content::{Annotations, Content, ContentRole, Icon, ResourceBody, ResourceContents, ResourceLink};
pub use control_characters::{ControlEscaper, escape_control_characters};
pub use digest::{HmacSigner, SIGNATURE_BYTES};
pub use error::{Error, ErrorKind};
pub use format::Format;
pub use grants::{AllowedNames, Grants};
pub use input::{ClientCapabilities, InputAnswer, InputAnswers, InputRequest, InputRequestKind, ProvidedAnswer};
pub use json_schema::{JsonSchema, JsonSchemaError, Violation, schema_description, schema_types, unknown_name};
pub use limits::{
    Budget, CallLimits, DailyLimits, LevelLimits, LimitLevel, LimitMeasure, Limits, RateLimit, ShareCounter,
    tenant_share, tenant_share_of_bytes,
};
pub use memory::{MemoryRefusal, MemoryReservation};
pub use message_text::{join_alternatives, shorten};
pub use missing_nodes::{MissingNode, MissingNodes};
pub use name_pattern::{NamePattern, misspelled_name, nearest_names, suggestion};
pub use principal::{AuthMethod, CallOrigin, Principal, TransportKind, quota_address};
pub use redaction::{AnswerProtection, DataFence, RedactedText, Redactor};
pub use scopes::{ImpliedScopes, ImpliedScopesError, SCOPE_CLAIMS, is_scope};
pub use stored_results::{LinkVerifier, StoredResultStats, StoredResults};
pub use uri_template::{TemplateVariables, UriTemplate, UriTemplateError, percent_encode};
