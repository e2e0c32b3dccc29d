//! Who is calling, through the public face of the crate.
//!
//! - `scene`: a clock that tests move, and a gate that is asked.
//! - `provider`: a small identity provider, which tests bend.
//! - `signer`: keys made for the test, and the tokens that they sign.
//! - `bearer_properties`: whatever is shown, nothing panics and nobody is let in by chance.
//! - `certificates`: certificates and the word of proxies, and what comes before what.
//! - `development`: keys and tokens for whoever develops.
//! - `authenticator`: callers who show nothing, the process's own user, and one gate after another.
//! - `fetched`: keys that an issuer shows over the network.
//! - `grants`: roles of keys and tokens, and what they add up to.
//! - `introspection`: tokens about which the issuer is asked.
//! - `key_file`: the file itself: its form, its mode, several writers at once.
//! - `keys`: the life of a key, from adding to revoking.
//! - `key_set`: which key of a JWKS a token means.
//! - `token_cache`: a token that is shown twice.
//! - `secrets`: nothing that is secret is printed.
//! - `stored_corpus`: what fuzzing found worth keeping.
//! - `token_options`: ways of checking tokens that there must not be.
//! - `tokens`: good tokens, and everything that can be wrong with one.
//! - `issuer_check`: issuers that are asked once, by whoever sets a node up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod authenticator;
mod bearer_properties;
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
mod scene;
mod secrets;
mod signer;
mod stored_corpus;
mod token_cache;
mod token_options;
mod tokens;
