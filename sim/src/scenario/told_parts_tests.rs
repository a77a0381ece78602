//! What is told about steps, models and faults that make no sense, alone or together.

use super::told_tests::told;
use super::{Scenario, ServeFlag};

#[test]
fn a_step_has_one_action_and_only_its_keys() {
    let text = r#"[[step]]
name = "a"
[[step]]
call = "send"
sleep = "1s"
[[step]]
sleep = "1s"
params = {}
serve = []
nth = 2
in_order = true
[[step]]
sleep = "1s"
at = "1s"
on = "tool_started"
[[step]]
call = "creat_agent"
[[step]]
call = "send"
[[step]]
call = "list_agents"
agent = "a"
[[step]]
call = "list_agents"
expect = {}
expect_error = {}
save = { a = "" }
"#;
    let expected = r#"s.toml:3:1: step[0]: this step does nothing
  hint: give it one of call, watch, unwatch, confirm, raw, terminal, disconnect, sleep, stop, start, files
s.toml:5:1: step[1]: `call` and `sleep` are both given
  hint: make two steps of it
s.toml:10:1: step[2].params: does not belong to `sleep`
  hint: it belongs to `call`
s.toml:11:1: step[2].serve: does not belong to `sleep`
  hint: it belongs to `start`
s.toml:12:1: step[2].nth: belongs to `on`
  hint: add `on`, or remove it
s.toml:13:1: step[2].in_order: belongs to `on`
  hint: add `on`, or remove it
s.toml:17:1: step[3].on: of `at`, `after` and `on` a step has at most one
  hint: keep one of them
s.toml:19:8: step[4].call: there is no method "creat_agent"
  hint: did you mean `create_agent`?
s.toml:21:8: step[5].call: "send" is a method of an agent
  hint: say whose: agent = "…"
s.toml:24:9: step[6].agent: "list_agents" is a method of the server, not of an agent
  hint: remove `agent`; what the method is about goes into `params`
s.toml:28:16: step[7].expect_error: a call has a result or an error, not both
  hint: keep `expect` or `expect_error`
s.toml:29:8: step[7].save: an error has no result to save from
  hint: remove `save`
"#;
    assert_eq!(told(text), expected);
}

#[test]
fn steps_are_named_once_and_before_they_are_used() {
    let text = r#"[[step]]
after = "go"
sleep = "1s"
[[step]]
name = "go"
sleep = "1s"
[[step]]
name = "go"
after = "gone"
client = "server"
sleep = "1s"
"#;
    let expected = r#"s.toml:4:9: step[0].after: the step "go" does not come before this one
  hint: move one of the two
s.toml:10:8: step[2].name: another step is called "go"
  hint: choose another name
s.toml:11:9: step[2].after: there is no step "gone"
  hint: earlier steps are: go
s.toml:12:10: step[2].client: "server" is a host of its own
  hint: choose another name
"#;
    assert_eq!(told(text), expected);
}

