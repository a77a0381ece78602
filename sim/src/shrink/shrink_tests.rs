//! What is left of failing scenarios, and that it is the same each time.

use super::*;

/// Fails as long as all of these texts are in the file.
struct Needs(Vec<&'static str>);

impl Judge for Needs {
    fn fails(&mut self, candidate: &Document) -> Option<Document> {
        let text = candidate.text();
        self.0.iter().all(|needed| text.contains(needed)).then(|| candidate.clone())
    }
}

const LARGE: &str = r#"
schema = 1
about = "Much happens."
seed = 7
limit = "5m"
[config]
max_tool_iterations = 10
[files]
"/project/a" = "some words"
"/project/b" = "more words"
[[model]]
agent = "boss"
says = ["one", "two", "three"]
[[model]]
agent = "w1"
says = "four"
times = 90
[[step]]
client = "alice"
call = "create_agent"
params = { agent_id = "boss" }
[[step]]
call = "create_agent"
params = { agent_id = "w1", preset = "trusted" }
[[step]]
name = "go"
client = "alice"
call = "send"
agent = "boss"
params = { content = "Please do all of this", request_id = "r1" }
background = true
[[step]]
after = "go"
sleep = "2345ms"
[[fault]]
at = "1500ms"
kind = "crash"
for = "500ms"
"#;

fn shrunk(needs: &[&'static str]) -> String {
    let document = Document::parse(LARGE).unwrap();
    shrink(document, &mut Needs(needs.to_vec())).text()
}

#[test]
fn only_what_it_fails_by_is_left() {
    assert_eq!(
        shrunk(&["kind = \"crash\""]),
        "schema = 1\nabout = \"Much happens.\"\nseed = 7\n\n[[fault]]\nkind = \"crash\"\n"
    );
    assert_eq!(
        shrunk(&["sleep", "\"boss\""]),
        "schema = 1\nabout = \"Much happens.\"\nseed = 7\n\n[[model]]\nagent = \"boss\"\n\n\
         [[step]]\nsleep = \"1ms\"\n"
    );
}

#[test]
fn texts_numbers_and_times_get_simpler() {
    let small = shrunk(&["content = ", "times = ", "sleep = ", "\"/project/a\" = ", "\"three\""]);
    for simple in ["content = \"\"", "times = 1", "sleep = \"1ms\"", "\"/project/a\" = \"\""] {
        assert!(small.contains(simple), "{simple} in {small}");
    }
    assert!(small.contains("says = [\"three\"]"), "{small}");
}

#[test]
fn the_same_file_comes_to_the_same_end() {
    let once = shrunk(&["r1", "w1", "crash"]);
    assert_eq!(shrunk(&["r1", "w1", "crash"]), once);
    assert_eq!(
        Size::of(&Document::parse(&once).unwrap()).lines,
        once.lines().filter(|line| !line.is_empty()).count()
    );
}

#[test]
fn sizes_tell_steps_and_faults_apart_from_the_rest() {
    let document = Document::parse(LARGE).unwrap();
    let size = Size::of(&document);
    assert_eq!(size.steps_and_faults, 21);
    assert!(size.lines > size.steps_and_faults);
}

/// Fails as long as a text is in the file; remembers what it was asked about.
struct Remembers(Vec<String>);

impl Judge for Remembers {
    fn fails(&mut self, candidate: &Document) -> Option<Document> {
        self.0.push(candidate.text());
        candidate.text().contains("sleep").then(|| candidate.clone())
    }
}

#[test]
fn faults_that_have_no_part_in_it_go_first() {
    let mut judge = Remembers(Vec::new());
    shrink(Document::parse(LARGE).unwrap(), &mut judge);
    assert!(judge.0.iter().all(|asked| !asked.contains("[[fault]]")));
}

#[test]
fn a_file_is_played_over_pipes_only_while_it_is_made_small() {
    let mut judge = Remembers(Vec::new());
    let small = shrink(Document::parse(LARGE).unwrap(), &mut judge);
    assert!(judge.0.iter().any(|asked| asked.contains("lane = \"pipes\"")));
    assert!(!small.text().contains("lane"), "it fails without as well");
    let own = LARGE.replace("limit = \"5m\"", "lane = \"pipes\"");
    let small = shrink(Document::parse(&own).unwrap(), &mut judge);
    assert!(small.text().contains("lane"), "it is its own");
}
