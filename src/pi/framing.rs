//! NDJSON from a stream of bytes: split on the byte 0x0A alone, decode afterwards (pi-rpc §4).
//!
//! A line separator inside a string (U+2028) is text, not an end; a line is never cut at a chunk's edge; and a line
//! above the cap is passed over, not kept.

use std::io;
use std::ops::Range;

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest line that is kept unless told otherwise, in bytes. The longest of pi that was seen is 5 MB.
pub const DEFAULT_LINE_CAP: usize = 32 * 1024 * 1024;

/// Read at once: the size of a pipe.
const CHUNK: usize = 64 * 1024;

/// A buffer above this size is given back once it is empty.
const KEPT: usize = 1024 * 1024;

/// One line of a stream, or the gap one leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line without its line feed and without one carriage return before it.
    Line(&'a [u8]),
    /// A line that was too long and is lost.
    Oversize {
        /// Its length.
        bytes: u64,
    },
}

/// Some lines that were there at the same time, in their order; owned, so that one message can carry many.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Batch {
    bytes: Vec<u8>,
    frames: Vec<Span>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Span {
    Line(Range<usize>),
    Oversize(u64),
}

impl Batch {
    /// Returns the lines.
    pub fn iter(&self) -> impl Iterator<Item = Frame<'_>> {
        self.frames.iter().map(|frame| match frame {
            Span::Line(at) => Frame::Line(&self.bytes[at.clone()]),
            Span::Oversize(bytes) => Frame::Oversize { bytes: *bytes },
        })
    }

    /// Returns how many lines there are; never 0 in a batch that was read.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    fn push_line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(line);
        self.frames.push(Span::Line(start..self.bytes.len()));
    }
}

/// Reads lines from a stream.
#[derive(Debug)]
pub struct NdjsonReader<R> {
    source: R,
    cap: usize,
    buffer: Vec<u8>,
    /// Where the first line that was not handed out begins.
    start: usize,
    /// Up to where that line is known to hold no line feed.
    scanned: usize,
    /// Bytes of a line above the cap that were passed over so far.
    discarded: Option<u64>,
    ended: bool,
}

impl<R: AsyncRead + Unpin> NdjsonReader<R> {
    /// Reads from `source`, keeping lines of at most `cap` bytes.
    pub fn new(source: R, cap: usize) -> Self {
        Self { source, cap, buffer: Vec::new(), start: 0, scanned: 0, discarded: None, ended: false }
    }

    /// Returns the lines that are there, at least one and at most `max_lines` (taken as 1 if 0); waits if there is
    /// none. `None` is the end of the stream; a last line without a line feed counts. Blank lines are left out.
    ///
    /// Cancel-safe: what was read stays in the reader.
    pub async fn read_batch(&mut self, max_lines: usize) -> io::Result<Option<Batch>> {
        loop {
            let mut batch = Batch::default();
            self.take_lines(&mut batch, max_lines.max(1));
            if !batch.is_empty() {
                return Ok(Some(batch));
            }
            if self.ended {
                return Ok(None);
            }
            self.buffer.reserve(CHUNK);
            if self.source.read_buf(&mut self.buffer).await? == 0 {
                self.end();
            }
        }
    }

    fn take_lines(&mut self, batch: &mut Batch, max_lines: usize) {
        while batch.len() < max_lines {
            let Some(offset) = memchr(b'\n', &self.buffer[self.scanned..]) else { break };
            let end = self.scanned + offset;
            let length = end - self.start;
            match self.discarded.take() {
                Some(bytes) => batch.frames.push(Span::Oversize(bytes + length as u64)),
                None if length > self.cap => batch.frames.push(Span::Oversize(length as u64)),
                None => batch.push_line(&self.buffer[self.start..end]),
            }
            self.start = end + 1;
            self.scanned = self.start;
        }
        if batch.len() < max_lines {
            self.scanned = self.buffer.len();
            self.make_room();
        }
    }

    /// Moves the beginning of the unfinished line to the front, or passes it over if it is too long.
    fn make_room(&mut self) {
        let length = self.buffer.len() - self.start;
        if length > self.cap || self.discarded.is_some() {
            *self.discarded.get_or_insert(0) += length as u64;
            self.start = self.buffer.len();
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        self.scanned = self.buffer.len();
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT {
            self.buffer = Vec::new();
        }
    }

    /// Finishes a last line that has no line feed.
    fn end(&mut self) {
        self.ended = true;
        if !self.buffer.is_empty() || self.discarded.is_some() {
            self.buffer.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests;
