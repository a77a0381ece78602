//! From a request line to what it asks for. Pure.

use http::Method;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    Health,
    Global,
    /// An agent's methods; the id as it was written, not yet judged.
    Agent(&'a str),
    /// The events of one agent; its id as it was written.
    AgentEvents(&'a str),
    AllEvents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    Path,
    /// A known path with another HTTP method; this one is allowed.
    Method {
        allow: &'static str,
    },
}

pub const ROUTES: &str = "POST /, POST /rpc, POST /agent/{agent_id}, \
                          GET /agent/{agent_id}/events, GET /events, GET /healthz";

pub fn route<'a>(method: &Method, path: &'a str) -> Result<Route<'a>, NoRoute> {
    let (route, allow) = match path {
        "/" | "/rpc" => (Route::Global, Method::POST),
        "/healthz" => (Route::Health, Method::GET),
        "/events" => (Route::AllEvents, Method::GET),
        _ => {
            let rest = path.strip_prefix("/agent/").ok_or(NoRoute::Path)?;
            match rest.split_once('/') {
                None => (Route::Agent(rest), Method::POST),
                Some((id, "events")) => (Route::AgentEvents(id), Method::GET),
                Some(_) => return Err(NoRoute::Path),
            }
        }
    };
    if *method == allow {
        return Ok(route);
    }
    Err(NoRoute::Method { allow: if allow == Method::GET { "GET" } else { "POST" } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_its_method() {
        let table = [
            (Method::POST, "/", Ok(Route::Global)),
            (Method::POST, "/rpc", Ok(Route::Global)),
            (Method::POST, "/agent/a", Ok(Route::Agent("a"))),
            (Method::POST, "/agent/", Ok(Route::Agent(""))),
            (Method::POST, "/agent/%2e", Ok(Route::Agent("%2e"))),
            (Method::GET, "/healthz", Ok(Route::Health)),
            (Method::GET, "/events", Ok(Route::AllEvents)),
            (Method::GET, "/agent/a/events", Ok(Route::AgentEvents("a"))),
            (Method::GET, "/agent//events", Ok(Route::AgentEvents(""))),
            (Method::POST, "/agent/events", Ok(Route::Agent("events"))),
            (Method::POST, "/events", Err(NoRoute::Method { allow: "GET" })),
            (Method::HEAD, "/agent/a/events", Err(NoRoute::Method { allow: "GET" })),
            (Method::GET, "/agent/a/events/", Err(NoRoute::Path)),
            (Method::GET, "/agent/a/b/events", Err(NoRoute::Path)),
            (Method::GET, "/events/", Err(NoRoute::Path)),
            (Method::GET, "/", Err(NoRoute::Method { allow: "POST" })),
            (Method::OPTIONS, "/agent/a", Err(NoRoute::Method { allow: "POST" })),
            (Method::POST, "/healthz", Err(NoRoute::Method { allow: "GET" })),
            (Method::POST, "/agent", Err(NoRoute::Path)),
            (Method::POST, "/agent/a/b", Err(NoRoute::Path)),
            (Method::POST, "/rpc/", Err(NoRoute::Path)),
            (Method::POST, "//", Err(NoRoute::Path)),
        ];
        for (method, path, expected) in table {
            assert_eq!(route(&method, path), expected, "{method} {path}");
        }
    }
}
