//! Server-sent events: how one is written, and how a stream of them is read, within limits.
//!
//! Source: WHATWG HTML, "Server-sent events"; MCP rules HL-06, HL-11, HM-10. What the data means is not looked at.

use bytes::{Buf as _, Bytes, BytesMut};

/// One event as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Its `event` field; empty for `message`, whether that was written or not.
    pub name: String,
    /// Its data, UTF-8; several `data` lines are joined by line feeds. One line that came in one chunk is a part of that
    /// chunk, which it keeps in memory.
    pub data: Bytes,
    /// Its `id`, if this event sets one; an empty one takes back what was set before.
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
///
/// What an event holds so far and the line that is being read are together at most as long as one event may be. Comments
/// and unknown fields are forgotten line by line.
///
/// ```
/// use wire::sse::Reader;
/// let mut reader = Reader::new(1_000);
/// reader.feed("id: 7\ndata: {}\n\nda".into());
/// let event = reader.read().unwrap().expect("a whole event");
/// assert_eq!((event.id.as_deref(), &*event.data), (Some("7"), &b"{}"[..]));
/// assert!(reader.read().unwrap().is_none(), "the next one is not whole");
/// ```
#[derive(Debug)]
pub struct Reader {
    event_bytes_max: usize,
    /// What was not looked at yet.
    chunk: Bytes,
    /// The beginning of a line whose end did not come yet.
    line: BytesMut,
    /// Whether the last byte was a carriage return, so that a line feed now belongs to it.
    after_return: bool,
    /// Whether no line was read yet: a byte order mark here is not text.
    at_start: bool,
    event: Event,
    data: Data,
}

/// The data of an event that is not whole yet.
#[derive(Debug)]
enum Data {
    None,
    /// One line, as it came.
    Line(Bytes),
    /// Several lines.
    Lines(BytesMut),
}

impl Reader {
    /// A reader that takes events of at most `event_bytes_max` bytes.
    #[must_use]
    pub fn new(event_bytes_max: usize) -> Self {
        Self {
            event_bytes_max,
            chunk: Bytes::new(),
            line: BytesMut::new(),
            after_return: false,
            at_start: true,
            event: Event::default(),
            data: Data::None,
        }
    }

    /// Takes the next chunk. Nothing is copied where the one before was read to its end.
    pub fn feed(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else {
            self.chunk = Bytes::from([&*self.chunk, &*chunk].concat());
        }
    }

