//! The event streams of a session: what was said on each, kept for a while, so that a client may resume one.
//!
//! Bytes in order, with ids; no sockets. Events of all streams of a session share one budget, and the oldest go first.
//! A stream is read by one reader at a time: a new one takes over, so that no message travels twice (HL-10). The stream of
//! an answer ends with the answer; a listening stream rests when nobody reads it, and goes on when somebody resumes it.
//! Sources: MCP rules HL-06, HL-09 to HL-11.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use model::Limits;
use tokio::sync::Notify;
use wire::sse;

/// The number of a stream in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

/// A place in a stream: behind this event. Its text is the event's id, as `2-7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    stream: StreamId,
    event: u64,
}

impl Cursor {
    /// Reads what a client sends as `Last-Event-ID`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (stream, event) = text.trim().split_once('-')?;
        let number = |part: &str| {
            (!part.is_empty() && part.len() <= 19 && part.bytes().all(|b| b.is_ascii_digit()))
                .then(|| part.parse().ok())
                .flatten()
        };
        Some(Self {
            stream: StreamId(number(stream)?),
            event: number(event)?,
        })
    }

    /// The stream.
    #[must_use]
    pub const fn stream(self) -> StreamId {
        self.stream
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream.0, self.event)
    }
}

/// All streams of one session.
#[derive(Debug)]
pub(crate) struct Streams {
    inner: Mutex<Inner>,
    events_max: usize,
    bytes_max: usize,
    listening_max: usize,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    logs: BTreeMap<StreamId, Log>,
    /// Every kept event, oldest first.
    kept: VecDeque<(StreamId, u64)>,
    bytes: usize,
    /// Listening streams that somebody reads.
    listening: usize,
}

#[derive(Debug, Default)]
struct Log {
    events: VecDeque<(u64, Bytes)>,
    next: u64,
    /// Whether it answers no request, and rests instead of ending.
    listens: bool,
    /// Nothing more comes; of a listening stream: nobody reads it.
    is_ended: bool,
    /// Counts readers; only the newest one gets events.
    readers: u64,
    waiting: Arc<Notify>,
}

/// One reading of a stream. Dropping it lets a listening stream rest, and changes nothing about any other (HL-07).
#[derive(Debug)]
pub struct Stream {
    streams: Arc<Streams>,
    id: StreamId,
    /// The next event to give.
    next: u64,
    reader: u64,
    waiting: Arc<Notify>,
}

/// Why a stream cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotResumed {
    /// There is no such stream, or events behind the cursor are gone.
    #[error("the stream cannot be resumed from this event; its events are gone")]
    Gone,
    /// Too many listening streams are open.
    #[error("this session has too many streams open")]
    Full,
}

/// What a reader gets next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// An event, framed.
    Event(Bytes),
    /// The stream is at its end, was taken over, or lost events that were asked for.
    End,
}

