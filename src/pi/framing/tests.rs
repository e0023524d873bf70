use std::pin::Pin;
use std::task::{Context, Poll};

use proptest::prelude::*;
use tokio::io::ReadBuf;

use super::*;

/// A stream that gives its chunks one by one.
struct Chunks(Vec<Vec<u8>>);

impl AsyncRead for Chunks {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while !self.0.is_empty() {
            let mut first = self.0.remove(0);
            if first.is_empty() {
                continue;
            }
            let rest = first.split_off(first.len().min(out.remaining()));
            out.put_slice(&first);
            if !rest.is_empty() {
                self.0.insert(0, rest);
            }
            break;
        }
        Poll::Ready(Ok(()))
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Got {
    Line(Vec<u8>),
    Oversize(u64),
}

fn read_all(chunks: Vec<Vec<u8>>, cap: usize, max_lines: usize) -> Vec<Got> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut reader = NdjsonReader::new(Chunks(chunks), cap);
        let mut all = Vec::new();
        while let Some(batch) = reader.read_batch(max_lines).await.unwrap() {
            assert!(!batch.is_empty() && batch.len() <= max_lines.max(1));
            all.extend(batch.iter().map(|frame| match frame {
                Frame::Line(line) => Got::Line(line.to_vec()),
                Frame::Oversize { bytes } => Got::Oversize(bytes),
                Frame::Head(head) => panic!("nothing is unwanted: {head:?}"),
            }));
        }
        assert_eq!(reader.read_batch(1).await.unwrap(), None, "the end is no longer the end");
        all
    })
}

/// What the whole stream means, said without chunks.
fn expected(bytes: &[u8], cap: usize) -> Vec<Got> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    lines.pop_if(|last| last.is_empty());
    let frames = lines.into_iter().map(|line| {
        if line.len() > cap {
            return Got::Oversize(line.len() as u64);
        }
        Got::Line(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
    });
    frames.filter(|frame| !matches!(frame, Got::Line(line) if line.trim_ascii().is_empty())).collect()
}

fn cut(bytes: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
}

proptest! {
    #[test]
    fn any_split_of_a_stream_gives_the_same_lines(
        parts in prop::collection::vec(
            prop::sample::select(vec!["\n", "\r\n", "\r", "\u{2028}", "\u{85}", "{\"a\":1}", "ä", "😀", " ", "0123456789"]),
            0..60,
        ),
        cuts in prop::collection::vec(0usize..1000, 0..40),
        cap in 0usize..30,
        max_lines in 0usize..5,
    ) {
        let bytes = parts.concat().into_bytes();
        prop_assert_eq!(read_all(cut(&bytes, &cuts), cap, max_lines), expected(&bytes, cap));
    }
}

#[test]
fn pi_1910_a_line_separator_inside_a_string_is_no_line_end() {
    let stream = "{\"x\":\"a\u{2028}b\u{2029}c\"}\r\n{\"type\":\"agent_end\"}".as_bytes().to_vec();
    let lines = read_all(vec![stream], DEFAULT_LINE_CAP, 8);
    let line = |text: &str| Got::Line(text.as_bytes().to_vec());
    assert_eq!(lines, [line("{\"x\":\"a\u{2028}b\u{2029}c\"}"), line("{\"type\":\"agent_end\"}")]);
}

#[test]
fn egg_2804_eight_megabytes_are_a_line_and_what_is_above_the_cap_is_passed_over() {
    let (long, after) = (vec![b'x'; 8 << 20], b"after".to_vec());
    let chunks = || [long.clone(), b"\n".to_vec(), after.clone(), b"\n".to_vec()].to_vec();
    assert_eq!(read_all(chunks(), DEFAULT_LINE_CAP, 8), [Got::Line(long.clone()), Got::Line(after.clone())]);
    assert_eq!(read_all(chunks(), (8 << 20) - 1, 8), [Got::Oversize(8 << 20), Got::Line(after.clone())]);
}

#[tokio::test]
async fn a_line_without_end_is_not_kept_in_memory() {
    let mut reader = NdjsonReader::new(tokio::io::repeat(b'x').take(300 << 20), 1 << 20);
    let batch = reader.read_batch(1).await.unwrap().unwrap();
    assert_eq!(batch.iter().next(), Some(Frame::Oversize { bytes: 300 << 20 }));
    assert!(reader.buffer.capacity() < 4 << 20, "{} bytes are kept", reader.buffer.capacity());
}

#[tokio::test]
async fn a_batch_holds_what_is_there_up_to_its_limit() {
    let mut reader = NdjsonReader::new(b"1\n2\n3\n4\n5\n".as_slice(), 10);
    let mut sizes = Vec::new();
    while let Some(batch) = reader.read_batch(2).await.unwrap() {
        sizes.push(batch.len());
    }
    assert_eq!(sizes, [2, 2, 1]);
}

#[tokio::test]
async fn a_long_line_that_is_not_wanted_leaves_its_beginning_and_no_memory() {
    let long = |first: u8| [&[first], vec![b'x'; 8 * LONG].as_slice(), b"\n"].concat();
    let chunks = [long(b'-'), b"short\n".to_vec(), b"-short\n".to_vec(), long(b'+')].concat();
    let chunks = chunks.chunks(50_000).map(<[u8]>::to_vec).collect();
    let mut reader = NdjsonReader::new(Chunks(chunks), DEFAULT_LINE_CAP).passing_over(|head| head[0] == b'-');
    let (mut got, mut most) = (Vec::new(), 0);
    while let Some(batch) = reader.read_batch(64).await.unwrap() {
        if got.is_empty() {
            most = reader.buffer.capacity();
        }
        got.extend(batch.iter().map(|frame| match frame {
            Frame::Line(line) => ("line", line.len()),
            Frame::Head(head) => ("head", head.len()),
            Frame::Oversize { .. } => ("oversize", 0),
        }));
    }
    assert_eq!(got, [("head", HEAD), ("line", 5), ("line", 6), ("line", 8 * LONG + 1)]);
    assert!(most <= 3 * LONG, "{most} bytes were kept for a line that nobody wants");
}
