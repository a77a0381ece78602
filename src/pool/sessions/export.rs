//! Session files that follow their agents: written off the path of turns, each at most once in a while,
//! and at a clean stop. A disk that fails costs a file its newest turns, which the database has.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::SessionsError;
use crate::agent::{AgentHandle, ExportJob};
use crate::causes::told;
use crate::limits::{EXPORT_AGAIN, EXPORT_CLOSE_MAX, EXPORT_EVERY};
use crate::pool::Pool;
use crate::session::{Overwrite, Session, SessionFile, SessionName};
use crate::store::{AgentNumber, Exported};

/// Where an agent's session is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets {
    pub own: Exported,
    /// Whether it is what is called the last session.
    pub is_last: bool,
}

/// Which agents have something new to save, and when each may.
#[derive(Default)]
struct Due {
    at: BTreeMap<AgentNumber, Instant>,
    written: BTreeMap<AgentNumber, Instant>,
}

impl Due {
    fn add(&mut self, agent: AgentNumber) {
        let now = Instant::now();
        self.written.retain(|_, written| *written + EXPORT_EVERY > now);
        let free = self.written.get(&agent).map_or(now, |written| *written + EXPORT_EVERY);
        let at = self.at.entry(agent).or_insert(free);
        *at = free.min(*at);
    }

    /// What could not be written is tried again, after the next turn at the latest.
    fn add_failed(&mut self, agent: AgentNumber) {
        self.at.entry(agent).or_insert_with(|| Instant::now() + EXPORT_AGAIN);
    }

    fn next(&self) -> Option<Instant> {
        self.at.values().min().copied()
    }

    fn take(&mut self, now: Instant) -> Vec<AgentNumber> {
        let due: Vec<_> = self.at.iter().filter(|(_, at)| **at <= now).map(|(a, _)| *a).collect();
        for agent in &due {
            self.at.remove(agent);
            self.written.insert(*agent, now);
        }
        due
    }

    fn take_all(&mut self) -> Vec<AgentNumber> {
        std::mem::take(&mut self.at).into_keys().collect()
    }
}

/// Writes session files for as long as there is a pool.
pub(in crate::pool) async fn export(pool: Weak<Pool>, mut jobs: mpsc::Receiver<ExportJob>) {
    let mut due = Due::default();
    loop {
        let next = due.next();
        let finished = tokio::select! {
            // What is new comes first: it may be about an agent whose file is written next.
            biased;
            job = jobs.recv() => match job {
                None => return,
                Some(ExportJob::Changed(agent)) => {
                    let Some(pool) = pool.upgrade() else { return };
                    if pool.registry().is_followed(agent) {
                        due.add(agent);
                    }
                    continue;
                }
                Some(ExportJob::Finish(done)) => Some(done),
            },
            () = at(next) => None,
        };
        let Some(pool) = pool.upgrade() else { return };
        if pool.shared.exports.take_missed() {
            pool.registry().followed().into_iter().for_each(|agent| due.add(agent));
        }
        let agents = if finished.is_some() { due.take_all() } else { due.take(Instant::now()) };
        for agent in agents {
            if pool.export_session(agent).await.is_err() {
                due.add_failed(agent);
            }
        }
        if let Some(done) = finished {
            // Whoever waited may have given up.
            let _ = done.send(());
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

impl Pool {
    /// Has every session file be what its agent is. A disk that takes too long is not waited for.
    pub async fn finish_exports(&self) {
        if timeout(EXPORT_CLOSE_MAX, self.shared.exports.finish()).await.is_err() {
            tracing::warn!("some session files are older than their agents");
        }
    }

    async fn export_session(&self, number: AgentNumber) -> Result<(), SessionsError> {
        let found = self.registry().targets(number);
        let Some((agent, _)) = found else { return Ok(()) };
        self.write_targets(&agent).await.inspect_err(|error| {
            let id = agent.id();
            tracing::warn!(agent = %id, error = told(error), "its session file is out of date");
        })
    }

    async fn write_targets(&self, agent: &AgentHandle) -> Result<(), SessionsError> {
        let id = agent.id();
        let _desk = self.desk.at(&id).await;
        if agent.id() != id {
            // It got another one while we waited for the desk.
            self.shared.exports.changed(agent.facts().number);
            return Ok(());
        }
        // It may have been deleted while we waited for the desk.
        let Some((_, targets)) = self.registry().targets(agent.facts().number) else {
            return Ok(());
        };
        let Some(file) = self.session_of(agent).await? else {
            return Ok(());
        };
        let file = Arc::new(file);
        if let (Exported::Yes, Ok(name)) = (targets.own, SessionName::of(&id)) {
            self.put(Session::from(name), Arc::clone(&file)).await?;
        }
        if targets.is_last {
            self.put(Session::Last, file).await?;
            let name = id.to_string();
            self.with_files(move |directory| directory.write_last_name(&name)).await?;
        }
        Ok(())
    }

    async fn put(&self, session: Session, file: Arc<SessionFile>) -> Result<(), SessionsError> {
        let replace = Overwrite::Replace;
        self.with_files(move |directory| directory.write(&session, &file, replace)).await?;
        Ok(())
    }
}
