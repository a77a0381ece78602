//! What clients asked for and were told, and what follows from it: which agents must be there, which
//! requests must be known. A call that was not answered may have been done or not. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use nexus3::rpc::wire::ErrorObject;
use serde_json::Value;

use crate::play::director::Made;

/// All calls of a run.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    pub calls: &'a [Made],
    /// Bytes that clients sent as they are: what they asked for is not known, but by its words.
    pub raw: &'a [String],
    /// The last start of the server.
    pub server_start: u64,
}

/// Whether an agent is there, as far as clients can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Since it was created by a call that was made then.
    Exists {
        since: Duration,
    },
    Gone,
    Unknown,
}

/// A request that somebody was told of.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard<'a> {
    pub agent: &'a str,
    pub request: &'a str,
    pub made: Duration,
    pub how: How<'a>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum How<'a> {
    /// It was taken, or is on its way.
    Taken,
    Completed(&'a str),
    Cancelled,
    Failed,
    Interrupted,
}

impl<'a> Told<'a> {
    pub fn raw_says(&self, word: &str) -> bool {
        self.raw.iter().any(|bytes| bytes.contains(word))
    }

    /// The ids of agents that somebody asked for.
    pub fn asked_for(&self) -> BTreeSet<&'a str> {
        self.creations().filter_map(id_of_creation).collect()
    }

    /// Whether an agent may have an id that nobody knows.
    pub fn may_have_unknown_agents(&self) -> bool {
        self.raw_says("create_agent")
            || self.creations().any(|made| is_unsure(made) && id_of_creation(made).is_none())
    }

    pub fn fate(&self, id: &str) -> Fate {
        if self.raw_says("create_agent") || self.raw_says("destroy_agent") {
            return Fate::Unknown;
        }
        let of_id = || self.creations().filter(|made| id_of_creation(made) == Some(id));
        let created = of_id().filter(|made| result(made).is_some()).max_by_key(|made| made.at);
        let ended = |made: &Made| made.ended.unwrap_or(Duration::MAX);
        let destroyed = self.destructions().filter(|made| has_destroyed(made, id));
        if let Some(last) = destroyed.max_by_key(|made| made.at) {
            let mut later = of_id().filter(|made| ended(made) > last.at && !is_refused(made));
            if later.next().is_none() {
                return Fate::Gone;
            }
        }
        let Some(created) = created else {
            return Fate::Unknown;
        };
        let is_child = is_child(created);
        let may_be_gone = self.destructions().filter(|made| ended(made) > created.at).any(|made| {
            let unsure = is_unsure(made) && (is_child || param(made, "agent_id") == Some(id));
            unsure || has_destroyed(made, id)
        });
        // Whoever is loaded over an agent takes those below it along.
        let is_overwritten = is_child && self.overwrites().any(|made| ended(made) > created.at);
        // Temporary agents go with their server.
        let is_left_behind = id.starts_with('.') && created.server_start != self.server_start;
        if may_be_gone || is_overwritten || is_left_behind {
            Fate::Unknown
        } else {
            Fate::Exists { since: created.at }
        }
    }

    /// The ids that agents were given by calls that were answered, as far as nothing was done since to
    /// whoever has them.
    pub fn ids_given(&self) -> Vec<&'a str> {
        let given = self.calls.iter().filter(|made| result(made).is_some()).filter_map(|made| {
            let (from, to) = match made.call.method.as_str() {
                "save_session" => (param(made, "agent_id")?, param(made, "session_name")?),
                "rename_session" => (param(made, "old_name")?, param(made, "new_name")?),
                _ => return None,
            };
            // Whether a name without a dot was that of an agent or of a file alone is known of the former.
            let is_agents = from.starts_with('.') || matches!(self.fate(from), Fate::Exists { .. });
            let is_same = made.call.method == "rename_session" || from.starts_with('.');
            (is_agents && is_same && !self.is_changed_after(to, made)).then_some(to)
        });
        given.collect()
    }

    /// Whether the agent of this id may have got another, or have been deleted.
    pub fn may_have_lost(&self, id: &str) -> bool {
        self.calls.iter().filter(|made| !is_refused(made)).any(|made| {
            let named = match made.call.method.as_str() {
                "rename_session" => param(made, "old_name"),
                "delete_session" => param(made, "session_name"),
                "save_session" => param(made, "agent_id").filter(|id| id.starts_with('.')),
                _ => None,
            };
            named == Some(id)
        })
    }

    /// Whether an agent may have got this id that was created under another.
    pub fn may_be_given(&self, id: &str) -> bool {
        self.calls.iter().filter(|made| !is_refused(made)).any(|made| {
            let named = match made.call.method.as_str() {
                "rename_session" => param(made, "new_name"),
                "save_session" => param(made, "session_name"),
                _ => None,
            };
            named == Some(id)
        })
    }

    /// Whether something may have been done to the agent of this id after a call, or at its time.
    fn is_changed_after(&self, id: &str, made: &Made) -> bool {
        let changes = ["destroy_agent", "rename_session", "delete_session", "load_session"];
        let later = self.calls.iter().filter(|later| later.ended.is_none_or(|at| at > made.at));
        let mut later = later.filter(|later| !std::ptr::eq(*later, made) && !is_refused(later));
        later.any(|later| {
            let named = ["agent_id", "old_name", "session_name"].map(|name| param(later, name));
            let is_family = later.call.method == "destroy_agent";
            changes.contains(&later.call.method.as_str())
                && (is_family || named.contains(&Some(id)))
        })
    }

    /// Every request that somebody was told of, with what was told.
    pub fn heard(&self) -> Vec<Heard<'a>> {
        self.calls.iter().filter_map(heard).collect()
    }

    /// Sends to an agent: the request id where one was given or told, and the content.
    pub fn sends(&self, agent: &str) -> Vec<(Option<&'a str>, &'a str)> {
        let sends = self.calls.iter().filter_map(|made| {
            let (to, content) = match made.call.method.as_str() {
                "send" => (made.call.agent.as_deref(), param(made, "content")),
                "create_agent" => (id_of_creation(made), param(made, "initial_message")),
                _ => return None,
            };
            let told = result(made).and_then(|result| {
                result.get("request_id").or_else(|| result.get("initial_request_id"))
            });
            let id = param(made, "request_id").or_else(|| told.and_then(Value::as_str));
            // To an agent whose id nobody was told, it may have been to this one.
            let may_be_it = to.map_or(is_unsure(made), |to| to == agent);
            may_be_it.then_some((id, content?))
        });
        sends.collect()
    }

    /// The most messages that somebody was told an agent has, by calls made since then.
    pub fn messages_told(&self, agent: &str, since: Duration) -> u64 {
        let told = self.calls.iter().filter(|made| made.at >= since).filter_map(|made| {
            let result = result(made)?;
            let of_agent = made.call.agent.as_deref() == Some(agent);
            match made.call.method.as_str() {
                "get_messages" if of_agent => result["total"].as_u64(),
                "get_context" if of_agent => result["message_count"].as_u64(),
                "list_agents" => {
                    let listed = result["agents"].as_array()?;
                    let entry = listed.iter().find(|entry| entry["agent_id"] == agent)?;
                    entry["message_count"].as_u64()
                }
                _ => None,
            }
        });
        told.max().unwrap_or(0)
    }

    fn creations(&self) -> impl Iterator<Item = &'a Made> + use<'a> {
        self.calls.iter().filter(|made| made.call.method == "create_agent")
    }

    /// Loads that may have ended the agent of their id.
    fn overwrites(&self) -> impl Iterator<Item = &'a Made> + use<'a> {
        let asked = |made: &Made| made.call.params.as_ref()?.get("overwrite")?.as_bool();
        let loads = self.calls.iter().filter(|made| made.call.method == "load_session");
        loads.filter(move |made| asked(made) == Some(true) && !is_refused(made))
    }

    fn destructions(&self) -> impl Iterator<Item = &'a Made> + use<'a> {
        self.calls.iter().filter(|made| made.call.method == "destroy_agent")
    }
}

