//! Why tokens cannot be checked as asked.

use super::algorithm::TokenAlgorithm;
use crate::provider::ProviderUrlError;

/// Why tokens cannot be checked as asked. None of these says anything of a key but its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenOptionsError {
    /// Any issuer would do.
    #[error("an issuer is missing: the iss that tokens must have")]
    NoIssuer,
    /// Any audience would do.
    #[error(
        "an audience is missing: what tokens must carry in aud, so that those for other services do not count here"
    )]
    NoAudience,
    /// No algorithm would do.
    #[error("no algorithm is listed; list those that may sign tokens")]
    NoAlgorithm,
    /// A claim without a name.
    #[error("the tenant claim has an empty name")]
    NamelessTenantClaim,
    /// So much leeway that expired tokens live on.
    #[error("a leeway of {seconds} seconds is too long; at most {seconds_max} are allowed")]
    LeewayTooLong {
        /// As asked.
        seconds: u32,
        /// The most there may be.
        seconds_max: u32,
    },
    /// A secret that could be guessed.
    #[error("the secret is too short for {algorithm}, which needs at least {bytes_min} bytes")]
    SecretTooShort {
        /// The algorithm.
        algorithm: TokenAlgorithm,
        /// What it needs.
        bytes_min: usize,
    },
    /// What should be PEM is not.
    #[error(
        "this is not a usable public key in PEM (BEGIN PUBLIC KEY); use RSA with 2048 to 8192 bits, EC on \
         P-256 or P-384, or Ed25519"
    )]
    NoPublicKey,
    /// The key that signs, where the one that checks belongs.
    #[error("this is a private key, which only the signer may have; give the public key")]
    PrivateKey,
    /// What should be a JWKS is not.
    #[error("this is not a JWKS: it must be a JSON object with a list named keys")]
    NoJwks,
    /// Too many keys.
    #[error("the JWKS has {count} keys; at most {count_max} are allowed")]
    TooManyKeys {
        /// As there are.
        count: usize,
        /// As there may be.
        count_max: usize,
    },
    /// Only keys for other purposes, or of sorts that we do not know.
    #[error(
        "the JWKS has no usable key; that would be a public key that checks signatures: RSA with 2048 to 8192 bits, EC \
         on P-256 or P-384, or Ed25519"
    )]
    NoUsableKey,
    /// An algorithm that no key can check.
    #[error("the algorithm {algorithm} does not fit the key, which is {keys}")]
    AlgorithmDoesNotFit {
        /// The algorithm.
        algorithm: TokenAlgorithm,
        /// The kinds of the keys that there are.
        keys: String,
    },
    /// A provider that nobody should ask there.
    #[error("{member} {reason}")]
    Address {
        /// Which address, as a configuration calls it.
        member: &'static str,
        /// What is wrong with it.
        reason: ProviderUrlError,
    },
    /// The issuer would ask who asks.
    #[error("introspection needs a client_id and a client_secret, which identify this node to the issuer")]
    NoClient,
}
