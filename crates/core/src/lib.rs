//! What a call is: registry, job, reply, principal, access, limits. No protocol, no HTTP, no SQL.
//!
//! A host registers [`Tool`]s, [`Resource`]s, [`ResourceTemplate`]s and [`Prompt`]s in a
//! [`Snapshot`], puts it into a [`Registry`], and every adapter asks through
//! [`Registry::call`], the one door to any handler.

mod access;
mod answer_format;
mod asking;
mod auditor;
mod authenticator;
mod call;
mod caller;
mod clock;
mod completion;
mod content;
mod error;
pub mod event;
mod execution;
mod grants;
mod guard;
mod handler;
mod input;
mod job;
mod jobs;
mod limits;
mod links;
mod name_pattern;
mod nearest;
mod owner;
mod pace;
mod principal;
mod prompt;
mod registry;
mod reply;
mod resource;
mod route;
mod row_policy_stamp;
mod schema;
mod scopes;
mod seal;
mod snapshot;
mod stored;
mod tenancy;
mod tool;
mod uri_template;
mod watch;

pub use access::{Access, Acl, Network, OnlyFor};
pub use answer_format::AnswerFormat;
pub use asking::Asked;
pub use auditor::{AuditFigures, AuditLine, AuditedStatement, Auditor};
pub use authenticator::{Authenticator, ClientCertificate, Credentials, LetEverybodyIn, Unauthenticated, is_bearer};
pub use call::{Call, LogLevel, Target, Variables};
pub use caller::{Caller, Toolset};
pub use completion::{Completer, Completion, CompletionRequest, Reference};
pub use content::{Annotations, Content, Icon, ResourceBody, ResourceContents, ResourceLink, Role};
pub use error::{Error, ErrorKind, Violation};
pub use grants::{Allowed, Grants};
pub use guard::{Fence, Guard, Masked, Screen};
pub use handler::{Handler, handler_fn};
pub use input::{Abilities, GivenAnswer, InputAnswer, InputAnswers, InputRequest, Wanted};
pub use job::{Job, JobId, JobState, JobStatus};
pub use jobs::Jobs;
pub use limits::{
    Allowance, Budget, CallLimits, Daily, Level, Limits, Measure, Rate, Shares, tenant_share, tenant_share_of_bytes,
};
pub use links::Links;
pub use name_pattern::NamePattern;
pub use nearest::nearest;
pub use owner::Owner;
pub use principal::{Origin, Principal, Proof, TransportKind, network_of};
pub use prompt::{Prompt, PromptArgument};
pub use registry::Registry;
pub use reply::{BodyFile, BodyHead, Chunk, Lasting, Metadata, Notice, Outcome, Reply, ReplyEvent, ReplySender, Said};
pub use resource::{Resource, ResourceLister, ResourceTemplate, Watcher};
pub use row_policy_stamp::RowPolicyStamp;
pub use schema::{Schema, SchemaError};
pub use scopes::{ImpliedScopes, ImpliedScopesError, SCOPE_CLAIMS, is_scope};
pub use seal::{SIGNATURE_BYTES, Seal};
pub use snapshot::{CacheHint, Entry, Snapshot, SnapshotBuilder};
pub use stored::{StoredFigures, StoredResults};
pub use tenancy::Tenancy;
pub use tool::{Tool, ToolAnnotations};
pub use uri_template::{UriTemplate, UriTemplateError, percent_encode};
pub use watch::{Change, Watch};
