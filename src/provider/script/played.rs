//! A script in the place of a network: requests in, the answers of its entries out.
//! It knows the wire only through [`Question`] and [`Reply`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::Request;
use tokio::time::sleep;

use super::{Opening, Question, Reply, Script};
use crate::limits::SCRIPT_SILENCE_MAX;
use crate::world::{BoxFuture, Http, HttpError, HttpFault, HttpResponse, HttpTerms};

/// Under this name the log says, at the level `debug`, who asked and which entry answered; nothing of
/// what was said.
pub const LOG_TARGET: &str = "nexus3::provider::script";

#[derive(Debug)]
pub(super) struct Played {
    /// Guards which entries are left, for all agents of one provider. Held while an entry is taken;
    /// nothing is awaited and nothing else is locked under it.
    script: Mutex<Script>,
    /// Model id → the alias that entries name.
    aliases: BTreeMap<String, String>,
}

impl Played {
    pub(super) fn new(script: Script, aliases: BTreeMap<String, String>) -> Self {
        Self { script: Mutex::new(script), aliases }
    }

    fn reply(&self, request: &Request<Bytes>) -> Reply {
        let question = match Question::read_ours(request) {
            Ok(question) => question,
            Err(reason) => return Reply::refused(reason),
        };
        let model = self.aliases.get(&question.model).unwrap_or(&question.model);
        let taken = self.script.lock().expect("nothing panics while it takes an entry").take(
            &question.agent,
            model,
            &question.last_message,
        );
        let Question { agent, messages, .. } = &question;
        if let Some((number, entry)) = taken {
            tracing::debug!(target: LOG_TARGET, agent, model, messages, digest = question.digest(), entry = number, "answers");
            Reply::new(&entry, &question)
        } else {
            tracing::debug!(target: LOG_TARGET, agent, model, messages, digest = question.digest(), "has no answer");
            Reply::unmatched(&question)
        }
    }
}

impl Http for Played {
    /// A script is no machine that terms could be about.
    fn with(self: Arc<Self>, _: &HttpTerms) -> Arc<dyn Http> {
        self
    }

    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let reply = self.reply(&request);
            if !reply.delay.is_zero() {
                sleep(reply.delay).await;
            }
            match reply.opening {
                Opening::Closes => Err(scripted(HttpFault::Reset)),
                Opening::Silence => {
                    sleep(SCRIPT_SILENCE_MAX).await;
                    Err(scripted(HttpFault::Reset))
                }
                Opening::Answer(answer) => Ok(HttpResponse {
                    status: answer.status,
                    headers: answer.headers.clone(),
                    body: Box::pin(answer.body().map_err(|_| scripted(HttpFault::Broken))),
                }),
            }
        })
    }
}

fn scripted(fault: HttpFault) -> HttpError {
    HttpError { fault, detail: "by script".to_owned() }
}
