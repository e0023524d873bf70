//! NDJSON from a stream of bytes: split on the byte 0x0A alone, decode afterwards (pi-rpc §4).
//!
//! A line separator inside a string (U+2028) is text, not an end; a line is never cut at a chunk's edge; and a line
//! above the cap, or a long one that only repeats what was said, is passed over, not kept.

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

/// A line above this size is looked at before its end: its rest may be of no use.
const LONG: usize = 256 * 1024;

/// As much of a line that is passed over is handed out.
const HEAD: usize = 256;

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
    /// The beginning of a long line whose rest was not wanted.
    Head(&'a [u8]),
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
    Head(Range<usize>),
}

impl Batch {
    /// Returns the lines.
    pub fn iter(&self) -> impl Iterator<Item = Frame<'_>> {
        self.frames.iter().map(|frame| match frame {
            Span::Line(at) => Frame::Line(&self.bytes[at.clone()]),
            Span::Oversize(bytes) => Frame::Oversize { bytes: *bytes },
            Span::Head(at) => Frame::Head(&self.bytes[at.clone()]),
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
        let at = self.keep(line);
        self.frames.push(Span::Line(at));
    }

    fn push_passed(&mut self, passed: Passed) {
        let frame = match passed {
            Passed::TooLong { bytes } => Span::Oversize(bytes),
            Passed::Unwanted { head } => Span::Head(self.keep(&head)),
        };
        self.frames.push(frame);
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}

/// A line that is being passed over.
#[derive(Debug)]
enum Passed {
    TooLong {
        /// Its length so far.
        bytes: u64,
    },
    Unwanted {
        head: Vec<u8>,
    },
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
    /// The line that is being passed over.
    passed: Option<Passed>,
    /// Whether the rest of a long line is of no use, by its first [`HEAD`] bytes.
    is_unwanted: fn(&[u8]) -> bool,
    ended: bool,
}

impl<R: AsyncRead + Unpin> NdjsonReader<R> {
    /// Reads from `source`, keeping lines of at most `cap` bytes.
    pub fn new(source: R, cap: usize) -> Self {
        let is_unwanted = |_: &[u8]| false;
        Self { source, cap, buffer: Vec::new(), start: 0, scanned: 0, passed: None, is_unwanted, ended: false }
    }

    /// Keeps only the beginning of a line that is longer than 256 KiB when `is_unwanted` says so of its first 256 bytes.
    /// A line that was there in one piece may still come whole.
    #[must_use]
    pub fn passing_over(mut self, is_unwanted: fn(&[u8]) -> bool) -> Self {
        self.is_unwanted = is_unwanted;
        self
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
            match self.passed.take() {
                Some(Passed::TooLong { bytes }) => {
                    batch.push_passed(Passed::TooLong { bytes: bytes + length as u64 });
                }
                Some(unwanted) => batch.push_passed(unwanted),
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

    /// Moves the beginning of the unfinished line to the front, or passes it over.
    fn make_room(&mut self) {
        let rest = &self.buffer[self.start..];
        let length = rest.len();
        match &mut self.passed {
            Some(Passed::TooLong { bytes }) => *bytes += length as u64,
            Some(Passed::Unwanted { .. }) => {}
            None if length > self.cap => self.passed = Some(Passed::TooLong { bytes: length as u64 }),
            None if length > LONG && (self.is_unwanted)(&rest[..HEAD]) => {
                self.passed = Some(Passed::Unwanted { head: rest[..HEAD].to_vec() });
            }
            None => {}
        }
        if self.passed.is_some() {
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
        if !self.buffer.is_empty() || self.passed.is_some() {
            self.buffer.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests;
