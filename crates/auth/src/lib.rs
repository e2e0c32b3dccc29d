//! Authentication: maps an API key, a token, a client certificate or proxy headers to a principal. It contains no
//! transport, no configuration file, and of HTTP only the client for an identity provider.
//!
//! A [`CredentialAuthenticator`] is created from [`AuthenticatorOptions`]: the [`Role`]s, the keys of a [`KeyFile`],
//! the checks of tokens ([`TokenOptions`]), the accepted certificates ([`CertificateRule`]) and the trusted proxies
//! ([`ProxyOptions`]). Transports hold a [`ReloadableAuthenticator`], in which a new authenticator replaces the old one
//! as a whole. [`DevelopmentKey`] signs tokens for development. [`CallerTokenSigner`] signs tokens that name a caller of
//! this node to another node.

mod authenticator;
mod caller_token_signer;
mod certificate;
mod development;
mod key_file;
mod provider;
mod roles;
mod secret;
mod token;

pub use authenticator::{
    AuthenticatorError, AuthenticatorOptions, CredentialAuthenticator, DevelopmentIdentity, ReloadableAuthenticator,
};
pub use caller_token_signer::{CallerTokenOptions, CallerTokenSigner};
pub use certificate::{CertificateName, CertificateRule, ProxyOptions, parse_trusted_network};
pub use development::{DevelopmentKey, DevelopmentToken};
pub use key_file::{KeyFile, KeyFileError, KeyState, KeyStatus, NewKey};
pub use roles::Role;
pub use secret::{Clock, Secret};
pub use token::{IntrospectionOptions, IssuerCheck, TokenAlgorithm, TokenKey, TokenOptions, TokenOptionsError};
