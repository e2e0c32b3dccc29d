//! What a client of TLS says first, byte by byte: no library of today says it in the words of yesterday.
//!
//! [RFC 4346, 7.4.1.2](https://www.rfc-editor.org/rfc/rfc4346#section-7.4.1.2)

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// As versions stand in a hello: 1.1 and 1.2.
pub(super) const V1_1: [u8; 2] = [3, 2];
pub(super) const V1_2: [u8; 2] = [3, 3];

/// What a server answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TlsReply {
    /// Its own hello: it goes on.
    Hello,
    /// That it ends here: an alert by its number (RFC 8446, 6).
    Alert(u8),
}

/// It speaks no version that the client does.
pub(super) const PROTOCOL_VERSION: TlsReply = TlsReply::Alert(70);

/// What the server at `address` answers to a client that knows no version after `newest`.
pub(super) async fn send_client_hello(address: SocketAddr, newest: [u8; 2]) -> TlsReply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&hello(newest)).await.unwrap();
    let mut record = [0; 7];
    stream.read_exact(&mut record).await.unwrap();
    match record {
        [22, _, _, _, _, 2, _] => TlsReply::Hello,
        [21, _, _, 0, 2, 2, alert] => TlsReply::Alert(alert),
        other => panic!("nobody answers {other:?}"),
    }
}

/// Ciphers, groups and signatures are such as any version may have. What knows 1.3 says so in an extension, which is
/// missing here.
fn hello(newest: [u8; 2]) -> Vec<u8> {
    const CIPHERS: [u8; 6] = [0, 4, 0xc0, 0x2b, 0xc0, 0x2f];
    const EXTENSIONS: [u8; 32] = [
        0, 30, // their length
        0, 10, 0, 6, 0, 4, 0, 0x1d, 0, 0x17, // groups: x25519, secp256r1
        0, 11, 0, 2, 1, 0, // points are not compressed
        0, 13, 0, 6, 0, 4, 4, 3, 4, 1, // signatures: ECDSA and RSA with SHA-256
        0, 23, 0, 0, // the extended master secret
    ];
    let random = [7; 32];
    let no_session = [0];
    let no_compression = [1, 0];
    let text = [&newest[..], &random, &no_session, &CIPHERS, &no_compression, &EXTENSIONS].concat();
    let length = u8::try_from(text.len()).unwrap();
    [&[22, 3, 1, 0, length + 4, 1, 0, 0, length][..], &text].concat()
}
