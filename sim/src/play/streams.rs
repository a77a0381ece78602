//! The event streams of a client: each is opened with the real client library, read at its pace and
//! written down event by event. None comes back by itself when it breaks; a later step does that.

use std::sync::Arc;

use nexus3::client::{ClientError, EventStream, NexusClient};
use nexus3::event::{Event, Seq};
use nexus3::id::AgentId;
use nexus3::world::Net;
use tokio::time::sleep;

use super::client::{Desk, Done, Elapsed, Job};
use super::observed::{Observation, Observed, Opened, StreamEnd, StreamId};
use super::story::Happening;
use super::transcript::Transcript;
use super::{client, event_line};
use crate::scenario::{Pace, Watch};

/// Plays the streams of one client.
pub struct Streamer {
    pub name: String,
    pub net: Arc<dyn Net>,
    pub now: Elapsed,
    pub transcript: Transcript,
    pub observed: Observed,
    pub desk: Arc<Desk>,
}

impl Streamer {
    /// Opens a stream, which ends the job, and reads it to its end.
    pub async fn watch(self, job: &Job, watch: &Watch) {
        let opened = self.open(job, watch).await;
        let done = match &opened {
            Ok(_) => Done::Streaming,
            Err(done) => done.clone(),
        };
        self.tell(job, &client::told(&done), || client::answered(job, &done));
        let Ok((stream, after)) = opened else {
            self.desk.finish(job.id, done);
            return;
        };
        let open = Open::new(&self, job, watch, after);
        self.desk.finish(job.id, done);
        let end = self.read(job, stream, watch.pace, &open.stream).await;
        let told = match end {
            StreamEnd::ByServer => "⇠ the end",
            StreamEnd::Silent => "✗ the stream is silent for too long",
            StreamEnd::Broken => "✗ the stream breaks",
            StreamEnd::Closed => unreachable!("only who closes a stream ends its reading so"),
        };
        let plain = told.trim_start_matches(['⇠', '✗', ' ']);
        self.tell(job, told, || Happening::Noted(format!("stream: {plain}")));
        open.ended(end);
    }

    fn note(&self, job: &Job, what: &str) {
        self.tell(job, what, || Happening::Noted(what.to_owned()));
    }

    fn tell(&self, job: &Job, what: &str, happening: impl FnOnce() -> Happening) {
        self.transcript.tell((self.now)(), &self.name, &format!("{}{what}", job.label), happening);
    }

    async fn open(&self, job: &Job, watch: &Watch) -> Result<(EventStream, Option<Seq>), Done> {
        let what = watch.agent.as_deref().unwrap_or("everything");
        let after = watch.after.as_ref().map(|after| format!(" after {after}")).unwrap_or_default();
        let whose = client::acting_as(&watch.headers);
        let token = client::told_token(&watch.token);
        let pace = match watch.pace {
            Pace::AtOnce => String::new(),
            Pace::Each(time) => format!(", an event every {time}"),
            Pace::Never => ", and reads nothing".to_owned(),
        };
        let line = format!("→ watch {what}{after}{whose}{token}{pace}");
        self.tell(job, &line, || Happening::Called {
            job: job.id,
            name: format!("watch{after}{whose}{token}{pace} {}", job.label),
            agent: watch.agent.clone(),
            params: String::new(),
        });
        let unusable = |problem: &str| {
            self.note(job, &format!("✗ {problem}"));
            Done::Unanswered
        };
        let after = watch.after.as_deref().map(str::parse::<Seq>).transpose();
        let after = after.map_err(|_| unusable("the cursor is no number"))?;
        let agent = watch.agent.as_deref().map(AgentId::parse).transpose();
        let agent = agent.map_err(|error| unusable(&error.to_string()))?;
        let mut client = NexusClient::new(Arc::clone(&self.net), job.server, job.token.clone())
            .named(&self.name);
        for (name, value) in &watch.headers {
            client = client.with_header(name, value);
        }
        let stream = client.open_events(agent.as_ref(), after).await.map_err(client::failed)?;
        Ok((stream, after))
    }

    async fn read(
        &self,
        job: &Job,
        mut stream: EventStream,
        pace: Pace,
        id: &StreamId,
    ) -> StreamEnd {
        loop {
            match pace {
                Pace::AtOnce => {}
                Pace::Each(time) => sleep(time.0).await,
                Pace::Never => std::future::pending().await,
            }
            let event = match stream.next().await {
                Some(Ok(event)) => event,
                Some(Err(ClientError::Timeout { .. })) => return StreamEnd::Silent,
                Some(Err(_)) => return StreamEnd::Broken,
                None => return StreamEnd::ByServer,
            };
            self.take(job, id, event);
        }
    }

    fn take(&self, job: &Job, id: &StreamId, event: Event) {
        self.tell(job, &event_line::told(&event), || Happening::Heard(Box::new(event.clone())));
        if let Some(seq) = event.seq {
            self.desk.saw(seq);
        }
        let (stream, event) = (id.clone(), Box::new(event));
        self.observed.add(Observation::Event { stream, event });
    }
}

/// A stream that counts as open as long as this is held.
struct Open {
    stream: StreamId,
    pace: Pace,
    observed: Observed,
    desk: Arc<Desk>,
    end: StreamEnd,
}

impl Open {
    fn new(streamer: &Streamer, job: &Job, watch: &Watch, after: Option<Seq>) -> Self {
        let stream = StreamId { who: streamer.name.clone(), number: job.id };
        streamer.observed.add(Observation::StreamOpened(Opened {
            stream: stream.clone(),
            server_start: job.server_start,
            agent: watch.agent.clone(),
            after,
            pace: watch.pace,
        }));
        let (observed, desk) = (streamer.observed.clone(), Arc::clone(&streamer.desk));
        desk.stream_opened(watch.pace);
        Self { stream, pace: watch.pace, observed, desk, end: StreamEnd::Closed }
    }

    fn ended(mut self, end: StreamEnd) {
        self.end = end;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.desk.stream_ended(self.pace);
        let (stream, end) = (self.stream.clone(), self.end);
        self.observed.add(Observation::StreamEnded { stream, end });
    }
}
