//! Authentication, through the public API of the crate.
//!
//! - `provider`: a small identity provider that tests control.
//! - `bearer_properties`: arbitrary bearers neither cause a panic nor are accepted.
//! - `caller_tokens`: tokens that name a caller to another node.
//! - `certificates`: certificates, proxy headers, and their precedence.
//! - `development`: keys and tokens for development.
//! - `authenticator`: callers without credentials, the process's own user, and replaced authenticators.
//! - `fetched_keys`: keys that an issuer publishes.
//! - `grants`: roles of keys and tokens, and their combined grants.
//! - `introspection`: token introspection.
//! - `key_file`: the key file: its format, its mode, several writers at once.
//! - `keys`: the life of a key, from adding to revoking.
//! - `key_set`: the choice of the key of a JWKS.
//! - `token_cache`: repeated tokens.
//! - `secrets`: secrets are never printed.
//! - `stored_corpus`: inputs that fuzzing found.
//! - `token_options`: invalid token options.
//! - `tokens`: valid and invalid tokens.
//! - `issuer_check`: the check of an issuer's configuration.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod authenticator;
mod bearer_properties;
mod caller_tokens;
mod certificates;
mod development;
mod fetched_keys;
mod grants;
mod introspection;
mod issuer_check;
mod key_file;
mod key_set;
mod keys;
mod provider;
mod secrets;
mod stored_corpus;
mod token_cache;
mod token_options;
mod tokens;
