//! Bytes that a client sends as they are, and the answer to them.

use std::net::SocketAddr;

use nexus3::world::Net;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Done;

const RAW_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Sends bytes as they are and reads one answer, or what there is until the end.
pub async fn exchange(net: &dyn Net, server: SocketAddr, bytes: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = net.connect(server).await?;
    stream.write_all(bytes.as_bytes()).await?;
    let mut answer = Vec::new();
    let mut piece = vec![0; 16 * 1024];
    while !is_whole(&answer) && answer.len() < RAW_BYTES_MAX {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(count) => answer.extend_from_slice(&piece[..count]),
        }
    }
    Ok(answer)
}

/// Whether a head and as many bytes as it announces are there.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    // An answer without a length (204, 304) is its head.
    body.len() >= length.unwrap_or(0)
}

pub fn read_raw(answer: &[u8]) -> Done {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text.as_ref(), ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Done::RawAnswer { status, body: body.to_owned() }
}
