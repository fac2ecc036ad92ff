//! Server-sent events: how one is written, and how a stream of them is read, within limits.
//!
//! Source: WHATWG HTML, "Server-sent events"; MCP rules HL-06, HL-11, HM-10. What the data means is not looked at.

use bytes::{Bytes, BytesMut};

/// One event as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Its `event` field; empty means `message`.
    pub name: String,
    /// Its data; several `data` lines are joined by line feeds.
    pub data: String,
    /// Its `id`, if this event sets one.
    pub id: Option<String>,
    /// The `retry` time in milliseconds, if this event sets one.
    pub retry_ms: Option<u64>,
}

/// Writes an event whose data is one line, as JSON without line ends always is.
#[must_use]
pub fn event(id: Option<&str>, data: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(data.len() + id.map_or(0, str::len) + 32);
    if let Some(id) = id {
        text.extend_from_slice(b"id: ");
        text.extend_from_slice(id.as_bytes());
        text.push(b'\n');
    }
    text.extend_from_slice(b"event: message\n");
    // A line end inside the data would end the event early; each line gets a field of its own.
    for line in data.split(|byte| *byte == b'\n') {
        text.extend_from_slice(b"data: ");
        text.extend(line.iter().filter(|byte| **byte != b'\r'));
        text.push(b'\n');
    }
    text.push(b'\n');
    Bytes::from(text)
}

/// The first event of a stream that can be resumed: an id, a reconnection time, and no data (HL-06).
#[must_use]
pub fn priming(id: &str, retry_ms: u64) -> Bytes {
    Bytes::from(format!("id: {id}\nretry: {retry_ms}\ndata: \n\n"))
}

/// A comment that keeps proxies from closing an idle stream (HM-10).
#[must_use]
pub const fn keep_alive() -> Bytes {
    Bytes::from_static(b": keep-alive\n\n")
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseFault {
    /// One event is longer than is taken.
    #[error("an event has more than {max} bytes")]
    Long {
        /// The limit, in bytes.
        max: usize,
    },
    /// The stream is not UTF-8.
    #[error("the stream is not UTF-8")]
    Encoding,
}

/// Reads events out of chunks that may end anywhere, also inside a character.
#[derive(Debug)]
pub struct Reader {
    event_bytes_max: usize,
    line: BytesMut,
    /// Whether the last byte was a carriage return, so that a line feed now belongs to it.
    after_return: bool,
    /// Whether nothing came yet: a byte order mark here is not text.
    at_start: bool,
    event: Event,
    has_data: bool,
    bytes: usize,
}

impl Reader {
    /// A reader that takes events of at most `event_bytes_max` bytes.
    #[must_use]
    pub fn new(event_bytes_max: usize) -> Self {
        Self {
            event_bytes_max,
            line: BytesMut::new(),
            after_return: false,
            at_start: true,
            event: Event::default(),
            has_data: false,
            bytes: 0,
        }
    }

    /// Reads the next chunk and gives the events that it completes, in order. An event that the stream's end cuts
    /// off never comes.
    ///
    /// # Errors
    /// [`SseFault`]; the reader is of no use afterwards.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<Event>, SseFault> {
        let mut events = Vec::new();
        for &byte in chunk {
            if std::mem::take(&mut self.after_return) && byte == b'\n' {
                continue;
            }
            if byte == b'\n' || byte == b'\r' {
                self.after_return = byte == b'\r';
                if let Some(event) = self.end_line()? {
                    events.push(event);
                }
                continue;
            }
            self.bytes += 1;
            if self.bytes > self.event_bytes_max {
                return Err(SseFault::Long {
                    max: self.event_bytes_max,
                });
            }
            self.line.extend_from_slice(&[byte]);
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Result<Option<Event>, SseFault> {
        let line = self.line.split();
        let mut text = std::str::from_utf8(&line).map_err(|_| SseFault::Encoding)?;
        if std::mem::take(&mut self.at_start) {
            text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        }
        if text.is_empty() {
            self.bytes = 0;
            let has_data = std::mem::take(&mut self.has_data);
            let event = std::mem::take(&mut self.event);
            // An event without data is not dispatched by a browser; ours carries its id, which matters (HL-06).
            return Ok((has_data || event.id.is_some() || event.retry_ms.is_some()).then_some(event));
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event.name),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.event.retry_ms = value.parse().ok();
            }
            // Comments and unknown fields.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<Event> {
        let mut reader = Reader::new(1_000);
        chunks
            .iter()
            .flat_map(|chunk| reader.push(chunk).unwrap())
            .collect()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let events = read(&[
            &event(Some("s1-0"), b"{\"a\":1}"),
            &keep_alive(),
            &event(None, b"x"),
        ]);
        assert_eq!(events.len(), 2);
        assert_eq!(
            (events[0].id.as_deref(), events[0].data.as_str()),
            (Some("s1-0"), "{\"a\":1}")
        );
        assert_eq!((events[1].id.as_deref(), events[1].data.as_str()), (None, "x"));
    }

    #[test]
    fn hl_06_a_priming_event_has_an_id_a_retry_and_no_data() {
        let events = read(&[&priming("s7-0", 1_500)]);
        assert_eq!(
            events,
            [Event {
                id: Some("s7-0".into()),
                retry_ms: Some(1_500),
                ..Event::default()
            }]
        );
    }

    #[test]
    fn data_with_a_line_end_stays_one_event() {
        let events = read(&[&event(None, b"a\r\nid: evil\n\nb")]);
        assert_eq!(events.len(), 1);
        assert_eq!(
            (events[0].data.as_str(), events[0].id.as_deref()),
            ("a\nid: evil\n\nb", None)
        );
    }

    #[test]
    fn every_line_end_and_every_field_of_the_standard_is_read() {
        let events = read(&[b"\xEF\xBB\xBFdata: a\r\ndata:b\rdata\n\n:comment\n\nevent: x\nid: 1\nretry: 5\nretry: no\nfoo: bar\ndata: c\n\ndata: cut off"]);
        assert_eq!(
            events,
            [
                Event {
                    data: "a\nb\n".into(),
                    ..Event::default()
                },
                Event {
                    name: "x".into(),
                    data: "c".into(),
                    id: Some("1".into()),
                    retry_ms: Some(5)
                },
            ]
        );
    }

    #[test]
    fn an_event_passes_at_the_limit_and_not_one_past_it() {
        let mut reader = Reader::new(10);
        assert_eq!(reader.push(b"data: 1234\n\n").unwrap().len(), 1);
        assert_eq!(reader.push(b"data: 12345\n\n"), Err(SseFault::Long { max: 10 }));
        assert_eq!(Reader::new(10).push(b"data: \xff\n"), Err(SseFault::Encoding));
    }

    proptest! {
        #[test]
        fn where_chunks_end_does_not_matter(text in "(data|id|event|retry|:|x)?(: ?[a-zü0-9]{0,4})?(\r\n|\n|\r|\n\n){0,2}", cuts in prop::collection::vec(0usize..400, 0..8)) {
            let text = text.repeat(4);
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut at = 0;
            for cut in cuts {
                chunks.push(&bytes[at..cut]);
                at = cut;
            }
            chunks.push(&bytes[at..]);
            prop_assert_eq!(read(&chunks), read(&[bytes]));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Reader::new(100).push(&bytes);
        }

        #[test]
        fn any_data_survives(data in "[^\r]{0,80}") {
            let events = read(&[&event(Some("1"), data.as_bytes())]);
            prop_assert_eq!(events.len(), 1);
            prop_assert_eq!(&events[0].data, &data);
        }
    }
}
