//! The stream of a legacy session that no message of ours opened: what a server says unasked. It is taken up again where
//! it broke, and ends with the session.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::event_stream::{EventStream, Mark, Toll, message};
use crate::link_fault::LinkFault;
use crate::resume::Pause;
use crate::streamable::Streamable;

/// A stream that lasted this long was no failure, also if nothing came: proxies end silent ones.
const STEADY: Duration = Duration::from_secs(5);

/// An open stream of one session, read by whoever holds it. Dropping it closes the stream, which ends nothing else (HL-07).
#[derive(Debug)]
pub(crate) struct Listening {
    link: Streamable,
    session: Option<String>,
    version: Option<String>,
    /// How long the head of an answer is waited for.
    patience: Duration,
    state: State,
    mark: Mark,
    toll: Toll,
    pause: Pause,
}

#[derive(Debug)]
enum State {
    Open {
        stream: Box<EventStream>,
        since: Instant,
    },
    /// Broken; tried again then.
    Waiting {
        wake: Instant,
    },
    Ended,
}

impl Streamable {
    /// Opens the listening stream of a session (HL-08). `None`: the server has none, and says what it has to say on the
    /// streams of requests.
    ///
    /// `patience` is how long the head of the answer may take, now and whenever the stream is taken up again.
    ///
    /// # Errors
    /// [`LinkFault`]; `SessionLost` where the session is gone.
    pub(crate) async fn listen(
        &self,
        session: Option<&str>,
        version: Option<&str>,
        patience: Duration,
    ) -> Result<Option<Listening>, LinkFault> {
        let deadline = Instant::now() + patience;
        let stream = self.get(session, version, None, None, deadline).await?;
        Ok(stream.map(|stream| Listening {
            link: self.clone(),
            session: session.map(str::to_owned),
            version: version.map(str::to_owned),
            patience,
            state: State::Open {
                stream: Box::new(stream),
                since: Instant::now(),
            },
            mark: Mark::default(),
            toll: Toll::new(self.endpoint().bounds()),
            pause: Pause::new(self.endpoint().bounds()),
        }))
    }
}

impl Listening {
    /// The next message; at most `upstream_body_bytes_max` bytes. How many come is for the caller to bound: nothing is
    /// read ahead, so that a server which sends more than is read has to wait. `upstream_stream_bytes_max` bytes without a
    /// message among them are too many.
    ///
    /// A stream that breaks or ends is opened again behind the last event that had an id, after the pause that the server
    /// asked for, `upstream_resumes_max` times in a row without anything coming. Dropping the future loses no message.
    ///
    /// # Errors
    /// [`LinkFault`]; the stream is over then, and every further call says [`LinkFault::Cut`].
    pub(crate) async fn next(&mut self) -> Result<Bytes, LinkFault> {
        loop {
            match &mut self.state {
                State::Open { stream, since } => {
                    let broken = match stream.next(&mut self.mark, &mut self.toll, None).await {
                        Ok(Some(event)) => {
                            self.pause.heard();
                            match message(event) {
                                Some(message) => {
                                    self.toll.begin();
                                    return Ok(message);
                                }
                                None => continue,
                            }
                        }
                        Ok(None) => LinkFault::Cut {
                            tries: self.pause.tries(),
                        },
                        Err(fault) => fault,
                    };
                    if since.elapsed() >= STEADY {
                        self.pause.heard();
                    }
                    self.wait(broken)?;
                }
                State::Waiting { wake } => {
                    tokio::time::sleep_until(*wake).await;
                    // Whoever drops this future while the request is on its way does not send the next one at once.
                    *wake = Instant::now() + STEADY;
                    self.open().await?;
                }
                State::Ended => return Err(self.cut()),
            }
        }
    }

    async fn open(&mut self) -> Result<(), LinkFault> {
        let deadline = Instant::now() + self.patience;
        let (session, version) = (self.session.as_deref(), self.version.as_deref());
        let last = self.mark.last.as_ref();
        match self.link.get(session, version, last, None, deadline).await {
            Ok(Some(stream)) => {
                let since = Instant::now();
                let stream = Box::new(stream);
                self.state = State::Open { stream, since };
                Ok(())
            }
            Ok(None) => {
                self.state = State::Ended;
                Err(self.cut())
            }
            Err(fault) => self.wait(fault),
        }
    }

    /// Waits for the next try, if that may help.
    fn wait(&mut self, broken: LinkFault) -> Result<(), LinkFault> {
        let wake = if broken.is_break() {
            self.pause.next(self.mark.retry)
        } else {
            None
        };
        let Some(wake) = wake else {
            self.state = State::Ended;
            return Err(broken);
        };
        tracing::debug!(%broken, "a listening stream will be opened again");
        self.state = State::Waiting { wake };
        Ok(())
    }

    const fn cut(&self) -> LinkFault {
        LinkFault::Cut {
            tries: self.pause.tries(),
        }
    }
}
