//! What is told about a scenario that is wrong: everything at once, at its place, in our words.

use super::Scenario;

/// The problems of a file that starts well; its own lines count from 3.
fn told(rest: &str) -> String {
    let text = format!("schema = 1\nabout = \"x\"\n{rest}");
    let problems = Scenario::parse("s.toml", &text).unwrap_err();
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn every_fault_of_form_is_told_at_once() {
    let text = r#"sede = 7
seed = -1
limit = "5 minutes"
wire = "opneai"
serve = ["--alow-yolo"]
config = 3
[[program]]
run = []
takes = "for ever"
[[model]]
says = 3
times = 0
fault = { stall = "body", refuze = true }
[[step]]
cal = "send"
background = "yes"
disconnect = false
expect_http = 1000
token = true
repeat = 0
[[fault]]
rate = 2
between = ["server"]
[expect]
ignore = [{ invariant = "answer", reason = "" }]
"#;
    let expected = r#"s.toml:3:1: sede: unknown key
  hint: did you mean `seed`?
s.toml:4:8: seed: expected a whole number from 0, found -1
  hint: choose a number in this range
s.toml:5:9: limit: expected a time, found a string "5 minutes"
  hint: write a number and one of ms, s, m, h, such as "20ms" or "1.5s", at most a year
s.toml:6:8: wire: expected one of "openai", "anthropic", "script", found a string "opneai"
  hint: did you mean "openai"?
s.toml:7:10: serve[0]: expected "--allow-yolo" or "--no-auth", found a string "--alow-yolo"
  hint: did you mean "--allow-yolo"?
s.toml:8:10: config: expected a table, found 3
  hint: write it like { key = "value" }
s.toml:10:7: program[0].run: expected a list that is not empty, found a list
  hint: write it like [first, second], or one [[table]] for each
s.toml:11:9: program[0].takes: expected "forever" or a time, found a string "for ever"
  hint: did you mean "forever"?
s.toml:13:8: model[0].says: expected a string or a list, found 3
  hint: write it between quotes
s.toml:14:9: model[0].times: expected a whole number from 1, found 0
  hint: choose a number in this range
s.toml:15:19: model[0].fault.stall: expected "headers" or a whole number from 0, found a string "body"
  hint: write digits, without quotes
s.toml:15:27: model[0].fault.refuze: unknown key
  hint: did you mean `refuse`?
s.toml:17:1: step[0].cal: unknown key
  hint: did you mean `call`?
s.toml:18:14: step[0].background: expected true or false, found a string "yes"
  hint: write true or false, without quotes
s.toml:19:14: step[0].disconnect: expected true, found false
  hint: nothing else is meant here
s.toml:20:15: step[0].expect_http: expected a whole number from 100 to 599, found 1000
  hint: choose a number in this range
s.toml:21:9: step[0].token: expected false, found true
  hint: nothing else is meant here
s.toml:22:10: step[0].repeat: expected a whole number from 1, found 0
  hint: choose a number in this range
s.toml:23:1: fault[0]: `kind` is missing
  hint: add `kind`: it has no default
s.toml:24:8: fault[0].rate: expected a number above 0, at most 1, found 2
  hint: choose a number in this range
s.toml:25:11: fault[0].between: expected a list of 2, found a list
  hint: write it like [first, second], or one [[table]] for each
s.toml:27:25: expect.ignore[0].invariant: expected one of "pairs", "answers", "order", "once", "durable", "events", "ceiling", "window", "bounds", "schema", found a string "answer"
  hint: did you mean "answers"?
s.toml:27:44: expect.ignore[0].reason: expected a string that is not empty, found a string ""
  hint: write something between the quotes
"#;
    assert_eq!(told(text), expected);
}

#[test]
fn a_value_that_json_lacks_is_refused() {
    let text = r#"seed = 99999999999999999999999
[env]
X = 1979-05-27
[config]
turn_timeout = inf
"#;
    let expected = r#"s.toml:3:8: seed: this number is too large
  hint: use at most 64 bits
s.toml:5:5: env.X: no key of a scenario takes a date
  hint: write it between quotes
s.toml:7:16: config.turn_timeout: no key of a scenario takes this number
  hint: use a finite number
"#;
    assert_eq!(told(text), expected);
}

#[test]
fn a_file_is_one_thing_at_an_absolute_path() {
    let text = r#"[files]
"notes" = "x"
"/a/../b" = "x"
"/c" = { dir = true, text = "x" }
"/d" = { dir = true, mode = 0o700 }
"/e" = { text = "x", mode = 600 }
"/f" = { base64 = "!" }
"/g" = { text = "xx", repeat = 99999999 }
"/h" = {}
"#;
    let expected = r#"s.toml:4:1: files.notes: expected an absolute path
  hint: write the whole path, starting with /, without `.` and `..`
s.toml:5:1: files."/a/../b": expected an absolute path
  hint: write the whole path, starting with /, without `.` and `..`
s.toml:6:8: files."/c": expected exactly one of `text`, `base64`, `dir`, `symlink`, `remove`
  hint: write it like { dir = true }, or just the text of the file
s.toml:7:22: files."/d".mode: belongs to a `text`
  hint: remove it
s.toml:8:29: files."/e".mode: expected an octal number, found 600
  hint: write it like 0o600
s.toml:9:19: files."/f".base64: this is not base64
  hint: use A-Z, a-z, 0-9, + and /, with = at the end to fill the last four characters
s.toml:10:32: files."/g".repeat: the file would have more than 67108864 bytes
  hint: repeat the text less often
s.toml:11:8: files."/h": expected exactly one of `text`, `base64`, `dir`, `symlink`, `remove`
  hint: write it like { dir = true }, or just the text of the file
"#;
    assert_eq!(told(text), expected);
}

#[test]
fn what_the_server_will_refuse_is_told_at_its_place() {
    let text = r#"[config]
max_tool_iterations = 0
default_model = "gpt"
[config.server]
prot = 1
"#;
    let expected = r#"s.toml:4:23: in [config]: max_tool_iterations: expected a whole number from 1 to 100000, found 0
  hint: leave `max_tool_iterations` out for the default, 100
s.toml:5:17: in [config]: default_model: there is no model "gpt"
  hint: there are: default, demo
s.toml:7:1: in [config]: server.prot: unknown key
  hint: did you mean `port`?
"#;
    assert_eq!(told(text), expected);
}

#[test]
fn a_model_of_a_provider_is_checked_as_the_server_does() {
    let text = r#"[config.providers.p]
type = "openai"
models = { m = { id = 3 } }
"#;
    let expected = r#"s.toml:5:23: in [config]: providers.p.models.m.id: expected a string, found 3
  hint: name the model as its provider does
"#;
    assert_eq!(told(text), expected);
}

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
  hint: give it one of call, watch, unwatch, confirm, raw, disconnect, sleep, stop, start, files
s.toml:5:1: step[1]: `call` and `sleep` are both given
  hint: make two steps of it
s.toml:10:1: step[2].params: does not belong to `sleep`
  hint: it belongs to `call`
s.toml:11:1: step[2].serve: does not belong to `sleep`
  hint: it belongs to `start`
s.toml:12:1: step[2].nth: belongs to `on`
  hint: add `on`, or remove it
s.toml:16:1: step[3].on: of `at`, `after` and `on` a step has at most one
  hint: keep one of them
s.toml:18:8: step[4].call: there is no method "creat_agent"
  hint: did you mean `create_agent`?
s.toml:20:8: step[5].call: "send" is a method of an agent
  hint: say whose: agent = "…"
s.toml:23:9: step[6].agent: "list_agents" is a method of the server, not of an agent
  hint: remove `agent`; what the method is about goes into `params`
s.toml:27:16: step[7].expect_error: a call has a result or an error, not both
  hint: keep `expect` or `expect_error`
s.toml:28:8: step[7].save: an error has no result to save from
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
  hint: write $${ for a plain ${; names are: n, seq, token
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
    let expected = r#"s.toml:3:1: model[0]: this answer is empty
  hint: add `says`, `asks` or `fault`
s.toml:5:1: model[0].model: `agent` and `model` are both given
  hint: keep one of them
"#;
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
fn what_comes_later_is_refused_by_name() {
    let text = r#"wire = "anthropic"
[[step]]
watch = {}
[[step]]
unwatch = true
[[step]]
confirm = { tool = "t", decision = "deny" }
[[step]]
on = "event:e"
sleep = "1s"
[[fault]]
kind = "crash"
on = "event:e"
[[fault]]
kind = "crash"
on = "point:1"
[[fault]]
kind = "files"
files = {}
on = "fs:open:/x"
[[mcp]]
name = "m"
"#;
    let expected = r#"s.toml:3:1: wire: not yet: the Anthropic wire
  hint: remove it; a later version has it
s.toml:5:1: step[0].watch: not yet: event streams
  hint: remove it; a later version has it
s.toml:7:1: step[1].unwatch: not yet: event streams
  hint: remove it; a later version has it
s.toml:9:1: step[2].confirm: not yet: confirmations
  hint: remove it; a later version has it
s.toml:11:1: step[3].on: not yet: acting at an event
  hint: remove it; a later version has it
s.toml:15:1: fault[0].on: not yet: faults at an event
  hint: remove it; a later version has it
s.toml:18:1: fault[1].on: not yet: faults at a durable point
  hint: remove it; a later version has it
s.toml:22:1: fault[2].on: not yet: faults at a file operation
  hint: remove it; a later version has it
s.toml:23:3: mcp: not yet: MCP servers
  hint: remove it; a later version has it
"#;
    assert_eq!(told(text), expected);
}

#[test]
fn a_text_that_is_no_toml_is_told_as_such() {
    let text = r#"seed = 1
seed = 2
[x
"#;
    let expected = r#"s.toml:4:1: this is not TOML: duplicate key
  hint: see https://toml.io for how values are written
s.toml:5:3: this is not TOML: unclosed table, expected `]`
  hint: see https://toml.io for how values are written
"#;
    assert_eq!(told(text), expected);
}
