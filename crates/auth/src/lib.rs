//! Who is calling: from a key, a token, a certificate or a proxy's word to a principal. No protocol, no configuration
//! file, and of HTTP only what an identity provider is asked.
//!
//! A [`Gate`] is made from [`GateOptions`] and knows [`Role`]s, the keys of a [`KeyFile`], how tokens are checked
//! ([`TokenOptions`]), whose certificates count ([`CertificateRule`]) and which proxies are believed
//! ([`ProxyOptions`]). Doors hold a [`Doorkeeper`], in which one gate follows another whole. [`DevelopmentKey`] signs
//! tokens for whoever develops.

mod certificate;
mod clock;
mod development;
mod digest;
mod doorkeeper;
mod gate;
mod key_file;
mod key_text;
mod keys;
mod network;
mod private_file;
mod provider;
mod proxy;
mod role;
mod roles;
mod secret;
mod token;

pub use certificate::{CertificateName, CertificateRule};
pub use clock::Clock;
pub use development::{DevelopmentKey, DevelopmentKeyError, DevelopmentToken};
pub use doorkeeper::Doorkeeper;
pub use gate::{Gate, GateError, GateOptions};
pub use key_file::{KeyFile, KeyFileError, KeyState, KeyStatus, NewKey};
pub use network::{Network, NetworkError};
pub use provider::AddressError;
pub use proxy::{ProxyOptions, ProxyOptionsError};
pub use role::Role;
pub use secret::Secret;
pub use token::{
    Introspection, IssuerTrial, IssuerTrouble, TokenAlgorithm, TokenKey, TokenOptions, TokenOptionsError,
    UnknownAlgorithm,
};
