//! Errors of token options.

use super::algorithm::TokenAlgorithm;
use crate::provider::ProviderUrlError;

/// Why token options are invalid. The messages reveal nothing about a key but its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenOptionsError {
    /// No issuer is configured.
    #[error("an issuer is missing: the iss that tokens must have")]
    NoIssuer,
    /// No audience is configured.
    #[error(
        "an audience is missing: what tokens must carry in aud, so that those for other services do not count here"
    )]
    NoAudience,
    /// No algorithm is configured.
    #[error("no algorithm is listed; list those that may sign tokens")]
    NoAlgorithm,
    /// The tenant claim has an empty name.
    #[error("the tenant claim has an empty name")]
    NamelessTenantClaim,
    /// The leeway exceeds the limit, so expired tokens would stay valid.
    #[error("a leeway of {seconds} seconds is too long; at most {seconds_max} are allowed")]
    LeewayTooLong {
        /// The configured leeway.
        seconds: u32,
        /// The maximum.
        seconds_max: u32,
    },
    /// The secret is too short for the algorithm.
    #[error("the secret is too short for {algorithm}, which needs at least {bytes_min} bytes")]
    SecretTooShort {
        /// The algorithm.
        algorithm: TokenAlgorithm,
        /// The minimum length.
        bytes_min: usize,
    },
    /// The text is not a usable public key in PEM.
    #[error(
        "this is not a usable public key in PEM (BEGIN PUBLIC KEY); use RSA with 2048 to 8192 bits, EC on \
         P-256 or P-384, or Ed25519"
    )]
    NoPublicKey,
    /// The key is private.
    #[error("this is a private key, which only the signer may have; give the public key")]
    PrivateKey,
    /// The text is not a JWKS.
    #[error("this is not a JWKS: it must be a JSON object with a list named keys")]
    NoJwks,
    /// The JWKS has too many keys.
    #[error("the JWKS has {count} keys; at most {count_max} are allowed")]
    TooManyKeys {
        /// The number of keys.
        count: usize,
        /// The maximum.
        count_max: usize,
    },
    /// The JWKS contains only keys for other purposes or of unsupported types.
    #[error(
        "the JWKS has no usable key; that would be a public key that checks signatures: RSA with 2048 to 8192 bits, EC \
         on P-256 or P-384, or Ed25519"
    )]
    NoUsableKey,
    /// No key supports the algorithm.
    #[error("the algorithm {algorithm} does not fit the key, which is {keys}")]
    AlgorithmDoesNotFit {
        /// The algorithm.
        algorithm: TokenAlgorithm,
        /// The kinds of the configured keys.
        keys: String,
    },
    /// The URL of the provider is not allowed.
    #[error("{member} {reason}")]
    Address {
        /// Which URL, by its name in the configuration.
        member: &'static str,
        /// Why it is not allowed.
        reason: ProviderUrlError,
    },
    /// Introspection lacks the client's credentials.
    #[error("introspection needs a client_id and a client_secret, which identify this node to the issuer")]
    NoClient,
}
