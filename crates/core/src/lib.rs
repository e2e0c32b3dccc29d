//! The domain of a call: registry, job, reply, principal, access, limits. No protocol, no HTTP, no SQL.
//!
//! A host adds [`Tool`]s, [`Resource`]s, [`ResourceTemplate`]s and [`Prompt`]s to a [`Snapshot`] and puts it into a
//! [`Registry`]. Every adapter calls them through [`Registry::call`], the only entry point to handlers.

mod access;
mod answer_format;
mod auditor;
mod authenticator;
mod call;
mod call_timer;
mod caller;
mod client_input;
mod completion;
mod content;
mod database_tenants;
mod error;
pub mod event;
mod execution;
mod grants;
mod handler;
mod hex;
mod hmac_signer;
mod input;
mod job;
mod jobs;
mod json_schema;
mod limits;
mod link_verifier;
mod name_pattern;
mod name_suggestions;
mod owner;
mod principal;
pub mod private_file;
mod progress_throttle;
mod prompt;
mod redaction;
mod registry;
mod reply;
mod resource;
mod route;
mod row_policy_stamper;
mod scopes;
mod snapshot;
mod stored_results;
mod tool;
mod uri_template;
mod watch;

pub use access::{Access, Acl, IpNetwork, PrincipalRule};
pub use answer_format::AnswerFormat;
pub use auditor::{AuditReservation, AuditStats, AuditedStatement, Auditor};
pub use authenticator::{
    AllowAll, AuthenticationError, Authenticator, ClientCertificate, Credentials, is_bearer_token,
};
pub use call::{Call, CallTarget, LogLevel, TemplateVariables};
pub use caller::{Caller, Toolset};
pub use client_input::PendingInputRequest;
pub use completion::{Completer, Completion, CompletionReference, CompletionRequest};
pub use content::{Annotations, Content, ContentRole, Icon, ResourceBody, ResourceContents, ResourceLink};
pub use database_tenants::DatabaseTenants;
pub use error::{Error, ErrorKind, Violation};
pub use grants::{AllowedNames, Grants};
pub use handler::{Handler, handler_fn};
pub use hex::to_hex;
pub use hmac_signer::{HmacSigner, SIGNATURE_BYTES};
pub use input::{ClientCapabilities, InputAnswer, InputAnswers, InputRequest, InputRequestKind, ProvidedAnswer};
pub use job::{Job, JobId, JobState, JobStatus};
pub use jobs::Jobs;
pub use json_schema::{JsonSchema, JsonSchemaError};
pub use limits::{
    Allowance, Budget, CallLimits, DailyLimits, LimitLevel, LimitMeasure, Limits, RateLimit, ShareCounter,
    tenant_share, tenant_share_of_bytes,
};
pub use link_verifier::LinkVerifier;
pub use name_pattern::NamePattern;
pub use name_suggestions::nearest_names;
pub use owner::Owner;
pub use principal::{AuthMethod, CallOrigin, Principal, TransportKind, quota_address};
pub use prompt::{Prompt, PromptArgument};
pub use redaction::{AnswerProtection, DataFence, RedactedText, Redactor};
pub use registry::Registry;
pub use reply::{
    BodyFile, BodyHead, Chunk, Metadata, Outcome, Reply, ReplyEvent, ReplyMessage, ReplyNotification, ReplySender,
    StableBody,
};
pub use resource::{Resource, ResourceLister, ResourceTemplate, ResourceWatcher};
pub use row_policy_stamper::RowPolicyStamper;
pub use scopes::{ImpliedScopes, ImpliedScopesError, SCOPE_CLAIMS, is_scope};
pub use snapshot::{CacheHint, RegistryEntry, Snapshot, SnapshotBuilder};
pub use stored_results::{StoredResultStats, StoredResults};
pub use tool::{Tool, ToolAnnotations};
pub use uri_template::{UriTemplate, UriTemplateError, percent_encode};
pub use watch::{Watch, WatchEvent};
