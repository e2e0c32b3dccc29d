//! Reads the TLS files in PEM format ([RFC 7468](https://www.rfc-editor.org/rfc/rfc7468)).

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use super::TlsError;

/// Maximum size of a file in bytes.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The certificates in the file at `path`, in their order.
pub(super) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    read_items(path, "a certificate", "BEGIN CERTIFICATE")
}

/// The revocation lists in the file at `path`.
pub(super) fn read_revocation_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    read_items(path, "a list of revoked certificates", "BEGIN X509 CRL")
}

/// The private key in the file at `path`.
pub(super) fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read_file(path)?;
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| TlsError::invalid(path, describe_pem_error(&error, "a key", "BEGIN PRIVATE KEY")))
}

fn read_items<T: PemObject>(path: &Path, subject: &str, label: &str) -> Result<Vec<T>, TlsError> {
    let bytes = read_file(path)?;
    let all: Result<Vec<T>, pem::Error> = T::pem_slice_iter(&bytes).collect();
    let all = all.map_err(|error| TlsError::invalid(path, describe_pem_error(&error, subject, label)))?;
    if all.is_empty() {
        return Err(TlsError::invalid(path, describe_pem_error(&pem::Error::NoItemsFound, subject, label)));
    }
    Ok(all)
}

fn describe_pem_error(error: &pem::Error, subject: &str, label: &str) -> String {
    match error {
        pem::Error::NoItemsFound => format!("does not contain {subject} in PEM format (-----{label}-----)"),
        // Other errors quote the file, which may contain a key.
        _ => format!("is not a valid PEM file with {subject}"),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(TlsError::invalid(path, format!("is larger than {BYTES_MAX} bytes")));
    }
    Ok(bytes)
}
