//! A turn is the same however its model is reached: one scenario over each wire gives transcripts
//! that differ in nothing but what the wires cannot share.
//!
//! That is, precisely: when something happened, since a script inside the server has no network whose
//! latencies could be waited for; what stands in the line of a request to a model of the bytes that
//! were sent, its digest and the last message, which a log does not tell; and the digest of the disk,
//! on which those times stand. Who did something and in which order is compared for everybody alone,
//! because the order between two hosts is the network's.

use std::collections::BTreeMap;

use nexus3_sim::play;
use nexus3_sim::scenario::Scenario;
use regex::Regex;

const SCENARIO: &str = r#"
schema = 1
about  = "An agent thinks, speaks, uses tools and fails."
wire   = "WIRE"

[[model]]
thinks = ["Hm, ", "well."]
says   = ["I look ", "around. "]
asks   = [{ tool = "echo", args = { message = "a hill" } }, { tool = "echo", args = { message = "Ä" } }]
pause  = "100ms"
usage  = { input = 20, output = 8 }
fault  = { duplicate_tool_ids = true }
[[model]]
when   = "^Ä$"
says   = "There is a hill."
usage  = { input = 30, output = 4 }
[[model]]
fault  = { status = 429, retry_after = "2s" }
[[model]]
fault  = { refuse = true }
[[model]]
asks   = [{ tool = "echo" }]
fault  = { bad_arguments = true, split = 5 }
[[model]]
when   = "one JSON object"
says   = "I see"
finish = "length"
[[model]]
says   = ["One, ", "two, ", "three."]
fault  = { reset_after = 2 }
[[model]]
says   = ["Four, ", "five."]
fault  = { error_in_stream = true }
[[model]]
fault  = { status = 401 }
[[model]]
says   = ""
times  = 2

[[step]]
call   = "create_agent"
params = { agent_id = "scout" }
[[step]]
client = "alice"
watch  = { agent = "scout" }
[[step]]
call   = "send"
agent  = "scout"
params = { content = "Look", request_id = "r1" }
expect = { content = "I look around. There is a hill.", usage = { input_tokens = 50, output_tokens = 12 } }
[[step]]
call   = "send"
agent  = "scout"
params = { content = "Go on", request_id = "r2" }
expect = { content = "I see", finish_reason = "length" }
[[step]]
call   = "send"
agent  = "scout"
params = { content = "Count", request_id = "r3" }
expect_error = { code = -32000, data = { fault = "reset" } }
[[step]]
call   = "send"
agent  = "scout"
params = { content = "Count on", request_id = "r4" }
expect_error = { code = -32000, data = { fault = "error_in_stream" } }
[[step]]
call   = "send"
agent  = "scout"
params = { content = "And now?", request_id = "r5" }
expect_error = { code = -32000, data = { fault = "auth" } }
[[step]]
call   = "send"
agent  = "scout"
params = { content = "Anybody?", request_id = "r6" }
expect_error = { code = -32000, data = { fault = "empty" } }
[[step]]
call   = "get_messages"
agent  = "scout"
[[step]]
sleep  = "1s"

[expect]
agents      = ["scout"]
model_calls = { scout = 11 }
"#;

/// What everybody did, one after another.
type Told = BTreeMap<String, Vec<String>>;

fn told(wire: &str) -> Told {
    let scenario = Scenario::parse("x.toml", &SCENARIO.replace("WIRE", wire));
    let played = play::play(&scenario.expect("the scenario is sound"), 0);
    assert_eq!(played.failures, Vec::<String>::new(), "over {wire}:\n{}", played.transcript);
    let mut told = Told::new();
    for line in played.transcript.lines() {
        let line = Line::of(line);
        if !line.is_of_disk() {
            told.entry(line.who.to_owned()).or_default().push(line.shared());
        }
    }
    told
}

/// One line of a transcript, without its time.
struct Line<'a> {
    who: &'a str,
    what: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let (_time, rest) = line.trim_start().split_once("  ").expect("a line begins with a time");
        let (who, what) = rest.split_once(' ').expect("a line says who did it");
        Self { who, what: what.trim_start() }
    }

    fn is_of_disk(&self) -> bool {
        self.who == "disk"
    }

    /// What all wires have to tell alike.
    fn shared(&self) -> String {
        let own = match self.who {
            "model" => r#" #[0-9a-f]{8}(, last ".*")? →"#,
            _ if self.what.starts_with("⇠ thinking_ended") => r" after \d+ms$",
            _ => return self.what.to_owned(),
        };
        let own = Regex::new(own).expect("it is a regular expression");
        assert!(own.is_match(self.what), "nothing is filtered in vain: {}", self.what);
        own.replace(self.what, " …").into_owned()
    }
}

#[test]
fn a_scenario_is_the_same_over_every_wire() {
    let openai = told("openai");
    assert_eq!(told("script"), openai);
    assert_eq!(told("anthropic"), openai);
    assert_eq!(openai["model"].len(), 11);
    assert_eq!(
        openai["model"][..2],
        [
            "scout asks default: 2 messages … entry 1 with {\"duplicate_tool_ids\":true}",
            "scout asks default: 5 messages … entry 2",
        ]
    );
    let heard = openai["alice"].iter().filter(|line| line.starts_with("⇠ content_chunk"));
    assert!(heard.count() > 5, "the pieces of the answers are compared too: {openai:?}");
}
