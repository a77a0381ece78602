//! Everything that is decided from a request's head alone, in the order of the contract:
//! limits, declared length, Host, Origin, route, HTTP method, token. Pure.

use http::header::{ALLOW, CONTENT_LENGTH, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use super::auth::{self, Auth, AuthError};
use super::reply::Refusal;
use super::route::{NoRoute, ROUTES, Route, route};
use crate::limits::{BODY_BYTES_MAX, HEADER_BYTES_MAX, HEADER_FIELDS_MAX};

pub fn check<'a>(parts: &'a Parts, auth: &Auth) -> Result<Route<'a>, Refusal> {
    let headers = &parts.headers;
    check_size(headers)?;
    check_length(headers)?;
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    if !auth::host_is_loopback(headers, authority) {
        return Err(Refusal::request(StatusCode::FORBIDDEN, "Host not allowed"));
    }
    if !auth::origin_is_loopback(headers) {
        return Err(Refusal::request(StatusCode::FORBIDDEN, "Origin not allowed"));
    }
    let route = route(&parts.method, parts.uri.path()).map_err(no_route)?;
    match route {
        Route::Health => {}
        Route::Global | Route::Agent(_) | Route::AgentEvents(_) | Route::AllEvents => {
            auth.check(headers).map_err(no_entry)?;
        }
    }
    Ok(route)
}

fn check_size(headers: &HeaderMap) -> Result<(), Refusal> {
    // A field's line has a colon, a space and a line end besides its name and value.
    let bytes: usize =
        headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if headers.len() <= HEADER_FIELDS_MAX && bytes <= HEADER_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "Request headers too large: at most {HEADER_FIELDS_MAX} fields and {HEADER_BYTES_MAX} bytes"
    );
    Err(Refusal::request(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message).closing())
}

fn check_length(headers: &HeaderMap) -> Result<(), Refusal> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    // hyper refuses lengths that are no number before we see them.
    let declared = declared.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    if declared > BODY_BYTES_MAX as u64 { Err(Refusal::body_too_large()) } else { Ok(()) }
}

fn no_route(error: NoRoute) -> Refusal {
    match error {
        NoRoute::Path => {
            Refusal::params(StatusCode::NOT_FOUND, format!("Not found. Routes: {ROUTES}"))
        }
        NoRoute::Method { allow } => {
            Refusal::request(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
                .with(ALLOW, allow)
        }
    }
}

fn no_entry(error: AuthError) -> Refusal {
    match error {
        AuthError::Missing => {
            Refusal::request(StatusCode::UNAUTHORIZED, "Authorization header required")
                .with(WWW_AUTHENTICATE, "Bearer")
        }
        AuthError::Wrong => Refusal::request(StatusCode::FORBIDDEN, "Invalid API key"),
    }
}
