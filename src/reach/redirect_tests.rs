//! Where a request goes that was sent elsewhere, and what it carries there.

use http::HeaderValue;

use super::*;

fn request() -> Request<Bytes> {
    let mut request = Request::post("https://old.example/v1/chat").body(Bytes::from("{}")).unwrap();
    let mut key = HeaderValue::from_static("Bearer canary");
    key.set_sensitive(true);
    request.headers_mut().insert("authorization", key);
    request.headers_mut().insert("accept", HeaderValue::from_static("text/event-stream"));
    request
}

fn is_encrypted(uri: &Uri) -> bool {
    uri.scheme_str() == Some("https")
}

fn followed(location: &'static str, followed: u32) -> Result<(String, bool), NoRedirect> {
    let answer = HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_static(location))]);
    follow(&request(), &answer, followed, is_encrypted).map(|next| {
        assert_eq!(next.body(), "{}");
        assert_eq!(next.headers()["accept"], "text/event-stream");
        (next.uri().to_string(), next.headers().contains_key("authorization"))
    })
}

#[test]
fn the_key_stays_with_its_origin() {
    let to = |url: &str, key: bool| Ok((url.to_owned(), key));
    assert_eq!(followed("/v2/chat?a=1", 0), to("https://old.example/v2/chat?a=1", true));
    assert_eq!(followed("https://old.example/v2", 2), to("https://old.example/v2", true));
    assert_eq!(followed("https://new.example/v2#x", 0), to("https://new.example/v2", false));
    assert_eq!(followed("https://old.example:444/", 0), to("https://old.example:444/", false));
}

#[test]
fn nobody_is_led_in_circles_or_into_the_open() {
    assert_eq!(followed("/v2", REDIRECTS_MAX), Err(NoRedirect::TooMany));
    assert_eq!(followed("http://old.example/v1", 0), Err(NoRedirect::Unencrypted));
    for bad in ["", "ftp://old.example/", "//new.example/", "https://u:p@old.example/", "v2"] {
        assert_eq!(followed(bad, 0), Err(NoRedirect::Nowhere), "{bad}");
    }
    let nothing = follow(&request(), &HeaderMap::new(), 0, is_encrypted);
    assert_eq!(nothing.unwrap_err(), NoRedirect::Nowhere);
}
