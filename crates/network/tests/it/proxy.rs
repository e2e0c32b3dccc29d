//! A proxy that forwards a number of bytes from the server, and then cuts the connection; and addresses without a server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// A proxy of `server` whose connections end after `bytes` of the server.
pub(crate) async fn cutting_proxy(server: SocketAddr, bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(forward(client, server, bytes));
        }
    });
    format!("grpc://{address}")
}

/// A proxy that cuts its open connections when the server sends more after `cut` is set; later ones are forwarded.
pub(crate) async fn proxy_with_cut(server: SocketAddr, cut: Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let cut = cut.clone();
            tokio::spawn(async move {
                let server = TcpStream::connect(server).await.unwrap();
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                let sending = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
                let mut buffer = vec![0; 16 * 1024];
                while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
                    if cut.swap(false, Ordering::SeqCst) || to_client.write_all(&buffer[..read]).await.is_err() {
                        break;
                    }
                }
                sending.abort();
            });
        }
    });
    format!("grpc://{address}")
}

/// An address that accepts connections and never answers.
pub(crate) async fn silent_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((client, _)) = listener.accept().await {
            open.push(client);
        }
    });
    format!("grpc://{address}")
}

/// An address that accepts no connection.
pub(crate) async fn closed_address() -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("grpc://{}", socket.local_addr().unwrap());
    // A bound socket that does not listen keeps its port closed until the test ends.
    std::mem::forget(socket);
    url
}

async fn forward(client: TcpStream, server: SocketAddr, mut left: usize) {
    let server = TcpStream::connect(server).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let sending = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut buffer = vec![0; 16 * 1024];
    while left > 0 {
        let part = left.min(buffer.len());
        let Ok(read) = from_server.read(&mut buffer[..part]).await else { break };
        if read == 0 || to_client.write_all(&buffer[..read]).await.is_err() {
            break;
        }
        left -= read;
    }
    sending.abort();
}