    /// The next event; `None` where another chunk is needed. An event that the stream's end cuts off never comes.
    ///
    /// # Errors
    /// [`SseFault`]; the reader is of no use afterwards.
    pub fn read(&mut self) -> Result<Option<Event>, SseFault> {
        while let Some(line) = self.next_line()? {
            let mut text = std::str::from_utf8(&line).map_err(|_| SseFault::Encoding)?;
            if std::mem::take(&mut self.at_start) {
                text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
            }
            if !text.is_empty() {
                let (field, value) = text.split_once(':').unwrap_or((text, ""));
                let value = value.strip_prefix(' ').unwrap_or(value);
                self.field(field, value, &line);
                continue;
            }
            if let Some(event) = self.end_event() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The next line without its end.
    fn next_line(&mut self) -> Result<Option<Bytes>, SseFault> {
        if self.after_return && !self.chunk.is_empty() {
            self.after_return = false;
            if self.chunk.first() == Some(&b'\n') {
                self.chunk.advance(1);
            }
        }
        let end = memchr::memchr2(b'\n', b'\r', &self.chunk);
        let held = self.held() + self.line.len() + end.unwrap_or(self.chunk.len());
        if held > self.event_bytes_max {
            return Err(SseFault::Long {
                max: self.event_bytes_max,
            });
        }
        let Some(end) = end else {
            self.line.extend_from_slice(&self.chunk);
            self.chunk.clear();
            return Ok(None);
        };
        let rest = self.chunk.split_to(end);
        self.after_return = self.chunk.first() == Some(&b'\r');
        self.chunk.advance(1);
        if self.line.is_empty() {
            return Ok(Some(rest));
        }
        self.line.extend_from_slice(&rest);
        Ok(Some(self.line.split().freeze()))
    }

    /// How many bytes the event has so far.
    fn held(&self) -> usize {
        let data = match &self.data {
            Data::None => 0,
            Data::Line(line) => line.len(),
            Data::Lines(lines) => lines.len(),
        };
        data + self.event.name.len() + self.event.id.as_ref().map_or(0, String::len)
    }

    /// Takes one field; `value` is a part of `line`.
    fn field(&mut self, field: &str, value: &str, line: &Bytes) {
        match field {
            "data" => {
                self.data = match std::mem::replace(&mut self.data, Data::None) {
                    Data::None => Data::Line(line.slice_ref(value.as_bytes())),
                    Data::Line(first) => {
                        let mut lines = BytesMut::with_capacity(first.len() + value.len() + 1);
                        lines.extend_from_slice(&first);
                        Data::Lines(joined(lines, value))
                    }
                    Data::Lines(lines) => Data::Lines(joined(lines, value)),
                };
            }
            // Nothing has to be kept of the common name.
            "event" if value == "message" => self.event.name.clear(),
            "event" => value.clone_into(&mut self.event.name),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.event.retry_ms = value.parse().ok();
            }
            // Comments and unknown fields.
            _ => {}
        }
    }

    /// What an empty line ends, if there is anything.
    fn end_event(&mut self) -> Option<Event> {
        let mut event = std::mem::take(&mut self.event);
        let has_data = match std::mem::replace(&mut self.data, Data::None) {
            Data::None => false,
            Data::Line(line) => {
                event.data = line;
                true
            }
            Data::Lines(lines) => {
                event.data = lines.freeze();
                true
            }
        };
        // An event without data is not dispatched by a browser; ours carries its id, which matters (HL-06).
        (has_data || event.id.is_some() || event.retry_ms.is_some()).then_some(event)
    }
}

fn joined(mut lines: BytesMut, line: &str) -> BytesMut {
    lines.extend_from_slice(b"\n");
    lines.extend_from_slice(line.as_bytes());
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<Event> {
        all(&mut Reader::new(1_000), chunks).unwrap()
    }

    fn all(reader: &mut Reader, chunks: &[&[u8]]) -> Result<Vec<Event>, SseFault> {
        let mut events = Vec::new();
        for chunk in chunks {
            reader.feed(Bytes::copy_from_slice(chunk));
            while let Some(event) = reader.read()? {
                events.push(event);
            }
        }
        Ok(events)
    }

    fn text(event: &Event) -> &str {
        std::str::from_utf8(&event.data).unwrap()
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
            (events[0].id.as_deref(), text(&events[0])),
            (Some("s1-0"), "{\"a\":1}")
        );
        assert_eq!((events[1].id.as_deref(), text(&events[1])), (None, "x"));
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
            (text(&events[0]), events[0].id.as_deref()),
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
        let long = Err(SseFault::Long { max: 10 });
        for (stream, expected) in [
            (&b"data: 1234\n\ndata: 1234\n\n"[..], Ok(2)),
            (b"data: 12345\n\n", long.clone()),
            (b"data: 12345", long.clone()),
            // Four bytes, a line feed between, and a line that still fits beside what is held.
            (b"data:1234\ndata:\n\n", Ok(1)),
            (b"data:1234\ndata:12\n\n", long.clone()),
            (b"event:1234\ndata:12\n\n", long.clone()),
            (b"id:1234567\ndata\n\n", long.clone()),
            // Comments are not held, and are no longer than an event.
            (b":345678901\n:345678901\n:345678901\ndata\n\n", Ok(1)),
            (b":3456789012", long.clone()),
            (b"data: \xff\n", Err(SseFault::Encoding)),
        ] {
            let read = all(&mut Reader::new(10), &[stream]).map(|events| events.len());
            assert_eq!(read, expected, "{:?}", String::from_utf8_lossy(stream));
        }
    }

    #[test]
    fn data_that_comes_in_one_chunk_is_not_copied() {
        let chunk = Bytes::from_static(b"data: {\"a\":1}\n\n");
        let mut reader = Reader::new(1_000);
        reader.feed(chunk.clone());
        let event = reader.read().unwrap().unwrap();
        assert_eq!(event.data.as_ptr(), chunk[6..].as_ptr());
    }

    #[test]
    fn a_chunk_may_be_fed_before_the_last_one_is_read() {
        let mut reader = Reader::new(1_000);
        reader.feed(Bytes::from_static(b"data: a\n\nda"));
        reader.feed(Bytes::from_static(b"ta: b\n\n"));
        assert_eq!(text(&reader.read().unwrap().unwrap()), "a");
        assert_eq!(text(&reader.read().unwrap().unwrap()), "b");
        assert_eq!(reader.read(), Ok(None));
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
            let _ = all(&mut Reader::new(100), &[&bytes]);
        }

        #[test]
        fn any_data_survives(data in "[^\r]{0,80}") {
            let events = read(&[&event(Some("1"), data.as_bytes())]);
            prop_assert_eq!(events.len(), 1);
            prop_assert_eq!(&events[0].data, data.as_bytes());
        }
    }
}