impl Streams {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            inner: Mutex::default(),
            events_max: limits.replay_events_max,
            bytes_max: limits.replay_bytes_max,
            listening_max: limits.streams_per_session_max,
        }
    }

    /// A new stream for an answer.
    pub(crate) fn open(&self) -> StreamId {
        self.lock().open(Log::default())
    }

    /// A new listening stream, and its reader. `None`: `streams_per_session_max` are open.
    pub(crate) fn listen(self: &Arc<Self>) -> Option<Stream> {
        let mut inner = self.lock();
        if inner.listening >= self.listening_max {
            return None;
        }
        inner.listening += 1;
        let id = inner.open(Log {
            listens: true,
            ..Log::default()
        });
        drop(inner);
        self.read(id)
    }

    /// Puts a message on a stream. One that is gone takes nothing.
    pub(crate) fn push(&self, id: StreamId, data: &[u8]) {
        self.put(id, |cursor| sse::event(Some(&cursor.to_string()), data));
    }

    /// Puts a message on the first listening stream that is read; without one, on none.
    pub(crate) fn tell(&self, data: &[u8]) {
        let read = |(id, log): (&StreamId, &Log)| (log.listens && !log.is_ended).then_some(*id);
        let first = self.lock().logs.iter().find_map(read);
        if let Some(id) = first {
            self.push(id, data);
        }
    }

    /// Puts the empty first event on a stream, from which a client can resume before anything was said (HL-06).
    pub(crate) fn prime(&self, id: StreamId, retry_ms: u64) {
        self.put(id, |cursor| sse::priming(&cursor.to_string(), retry_ms));
    }

    fn put(&self, id: StreamId, frame: impl FnOnce(Cursor) -> Bytes) {
        let mut inner = self.lock();
        let Some(log) = inner.logs.get_mut(&id) else {
            return;
        };
        let event = log.next;
        log.next += 1;
        let bytes = frame(Cursor { stream: id, event });
        let length = bytes.len();
        log.events.push_back((event, bytes));
        log.waiting.notify_waiters();
        inner.kept.push_back((id, event));
        inner.bytes += length;
        inner.trim(self.events_max, self.bytes_max);
    }

    /// Nothing more comes on a stream. What it said is kept.
    pub(crate) fn end(&self, id: StreamId) {
        let mut inner = self.lock();
        if let Some(log) = inner.logs.get_mut(&id) {
            log.is_ended = true;
            log.waiting.notify_waiters();
            if log.events.is_empty() {
                inner.logs.remove(&id);
            }
        }
    }

    /// Reads a stream from its start.
    pub(crate) fn read(self: &Arc<Self>, id: StreamId) -> Option<Stream> {
        self.reader(id, 0).ok()
    }

    /// Reads a stream on behind an event.
    pub(crate) fn resume(self: &Arc<Self>, cursor: Cursor) -> Result<Stream, NotResumed> {
        let next = cursor.event.checked_add(1).ok_or(NotResumed::Gone)?;
        self.reader(cursor.stream, next)
    }

    fn reader(self: &Arc<Self>, id: StreamId, next: u64) -> Result<Stream, NotResumed> {
        let mut inner = self.lock();
        let has_place = inner.listening < self.listening_max;
        let log = inner.logs.get_mut(&id).ok_or(NotResumed::Gone)?;
        let oldest = log.events.front().map_or(log.next, |(event, _)| *event);
        if next > log.next || next < oldest {
            return Err(NotResumed::Gone);
        }
        let wakes = log.listens && log.is_ended;
        if wakes && !has_place {
            return Err(NotResumed::Full);
        }
        log.is_ended &= !wakes;
        log.readers += 1;
        // Whoever read before wakes up and finds that it was taken over.
        log.waiting.notify_waiters();
        let (reader, waiting) = (log.readers, Arc::clone(&log.waiting));
        inner.listening += usize::from(wakes);
        drop(inner);
        Ok(Stream {
            streams: Arc::clone(self),
            id,
            next,
            reader,
            waiting,
        })
    }

    /// A reader goes. A listening stream rests then, unless another reader has taken it over.
    fn leave(&self, id: StreamId, reader: u64) {
        let mut inner = self.lock();
        let Some(log) = inner.logs.get_mut(&id) else {
            return;
        };
        if !log.listens || log.is_ended || log.readers != reader {
            return;
        }
        log.is_ended = true;
        if log.events.is_empty() {
            inner.logs.remove(&id);
        }
        inner.listening = inner.listening.saturating_sub(1);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn open(&mut self, log: Log) -> StreamId {
        let id = StreamId(self.next);
        self.next += 1;
        self.logs.insert(id, log);
        id
    }

    /// Forgets the oldest events until the budget holds. The newest event stays whatever its size: it is on its way.
    fn trim(&mut self, events_max: usize, bytes_max: usize) {
        while self.kept.len() > 1 && (self.kept.len() > events_max || self.bytes > bytes_max) {
            let Some((id, event)) = self.kept.pop_front() else {
                return;
            };
            let Some(log) = self.logs.get_mut(&id) else {
                continue;
            };
            if log.events.front().is_some_and(|(oldest, _)| *oldest == event)
                && let Some((_, bytes)) = log.events.pop_front()
            {
                self.bytes = self.bytes.saturating_sub(bytes.len());
            }
            if log.events.is_empty() && log.is_ended {
                self.logs.remove(&id);
            }
        }
    }
}

