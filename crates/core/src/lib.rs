//! The domain types of a call: who calls, what they may call, what an answer consists of, how it is limited.
//!
//! This crate holds no state and runs nothing. The registry that runs calls is in `tidegate-runtime`.

mod access;
mod argument_redaction;
mod authenticator;
mod backoff;
mod call;
mod content;
mod error;
mod format;
mod grants;
mod ingest_totals;
mod input;
mod json_schema;
mod limits;
mod missing_nodes;
mod name_pattern;
mod principal;
pub mod private_file;
mod redaction;
mod uri_template;

pub use access::{Access, Acl, CalledEntry, DatabaseTenants, IpNetwork, PrincipalRule, RowPolicyFingerprints};
pub use argument_redaction::ArgumentRedaction;
pub use authenticator::{
    AllowAll, AuthenticationError, Authenticator, CallerTokens, ClientCertificate, Credentials, FORWARDING_HEADERS,
    HOPS_CLAIM, HmacSigner, SIGNATURE_BYTES, is_bearer_token,
};
pub use backoff::Backoff;
pub use call::{AuditedStatement, CallTarget, Completion, CompletionReference, CompletionRequest, LogLevel, WriteRows};
pub use content::{
    Annotations, Content, ContentRole, Icon, LinkVerifier, ResourceBody, ResourceContents, ResourceLink,
    StoredResultStats, StoredResults,
};
pub use error::{Error, ErrorKind, ProtocolError};
pub use format::Format;
pub use grants::{AllowedNames, Grants};
pub use ingest_totals::{IngestTotals, WriteTotals};
pub use input::{ClientCapabilities, InputAnswer, InputAnswers, InputRequest, InputRequestKind, ProvidedAnswer};
pub use json_schema::{
    JsonSchema, JsonSchemaError, Violation, json_text, schema_description, schema_types, unknown_name,
};
pub use limits::{
    Budget, CallLimits, DailyLimits, LevelLimits, LimitLevel, LimitMeasure, Limits, MemoryRefusal, MemoryReservation,
    RateLimit, ShareCounter, tenant_share, tenant_share_of_bytes,
};
pub use missing_nodes::{MissingNode, MissingNodes};
pub use name_pattern::{NamePattern, join_alternatives, misspelled_name, nearest_names, shorten, suggestion};
pub use principal::{
    AuthMethod, CallOrigin, Caller, CallerIdentity, ImpliedScopes, ImpliedScopesError, Principal, SCOPE_CLAIMS,
    Toolset, TransportKind, is_scope, quota_address,
};
pub use redaction::{AnswerProtection, ControlEscaper, DataFence, RedactedText, Redactor, escape_control_characters};
pub use uri_template::{TemplateVariables, UriTemplate, UriTemplateError, percent_encode};

/// Implements `Debug` for a type whose other fields have none, are large or are secrets: with these fields, or as a text.
#[macro_export]
macro_rules! impl_debug {
    ($type:ident { $($field:ident),+ }) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($type))$(.field(stringify!($field), &self.$field))+.finish_non_exhaustive()
            }
        }
    };
    ($type:ident, $text:literal) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str($text)
            }
        }
    };
}