fn heard(made: &Made) -> Option<Heard<'_>> {
    let agent = made.call.agent.as_deref()?;
    let text = |value: &'_ Value| value.as_str().is_some();
    let (request, how) = match (made.call.method.as_str(), made.answer.as_ref()?) {
        ("send", Ok(result)) => {
            let request = result.get("request_id")?.as_str()?;
            (request, of_result(result).unwrap_or(How::Taken))
        }
        ("send", Err(error)) => (param(made, "request_id")?, of_error(error)?),
        ("get_request", Ok(known)) => {
            let request = known.get("request_id").filter(|id| text(id))?.as_str()?;
            let how = match known.get("status")?.as_str()? {
                "completed" => of_result(known.get("result")?)?,
                "cancelled" => How::Cancelled,
                "failed" if is_of_storage(known.get("error")) => return None,
                "failed" => How::Failed,
                "interrupted" => How::Interrupted,
                _ => How::Taken,
            };
            (request, how)
        }
        _ => return None,
    };
    Some(Heard { agent, request, made: made.at, how })
}

fn of_result(result: &Value) -> Option<How<'_>> {
    if result.get("cancelled").and_then(Value::as_bool) == Some(true) {
        return Some(How::Cancelled);
    }
    result.get("content").and_then(Value::as_str).map(How::Completed)
}

/// How a turn ended that was answered with an error; `None` where it was refused, or could not be
/// written down.
fn of_error(error: &ErrorObject) -> Option<How<'static>> {
    let kind = error.data.as_ref()?.get("kind")?.as_str()?;
    match kind {
        "provider" | "timeout" => Some(How::Failed),
        "interrupted" => Some(How::Interrupted),
        _ => None,
    }
}

fn is_of_storage(error: Option<&Value>) -> bool {
    error.and_then(|error| error.pointer("/data/kind")).is_some_and(|kind| kind == "storage")
}

pub fn result(made: &Made) -> Option<&Value> {
    made.answer.as_ref()?.as_ref().ok()
}

/// Whether it is not known if it was done: nobody answered, or the disk failed.
fn is_unsure(made: &Made) -> bool {
    match &made.answer {
        None => true,
        Some(Ok(_)) => false,
        Some(Err(error)) => {
            error.data.as_ref().and_then(|data| data.get("kind")).is_some_and(|it| it == "storage")
        }
    }
}

fn is_refused(made: &Made) -> bool {
    matches!(&made.answer, Some(Err(_))) && !is_unsure(made)
}

fn id_of_creation(made: &Made) -> Option<&str> {
    let told = result(made).and_then(|result| result.get("agent_id"));
    // A temporary id is given by the server.
    let asked_for = || param(made, "agent_id").filter(|id| *id != ".");
    told.and_then(Value::as_str).or_else(asked_for)
}

fn is_child(made: &Made) -> bool {
    param(made, "parent_agent_id").is_some() || !made.call.headers.is_empty()
}

fn has_destroyed(made: &Made, id: &str) -> bool {
    let destroyed = result(made).and_then(|result| result["destroyed"].as_array());
    destroyed.into_iter().flatten().any(|destroyed| destroyed == id)
}

fn param<'a>(made: &'a Made, name: &str) -> Option<&'a str> {
    made.call.params.as_ref()?.get(name)?.as_str()
}
