//! Who is calling: from a key, a token, a certificate or a proxy's word to a principal. No protocol, no configuration
//! file, and of HTTP only what an identity provider is asked.
//!
//! A [`CredentialAuthenticator`] is made from [`AuthenticatorOptions`] and knows [`Role`]s, the keys of a [`KeyFile`], how tokens are checked
//! ([`TokenOptions`]), whose certificates count ([`CertificateRule`]) and which proxies are believed
//! ([`ProxyOptions`]). Doors hold a [`ReloadableAuthenticator`], in which one gate follows another whole. [`DevelopmentKey`] signs
//! tokens for whoever develops.

mod api_keys;
mod authenticator;
mod certificate;
mod clock;
mod development;
mod digest;
mod key_file;
mod key_format;
mod network;
mod private_file;
mod provider;
mod proxy;
mod reloadable;
mod role;
mod roles;
mod secret;
mod token;

pub use authenticator::{AuthenticatorError, AuthenticatorOptions, CredentialAuthenticator};
pub use certificate::{CertificateName, CertificateRule};
pub use clock::Clock;
pub use development::{DevelopmentKey, DevelopmentKeyError, DevelopmentToken};
pub use key_file::{KeyFile, KeyFileError, KeyState, KeyStatus, NewKey};
pub use network::{TrustedNetwork, TrustedNetworkError};
pub use provider::ProviderUrlError;
pub use proxy::{ProxyOptions, ProxyOptionsError};
pub use reloadable::ReloadableAuthenticator;
pub use role::Role;
pub use secret::Secret;
pub use token::{
    IntrospectionOptions, IssuerCheck, IssuerCheckError, TokenAlgorithm, TokenKey, TokenOptions, TokenOptionsError,
    UnknownAlgorithm,
};
