//! The end of what pi complained, kept for the reason of a failure.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of stderr is kept, in bytes. A crash of pi dumps a minified source line of megabytes first; the reason
/// comes last.
const KEPT: usize = 8 * 1024;

/// The last 8 KiB of a stream. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct StderrTail {
    kept: Arc<Mutex<VecDeque<u8>>>,
}

impl StderrTail {
    /// Reads a stream to its end. Must run as long as the program does: a full pipe would block it.
    pub async fn follow(&self, mut source: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut chunk = [0; 4096];
        loop {
            let read = source.read(&mut chunk).await?;
            if read == 0 {
                return Ok(());
            }
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&chunk[..read]);
            let surplus = kept.len().saturating_sub(KEPT);
            kept.drain(..surplus);
        }
    }

    /// Returns what is kept, trimmed; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_end_is_kept() {
        let tail = StderrTail::default();
        tail.follow(tokio::io::repeat(b'x').take(1 << 20)).await.unwrap();
        tail.follow(b"\nError: the reason\n".as_slice()).await.unwrap();
        let text = tail.text();
        assert!(text.ends_with("x\nError: the reason"));
        assert!(text.len() <= KEPT);
    }
}
