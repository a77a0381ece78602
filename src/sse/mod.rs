//! Server-sent events, both ways: frames written, and bytes read, at any split, into records.
//! Pure: it never waits and knows nothing of what the records mean.

use std::borrow::Cow;

use bytes::Bytes;
use memchr::{memchr, memchr2};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What keeps a silent stream alive: readers skip it.
pub const PING: &[u8] = b": ping\n\n";

/// Writes one record. `data` is one line; `id` is for those who come back.
pub fn frame(id: Option<u64>, event: &str, data: &str) -> Bytes {
    let mut text = match id {
        Some(id) => format!("id: {id}\n"),
        None => String::new(),
    };
    let parts = ["event: ", event, "\ndata: ", data, "\n\n"];
    text.reserve_exact(parts.iter().map(|part| part.len()).sum());
    text.extend(parts);
    Bytes::from(text)
}

/// One event: its `data` lines joined with line feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub event: Option<String>,
    pub data: String,
}

/// A line, or the data of one record, is longer than the limit. The parser is of no use afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of the stream is longer than {bytes_max} bytes")]
pub struct TooLong {
    pub bytes_max: usize,
}

#[derive(Debug)]
pub struct SseParser {
    bytes_max: usize,
    /// The line so far, as bytes: a split may fall inside a character.
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed right after it ends no second line.
    after_carriage_return: bool,
    /// No line has ended yet, so that a byte order mark may still precede it.
    first_line: bool,
    event: Option<String>,
    /// `None` until the record has a `data` line, which may be empty.
    data: Option<String>,
}

impl SseParser {
    /// A parser of records with at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            after_carriage_return: false,
            first_line: true,
            event: None,
            data: None,
        }
    }

    /// Takes the next bytes and appends the records that end within them to `records`, also those
    /// before an error. A record without its blank line at the end of the stream never ends: the
    /// format says to drop it, since it may be cut off.
    pub fn push(&mut self, mut bytes: &[u8], records: &mut Vec<Record>) -> Result<(), TooLong> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_carriage_return) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + piece.len() > self.bytes_max {
                return Err(self.too_long());
            }
            let Some(end) = end else {
                self.line.extend_from_slice(piece);
                return Ok(());
            };
            self.after_carriage_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let begun = std::mem::take(&mut self.line);
            // Most lines come in one piece, and need no copy.
            let line = if begun.is_empty() { piece } else { &[&begun, piece].concat() };
            if let Some(record) = self.end_line(line)? {
                records.push(record);
            }
        }
        Ok(())
    }

    /// Takes a finished line; a blank one ends a record.
    fn end_line(&mut self, line: &[u8]) -> Result<Option<Record>, TooLong> {
        let line = match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if self.first_line => rest,
            Some(_) | None => line,
        };
        self.first_line = false;
        if line.is_empty() {
            // The name belongs to this record even where it has no data and is dropped.
            let event = self.event.take();
            return Ok(self.data.take().map(|data| Record { event, data }));
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        // Broken characters are replaced, as the format says.
        let text =
            || str::from_utf8(value).map_or_else(|_| String::from_utf8_lossy(value), Cow::Borrowed);
        match field {
            b"data" => self.add_data(&text())?,
            b"event" => self.event = (!value.is_empty()).then(|| text().into_owned()),
            // Comments have an empty name. `id` and `retry` are for reconnecting: no model offers it,
            // and our own events carry their place in their data.
            _ => {}
        }
        Ok(None)
    }

    fn add_data(&mut self, value: &str) -> Result<(), TooLong> {
        match &mut self.data {
            Some(data) if data.len() + 1 + value.len() > self.bytes_max => {
                return Err(self.too_long());
            }
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
        Ok(())
    }

    fn too_long(&self) -> TooLong {
        TooLong { bytes_max: self.bytes_max }
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