impl Stream {
    /// Which stream it reads.
    #[must_use]
    pub const fn id(&self) -> StreamId {
        self.id
    }

    /// The next event, or the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Next {
        let waiting = Arc::clone(&self.waiting);
        loop {
            let notified = waiting.notified();
            tokio::pin!(notified);
            // Registered before the look, so that what comes in between is not missed.
            notified.as_mut().enable();
            if let Some(next) = self.look() {
                return next;
            }
            notified.await;
        }
    }

    fn look(&mut self) -> Option<Next> {
        let inner = self.streams.lock();
        let Some(log) = inner.logs.get(&self.id) else {
            return Some(Next::End);
        };
        if log.readers != self.reader {
            return Some(Next::End);
        }
        let oldest = log.events.front().map_or(log.next, |(event, _)| *event);
        if self.next < oldest {
            // Events were forgotten before they were read; going on would leave a hole.
            return Some(Next::End);
        }
        if self.next == log.next {
            return log.is_ended.then_some(Next::End);
        }
        let at = usize::try_from(self.next - oldest).ok()?;
        let bytes = log.events.get(at).map(|(_, bytes)| bytes.clone());
        drop(inner);
        self.next += 1;
        bytes.map(Next::Event)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.streams.leave(self.id, self.reader);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(events: usize, bytes: usize) -> Arc<Streams> {
        Arc::new(Streams::new(&Limits {
            replay_events_max: events,
            replay_bytes_max: bytes,
            ..Limits::default()
        }))
    }

    async fn rest(mut stream: Stream) -> Vec<String> {
        let mut data = Vec::new();
        while let Next::Event(bytes) = stream.next().await {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            data.push(
                text.lines()
                    .find_map(|line| line.strip_prefix("data: "))
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
        data
    }

    fn cursor(stream: StreamId, event: u64) -> Cursor {
        Cursor { stream, event }
    }

    #[tokio::test]
    async fn hl_11_a_stream_is_resumed_behind_the_last_event_and_only_that_stream() {
        let streams = streams(10, 10_000);
        let (one, two) = (streams.open(), streams.open());
        for text in ["a", "b", "c"] {
            streams.push(one, text.as_bytes());
            streams.push(two, b"other");
        }
        streams.end(one);
        assert_eq!(rest(streams.resume(cursor(one, 0)).unwrap()).await, ["b", "c"]);
        assert_eq!(rest(streams.resume(cursor(one, 2)).unwrap()).await, [""; 0]);
        assert_eq!(rest(streams.read(one).unwrap()).await, ["a", "b", "c"]);
        assert_eq!(streams.resume(cursor(one, 3)).unwrap_err(), NotResumed::Gone);
        assert_eq!(
            streams.resume(cursor(StreamId(9), 0)).unwrap_err(),
            NotResumed::Gone
        );
    }

    #[tokio::test]
    async fn hl_10_a_new_reader_takes_over_and_the_old_one_ends() {
        let streams = streams(10, 10_000);
        let id = streams.open();
        let mut old = streams.read(id).unwrap();
        streams.push(id, b"a");
        assert!(matches!(old.next().await, Next::Event(_)));
        let waiting = tokio::spawn(async move { old.next().await });
        tokio::task::yield_now().await;
        let new = streams.resume(cursor(id, 0)).unwrap();
        assert_eq!(waiting.await.unwrap(), Next::End);
        streams.push(id, b"b");
        streams.end(id);
        assert_eq!(rest(new).await, ["b"]);
    }

    #[tokio::test]
    async fn the_oldest_events_go_at_the_limit_and_a_hole_is_never_read_over() {
        let streams = streams(3, 10_000);
        let id = streams.open();
        let mut slow = streams.read(id).unwrap();
        for text in ["a", "b", "c"] {
            streams.push(id, text.as_bytes());
        }
        assert!(
            streams.resume(cursor(id, 0)).is_ok(),
            "at the limit everything is there"
        );
        let mut slow_again = streams.read(id).unwrap();
        assert!(matches!(slow.next().await, Next::End), "taken over");
        streams.push(id, b"d");
        assert_eq!(slow_again.next().await, Next::End, "its next event is gone");
        assert!(streams.read(id).is_none());
        streams.end(id);
        assert_eq!(
            rest(streams.resume(cursor(id, 0)).unwrap()).await,
            ["b", "c", "d"]
        );
    }

    #[tokio::test]
    async fn bytes_are_bounded_too_and_a_finished_stream_is_forgotten_whole() {
        let streams = streams(100, 120);
        let old = streams.open();
        streams.push(old, &[b'x'; 60]);
        streams.end(old);
        let new = streams.open();
        streams.push(new, &[b'y'; 60]);
        assert!(streams.read(old).is_none());
        let inner = streams.lock();
        assert!(inner.bytes <= 120 && inner.logs.len() == 1, "{inner:?}");
    }

    #[tokio::test]
    async fn an_event_larger_than_the_budget_still_reaches_its_reader() {
        let streams = streams(2, 10);
        let id = streams.open();
        let stream = streams.read(id).unwrap();
        streams.push(id, &[b'x'; 60]);
        streams.end(id);
        assert_eq!(rest(stream).await, ["x".repeat(60)]);
    }

    fn listening(max: usize) -> Arc<Streams> {
        Arc::new(Streams::new(&Limits {
            streams_per_session_max: max,
            ..Limits::default()
        }))
    }

    #[tokio::test]
    async fn listening_streams_open_up_to_the_limit_and_not_one_past_it() {
        let streams = listening(2);
        let one = streams.listen().unwrap();
        let two = streams.listen().unwrap();
        assert!(streams.listen().is_none());
        // The stream of an answer has nothing to do with it.
        drop(streams.read(streams.open()));
        assert!(streams.listen().is_none());
        drop(one);
        let three = streams.listen().unwrap();
        assert!(streams.listen().is_none());
        drop((two, three));
        assert!(
            streams.lock().logs.len() == 1,
            "a rest without events is forgotten"
        );
    }

    #[tokio::test]
    async fn hl_11_a_listening_stream_that_broke_off_goes_on_where_it_was() {
        let streams = listening(1);
        let stream = streams.listen().unwrap();
        let id = stream.id();
        streams.prime(id, 1);
        drop(stream);
        let mut resumed = streams.resume(cursor(id, 0)).unwrap();
        assert!(streams.listen().is_none(), "it has its place again");
        let waiting = tokio::spawn(async move { (resumed.next().await, resumed) });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "it waits instead of ending");
        streams.push(id, b"a");
        let (next, resumed) = waiting.await.unwrap();
        assert!(matches!(next, Next::Event(_)));
        drop(resumed);
        let other = streams.listen().unwrap();
        assert_eq!(streams.resume(cursor(id, 0)).unwrap_err(), NotResumed::Full);
        drop(other);
        assert!(streams.resume(cursor(id, 0)).is_ok());
    }

    #[tokio::test]
    async fn hl_10_a_listening_stream_that_is_taken_over_keeps_its_one_place() {
        let streams = listening(1);
        let mut old = streams.listen().unwrap();
        let id = old.id();
        streams.prime(id, 1);
        assert!(matches!(old.next().await, Next::Event(_)));
        let mut new = streams.resume(cursor(id, 0)).unwrap();
        assert_eq!(old.next().await, Next::End);
        drop(old);
        streams.push(id, b"a");
        assert!(
            matches!(new.next().await, Next::Event(_)),
            "the old reader's end is not the stream's"
        );
        assert!(streams.listen().is_none());
        drop(new);
        assert!(streams.listen().is_some());
    }

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is_one() {
        let found = cursor(StreamId(2), 7);
        assert_eq!(Cursor::parse(&found.to_string()), Some(found));
        for text in [
            "",
            "2",
            "-",
            "2-",
            "-7",
            "a-7",
            "2-7-1",
            "+2-7",
            "2-99999999999999999999",
        ] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }
}