#[test]
fn a_string_uses_only_what_an_earlier_step_saved() {
    let text = r#"[[step]]
call = "list_agents"
params = { a = ["${first}"] }
headers = { x = "${seq}${n}${token}$${first}" }
save = { first = "/agents/0", "a b" = "agents", n = "/~2" }
[[step]]
call = "list_agents"
params = { a = "${first} ${frist} ${" }
"#;
    let expected = r#"s.toml:5:17: step[0].params.a[0]: no earlier step saves "first"
  hint: write $${ for a plain ${; names are: mcp, n, seq, token
s.toml:7:31: step[0].save."a b": this is no name
  hint: use letters, digits and `_`
s.toml:7:39: step[0].save."a b": expected a JSON pointer, found a string "agents"
  hint: write it like "/agents/0/agent_id"
s.toml:7:49: step[0].save.n: this name has a meaning of its own
  hint: choose another name
s.toml:7:53: step[0].save.n: expected a JSON pointer, found a string "/~2"
  hint: write it like "/agents/0/agent_id"
s.toml:10:16: step[1].params.a: no earlier step saves "frist"
  hint: did you mean `first`?
s.toml:10:16: step[1].params.a: this `${` is not closed
  hint: write $${ for a plain ${
"#;
    assert_eq!(told(text), expected);
}

#[test]
fn faults_happen_to_hosts_that_exist() {
    let text = r#"[[step]]
client = "alice"
sleep = "1s"
[[fault]]
kind = "crash"
at = "1s"
host = "sever"
[[fault]]
kind = "hold"
at = "1s"
between = ["alice", "bob"]
"#;
    let expected = r#"s.toml:9:8: fault[0].host: there is no host "sever"
  hint: did you mean `server`?
s.toml:13:21: fault[1].between[1]: there is no host "bob"
  hint: there are: server, model, alice
"#;
    assert_eq!(told(text), expected);
}

#[test]
fn patterns_are_compiled_when_the_file_is_read() {
    let text = r#"[[model]]
when = "("
says = "x"
[[program]]
run = "a{2,1}"
[[step]]
call = "list_agents"
expect = { a = ["re:[", "re:^${n}$"] }
[expect]
files = { "/x" = "re:*" }
"#;
    let expected = r#"s.toml:4:8: model[0].when: "(" is no regular expression
  hint: unclosed group
s.toml:7:7: program[0].run: "a{2,1}" is no regular expression
  hint: invalid repetition count range, the start must be <= the end
s.toml:10:17: step[0].expect.a[0]: "[" is no regular expression
  hint: unclosed character class
s.toml:12:18: expect.files."/x": "*" is no regular expression
  hint: repetition operator missing expression
"#;
    assert_eq!(told(text), expected);
}

#[test]
fn an_answer_is_for_somebody_and_says_something() {
    let text = r#"[[model]]
agent = "a"
model = "b"
"#;
    let expected = "s.toml:3:1: model[0]: this answer is empty
  hint: add `says`, `asks` or `fault`
s.toml:5:1: model[0].model: `agent` and `model` are both given
  hint: keep one of them
";
    assert_eq!(told(text), expected);
}

#[test]
fn a_fault_makes_sense() {
    let text = r#"[[fault]]
kind = "crash"
[[fault]]
kind = "crash"
at = "1s"
rate = 0.5
[[fault]]
kind = "io_error"
every = "0s"
host = "model"
by = "1s"
[[fault]]
kind = "delay"
at = "1s"
by = "-1s"
[[fault]]
kind = "clock_jump"
at = "1s"
[[fault]]
kind = "crash"
at = "1s"
between = ["server", "model"]
[[fault]]
kind = "hold"
at = "1s"
between = ["server", "server"]
[[fault]]
kind = "files"
at = "1s"
for = "1s"
[[fault]]
kind = "crash"
on = "pint:1"
"#;
    let expected = r#"s.toml:3:1: fault[0]: it is not said when this happens
  hint: add `at`, `on`, `every` or `rate`
s.toml:8:1: fault[1].rate: of `at`, `on`, `every` and `rate` a fault has exactly one
  hint: keep one of them
s.toml:8:1: fault[1].rate: this kind happens to no message and no operation
  hint: use `at` or `every`
s.toml:11:9: fault[2].every: this would never let time pass
  hint: use a time above 0
s.toml:12:8: fault[2].host: this kind happens to the server only
  hint: use "server"
s.toml:13:1: fault[2].by: belongs to `delay` and `clock_jump`
  hint: remove it
s.toml:17:6: fault[3].by: a message cannot arrive earlier
  hint: remove the `-`
s.toml:18:1: fault[4]: `by` is missing
  hint: say by how much: by = "200ms"
s.toml:24:11: fault[5].between: this kind happens to no link
  hint: use `host`
s.toml:28:11: fault[6].between: a link has two ends
  hint: name two hosts
s.toml:29:1: fault[7]: `files` is missing
  hint: say what changes: files = { "/path" = "text" }
s.toml:32:1: fault[7].for: changed files stay changed
  hint: remove it
s.toml:35:6: fault[8].on: expected an event, a point or a file operation, found "pint:1"
  hint: write it like "event:tool_started", "point:17" or "fs:open:/project/x"
"#;
    assert_eq!(told(text), expected);
}

#[test]
fn mcp_servers_are_checked_before_anything_runs() {
    let text = r#"
[[mcp]]
name    = "m"
headers = { a = "b" }
[[mcp]]
name = "m"
[[mcp]]
name = "m__n"
[[mcp]]
name          = "a"
session_calls = 1
moved         = { to = "/x" }
[[mcp.tool]]
name  = "t"
fault = "breaks"
[[mcp]]
name      = "b"
transport = "http"
stderr    = "x"
twins     = ["u"]
moved     = { to = "/x", status = 200 }
"#;
    let told = told(text);
    let expected = [
        "mcp[0].headers",
        "mcp[1].name",
        "mcp[2].name",
        "mcp[3].session_calls",
        "mcp[3].moved",
        "mcp[3].tool",
        "mcp[4].stderr",
        "mcp[4].twins",
        "mcp[4].moved.status",
    ];
    assert_eq!(places(&told), expected, "{told}");
}

#[test]
fn an_answer_waits_for_steps_and_events_that_there_are() {
    let text = r#"wire = "script"
[[model]]
says = "a"
after = {}
[[model]]
says = "b"
after = { step = "lok", agent = "a", nth = 2 }
[[model]]
says = "c"
after = { event = "turn_queue", nth = 2 }
[[step]]
name = "look"
sleep = "1s"
"#;
    let inside = "a script inside the server waits for nothing\n  hint: leave out `wire`";
    let expected = format!(
        "s.toml:6:1: model[0].after: {inside}
s.toml:6:9: model[0].after: it names nothing
  hint: name a `step` or an `event`
s.toml:9:1: model[1].after: {inside}
s.toml:9:18: model[1].after.step: there is no step \"lok\"
  hint: did you mean `look`?
s.toml:9:33: model[1].after.agent: belongs to `event`
  hint: add `event`, or remove it
s.toml:9:44: model[1].after.nth: belongs to `event`
  hint: add `event`, or remove it
s.toml:12:1: model[2].after: {inside}
s.toml:12:19: model[2].after.event: there is no event \"turn_queue\"
  hint: did you mean `turn_queued`?
"
    );
    assert_eq!(told(text), expected);
}

/// The places of what is wrong, in order.
fn places(told: &str) -> Vec<&str> {
    let problems = told.lines().filter(|line| line.starts_with("s.toml"));
    problems.filter_map(|line| line.split(": ").nth(1)).collect()
}

#[test]
fn tools_of_mcp_servers_are_checked_before_anything_runs() {
    let text = r#"
[[mcp]]
name = "m"
[[mcp.tool]]
name   = "a"
status = 500
exit   = 1
[[mcp.tool]]
name        = "b"
schema_json = "[]"
[[mcp.tool]]
name            = "c"
structured      = 1
structured_json = "null"
[[mcp.tool]]
name   = "d"
fault  = "dies"
exit   = 1
signal = 9
[[mcp]]
name      = "h"
transport = "http"
[[mcp.tool]]
name   = "e"
fault  = "dies"
signal = 9
[[mcp.tool]]
name   = "f"
fault  = "refuses"
error  = { code = 1, message = "no" }
"#;
    let told = told(text);
    let expected = [
        "mcp[0].tool[0].status",
        "mcp[0].tool[0].exit",
        "mcp[0].tool[1].schema_json",
        "mcp[0].tool[2].structured_json",
        "mcp[0].tool[3].signal",
        "mcp[1].tool[0].signal",
        "mcp[1].tool[1].error",
    ];
    assert_eq!(places(&told), expected, "{told}");
}

#[test]
fn agents_of_an_earlier_server_are_checked_before_anything_runs() {
    let text = r#"
[[agent]]
id      = ".1"
preset  = "worker"
[[agent]]
id      = "a"
preset  = "worker"
parent  = "b"
cwd     = "here"
summary = { upto = 2, text = "Long ago." }
messages = [{ role = "user", content = "Hi" }]
[[agent]]
id       = "a"
preset   = "worker"
ceiling  = { level = "high" }
messages = [{ role = "nobody", content = "Hi" }]
[[agent]]
id            = "c"
preset        = "worker"
messages_json = "{}"
requests      = [{ id = "", content = "Hi", status = "completed", outcome_json = "{" }]
"#;
    let told = told(text);
    let expected = [
        "agent[0].id",
        "agent[1].parent",
        "agent[1].cwd",
        "agent[1].summary",
        "agent[2].id",
        "agent[2].ceiling",
        "agent[2].messages[0]",
        "agent[3].messages_json",
        "agent[3].requests[0].id",
        "agent[3].requests[0].outcome_json",
    ];
    assert_eq!(places(&told), expected, "{told}");
}

#[test]
fn a_flag_and_its_file_belong_together() {
    let text = "schema = 1\nabout = \"x\"\n\
                serve = [\"--record\", \"/home/nexus/.nexus3/recording.toml\"]\n";
    assert_eq!(Scenario::parse("s.toml", text).unwrap().serve, [ServeFlag::Record]);
    let told =
        told("serve = [\"--record\", \"--verbose\", \"/home/nexus/.nexus3/recording.toml\"]\n");
    assert_eq!(places(&told), ["serve[0]", "serve[2]"], "{told}");
}

#[test]
fn streams_and_events_are_checked_before_anything_runs() {
    let text = r#"
[[step]]
watch = { agent = "a", after = 5, pace = "never" }
[[step]]
watch = { after = "${seq}", pace = "1s" }
headers = { x-nexus-agent = "a" }
token = false
expect_http = 403
expect_error = { code = -32003 }
[[step]]
watch = { after = "soon" }
[[step]]
watch = {}
expect = {}
[[step]]
on = "event:tool_startet"
sleep = "1s"
[[fault]]
kind = "crash"
on = "event:tool_started"
agent = "a"
nth = 2
[[fault]]
kind = "crash"
on = "event:content_chunks"
[[fault]]
kind = "crash"
at = "1s"
nth = 2
"#;
    let expected = r#"s.toml:13:19: step[2].watch.after: expected the number of an event, found "soon"
  hint: write it like 5 or "${seq}"
s.toml:16:1: step[3].expect: does not belong to `watch`
  hint: it belongs to `call` and `confirm`
s.toml:18:6: step[4].on: there is no event "tool_startet"
  hint: did you mean `tool_started`?
s.toml:27:6: fault[1].on: there is no event "content_chunks"
  hint: did you mean `content_chunk`?
s.toml:31:1: fault[2].nth: belongs to an event of `on`
  hint: add `on`, or remove it
"#;
    assert_eq!(told(text), expected);
    let expected = r#"s.toml:4:18: step[0].watch.pace: expected "never" or a time, found a string "seldom"
  hint: write a number and one of ms, s, m, h, such as "20ms" or "1.5s", at most a year
s.toml:4:36: step[0].watch.after: expected a whole number from 0, found -1
  hint: choose a number in this range
"#;
    assert_eq!(told("[[step]]\nwatch = { pace = \"seldom\", after = -1 }\n"), expected);
}
