//! The domain types of a call: who calls, what they may call, what an answer consists of, how it is limited.
//!
//! This crate holds no state and runs nothing. The registry that runs calls is in `tidegate-runtime`.

mod access;
mod answer_format;
mod audited_statement;
mod authenticator;
mod call_target;
mod caller;
mod content;
mod error;
mod grants;
mod hex;
mod hmac_signer;
mod input;
mod json_schema;
mod limits;
mod link_verifier;
mod name_pattern;
mod principal;
pub mod private_file;
mod redaction;
mod row_policy_fingerprinter;
mod scopes;
mod stored_results;
mod uri_template;

pub use access::{Access, Acl, DatabaseTenants, IpNetwork, PrincipalRule};
pub use answer_format::AnswerFormat;
pub use audited_statement::AuditedStatement;
pub use authenticator::{
    AllowAll, AuthenticationError, Authenticator, ClientCertificate, Credentials, is_bearer_token,
};
pub use call_target::{CallTarget, Completion, CompletionReference, CompletionRequest, LogLevel};
pub use caller::{Caller, Owner, Toolset};
pub use content::{Annotations, Content, ContentRole, Icon, ResourceBody, ResourceContents, ResourceLink};
pub use error::{Error, ErrorKind};
pub use grants::{AllowedNames, Grants};
pub use hex::to_hex;
pub use hmac_signer::{HmacSigner, SIGNATURE_BYTES};
pub use input::{ClientCapabilities, InputAnswer, InputAnswers, InputRequest, InputRequestKind, ProvidedAnswer};
pub use json_schema::{JsonSchema, JsonSchemaError, Violation};
pub use limits::{
    Allowance, Budget, CallLimits, DailyLimits, LimitLevel, LimitMeasure, Limits, RateLimit, ShareCounter,
    tenant_share, tenant_share_of_bytes,
};
pub use link_verifier::LinkVerifier;
pub use name_pattern::{NamePattern, nearest_names};
pub use principal::{AuthMethod, CallOrigin, Principal, TransportKind, quota_address};
pub use redaction::{AnswerProtection, DataFence, RedactedText, Redactor};
pub use row_policy_fingerprinter::RowPolicyFingerprinter;
pub use scopes::{ImpliedScopes, ImpliedScopesError, SCOPE_CLAIMS, is_scope};
pub use stored_results::{StoredResultStats, StoredResults};
pub use uri_template::{TemplateVariables, UriTemplate, UriTemplateError, percent_encode};
