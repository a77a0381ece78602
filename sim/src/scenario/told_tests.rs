//! What is told about a scenario that is wrong: everything at once, at its place, in our words.

use super::Scenario;

/// The problems of a file that starts well; its own lines count from 3.
pub(super) fn told(rest: &str) -> String {
    let text = format!("schema = 1\nabout = \"x\"\n{rest}");
    let problems = Scenario::parse("s.toml", &text).unwrap_err();
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}

#[test]
fn every_fault_of_form_is_told_at_once() {
    assert_eq!(told(MALFORMED), MALFORMED_TOLD);
}

const MALFORMED: &str = r#"sede = 7
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

const MALFORMED_TOLD: &str = r#"s.toml:3:1: sede: unknown key
  hint: did you mean `seed`?
s.toml:4:8: seed: expected a whole number from 0, found -1
  hint: choose a number in this range
s.toml:5:9: limit: expected a time, found a string "5 minutes"
  hint: write a number and one of ms, s, m, h, such as "20ms" or "1.5s", at most a year
s.toml:6:8: wire: expected one of "openai", "anthropic", "script", found a string "opneai"
  hint: did you mean "openai"?
s.toml:7:10: serve[0]: expected one of "--allow-yolo", "--no-auth", "--resume", "--verbose", "--raw-log", "--record=/home/nexus/.nexus3/recording.toml", "--record", "/home/nexus/.nexus3/recording.toml", found a string "--alow-yolo"
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

#[test]
fn a_value_that_json_lacks_is_refused() {
    let text = "seed = 99999999999999999999999
[env]
X = 1979-05-27
[config]
turn_timeout = inf
";
    let expected = "s.toml:3:8: seed: this number is too large
  hint: use at most 64 bits
s.toml:5:5: env.X: no key of a scenario takes a date
  hint: write it between quotes
s.toml:7:16: config.turn_timeout: no key of a scenario takes this number
  hint: use a finite number
";
    assert_eq!(told(text), expected);
}

#[test]
fn a_file_is_one_thing_at_an_absolute_path() {
    let text = r#"[files]
"notes" = "x"
"/a/../b" = "x"
"/c" = { dir = true, text = "x" }
"/d" = { remove = true, mode = 0o700 }
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
s.toml:7:25: files."/d".mode: belongs to a `text`, a `base64` or a `dir`
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
fn the_server_works_in_the_project() {
    for cwd in ["/a", "project", "/project/../a"] {
        let expected = "s.toml:3:7: cwd: expected a directory in /project\n  \
                        hint: write it like \"/project/tools\"\n";
        assert_eq!(told(&format!("cwd = \"{cwd}\"\n")), expected);
    }
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
    let expected = "s.toml:5:23: in [config]: providers.p.models.m.id: expected a string, found 3
  hint: name the model as its provider does
";
    assert_eq!(told(text), expected);
}

#[test]
fn a_text_that_is_no_toml_is_told_as_such() {
    let text = "seed = 1
seed = 2
[x
";
    let expected = "s.toml:4:1: this is not TOML: duplicate key
  hint: see https://toml.io for how values are written
s.toml:5:3: this is not TOML: unclosed table, expected `]`
  hint: see https://toml.io for how values are written
";
    assert_eq!(told(text), expected);
}

#[test]
fn what_needs_a_network_is_not_played_over_pipes() {
    let file = "lane = \"pipes\"\n[[fault]]\nat = \"1s\"\nkind = \"crash\"\n[[fault]]\nat = \"1s\"\n\
                kind = \"power_loss\"\n";
    let expected = "s.toml:7:1: fault[1]: nothing is cut, kept back or lost over pipes\n  \
                    hint: leave out `lane`, or this fault\n";
    assert_eq!(told(file), expected);
}
