//! Session files as they are written, and as they come from others.

use serde_json::json;

use super::*;

fn whole() -> Value {
    json!({
        "schema_version": 1,
        "agent_id": "scout",
        "created_at": "2025-01-01T00:00:00.000Z",
        "modified_at": "2025-01-01T00:00:01.500Z",
        "messages": [
            {"role": "user", "content": "Hello", "meta": {"source": "rpc"}},
            {"role": "assistant", "content": "Hi."},
        ],
        "system_prompt": "Be brief.",
        "system_prompt_path": null,
        "working_directory": "/project",
        "permission_level": "sandboxed",
        "permission_preset": "sandboxed",
        "disabled_tools": ["sleep"],
        "write_paths": ["/project/out"],
        "session_allowances": {
            "write_files": [], "write_directories": [], "exec_directories": {},
            "mcp_servers": [], "mcp_tools": [],
        },
        "model": "small",
        "token_usage": {"input_tokens": 3, "output_tokens": 2},
        "provenance": "user",
        "parent_agent_id": null,
        "depth": 0,
        "root_directory": "/",
    })
}

fn with(change: impl FnOnce(&mut Map<String, Value>)) -> Result<SessionFile, ContentError> {
    let Value::Object(mut members) = whole() else { panic!("a session is an object") };
    change(&mut members);
    SessionFile::parse(Value::Object(members).to_string().as_bytes())
}

fn refused(change: impl FnOnce(&mut Map<String, Value>)) -> String {
    with(change).expect_err("it is refused").to_string()
}

#[test]
fn what_is_read_is_written_again_word_for_word() {
    let text = whole().to_string();
    let file = SessionFile::parse(text.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(file.bytes().unwrap()).unwrap(), text);
}

#[test]
fn unknown_members_are_kept_in_their_order() {
    let text = whole().to_string();
    let text = text.replacen('{', r#"{"zeta":[1],"alpha":{"b":1,"a":2},"#, 1);
    let file = SessionFile::parse(text.as_bytes()).unwrap();
    let written = String::from_utf8(file.bytes().unwrap()).unwrap();
    assert!(
        written.ends_with(r#""root_directory":"/","zeta":[1],"alpha":{"b":1,"a":2}}"#),
        "{written}"
    );
}

#[test]
fn every_member_has_a_name_in_the_list_of_members() {
    let Value::Object(members) = whole() else { panic!("a session is an object") };
    let names: Vec<&String> = members.keys().collect();
    assert_eq!(names, MEMBERS);
}

#[test]
fn what_is_wrong_is_told_in_words() {
    let damaged = |text: &str| SessionFile::parse(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(damaged("{"), "it is no JSON of a session");
    assert_eq!(damaged("[]"), "it is no JSON object");
    assert_eq!(damaged("{}"), "`schema_version` is missing or no version");
    let deep = format!("{{\"schema_version\":1,\"x\":{}", "[".repeat(1000));
    assert_eq!(damaged(&deep), "it is no JSON of a session");
    assert_eq!(
        refused(|members| drop(members.insert("schema_version".into(), json!(2)))),
        "it has version 2, and this server knows versions up to 1: use a newer server, or delete the session"
    );
    assert_eq!(
        refused(|members| members["messages"][1]["role"] = json!("system")),
        "`messages[1].role`: unknown variant `system`, expected one of `user`, `assistant`, `tool`"
    );
    assert_eq!(
        refused(|members| members["working_directory"] = json!("project")),
        "`working_directory`: it is no absolute path"
    );
    assert_eq!(
        refused(|members| members["messages"][0] =
            json!({"role": "tool", "content": "", "tool_call_id": "a"})),
        "its conversation is broken: message 0 answers no call"
    );
    let long = "x".repeat(SESSION_UNKNOWN_BYTES_MAX);
    let unknown = refused(|members| drop(members.insert("more".into(), json!(long))));
    assert!(unknown.starts_with("members that this server does not know"), "{unknown}");
}

#[test]
fn a_newer_version_is_no_damage() {
    let newer = with(|members| members["schema_version"] = json!(2)).unwrap_err();
    assert!(!newer.is_damage());
    let broken = with(|members| members["model"] = json!(2)).unwrap_err();
    assert!(broken.is_damage());
}

#[test]
fn a_summary_tells_what_a_list_needs() {
    let summary = Summary::parse(whole().to_string().as_bytes()).unwrap();
    assert_eq!((summary.message_count, summary.model.as_str()), (2, "small"));
    assert_eq!(summary.provenance, Provenance::User);
}
