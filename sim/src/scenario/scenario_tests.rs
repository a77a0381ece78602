//! What a scenario file may say, that the schema says the same, and that no text breaks the reader.

use jsonschema::Validator;
use nexus3::provider::script::{Chunks, Times};
use nexus3::world::Exit;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The binding example of the contract.
const EXAMPLE: &str = include_str!("fixtures/example.toml");

fn told(text: &str) -> Vec<String> {
    let problems = Scenario::parse("s.toml", text).err().unwrap_or_default();
    problems.iter().map(ToString::to_string).collect()
}

fn json_of(text: &str) -> Value {
    let problems = Problems::new("s.toml", text);
    let root = place::parse(&problems).unwrap();
    Place::root(&root, &problems).json()
}

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

#[test]
fn nothing_of_the_example_is_left_for_later() {
    assert_eq!(told(EXAMPLE), [""; 0]);
}

#[test]
fn the_example_becomes_what_it_says() {
    let scenario = Scenario::parse("s.toml", EXAMPLE).unwrap();
    assert_eq!((scenario.seed, scenario.limit, scenario.wire), (7, time("5m"), Wire::Openai));
    assert_eq!(scenario.clients(), BTreeSet::from(["alice", "bob"]));
    let text = |text: &str| FileSpec::Text { text: text.to_owned(), repeat: 1, mode: None };
    let files = [
        ("/project/empty", FileSpec::Directory { mode: None }),
        ("/project/link", FileSpec::Symlink("/etc/passwd".into())),
        ("/project/notes.txt", text("three apples")),
    ];
    assert_eq!(scenario.files, files.map(|(path, spec)| (path.into(), spec)).into());
    assert_eq!(scenario.models[2].says, Some(Chunks::One("3".to_owned())));
    assert_eq!(scenario.models[2].times, Times::Exactly(1));
    let program = Program {
        run: Run::Exactly(vec!["make".to_owned(), "test".to_owned()]),
        times: Times::Always,
        stdout: "ok\n".to_owned(),
        stderr: String::new(),
        exit: Exit::Code(0),
        takes: Takes::Time(time("3s")),
        writes: Files::from([("/project/out.txt".into(), text("done"))]),
    };
    assert_eq!(scenario.programs, [program]);
    let crash = Fault {
        line: scenario.faults[0].line,
        trigger: Trigger::At(time("1500ms")),
        kind: FaultKind::Crash,
        target: Target::Host(SERVER.to_owned()),
        lasts: Some(time("500ms")),
    };
    assert_eq!(scenario.faults, [crash]);
    let expect = Expect {
        files: Files::from([("/project/notes.txt".into(), text("three apples"))]),
        agents: Some(vec!["boss".to_owned(), "w1".to_owned()]),
        model_calls: BTreeMap::from([("w1".to_owned(), 1)]),
        ignore: [(Invariant::Answers, "the crash cuts alice's connection".to_owned())].into(),
    };
    assert_eq!(scenario.expect, expect);
}

#[test]
fn steps_become_actions_with_their_time() {
    let text = "schema = 1\nabout = \"x\"\n\
        [[step]]\nname = \"go\"\ncall = \"list_agents\"\nbackground = true\nrepeat = 3\n\
        token = false\nsave = { first = \"/agents/0\" }\n\
        [[step]]\nafter = \"go\"\nclient = \"bob\"\nraw = \"GET\"\nexpect_http = 400\n\
        [[step]]\nat = \"1s\"\nstop = \"SIGTERM\"\n\
        [[step]]\nstart = true\nserve = [\"--no-auth\"]\n";
    let step = |line, action| Step {
        line,
        name: None,
        client: "client".to_owned(),
        when: When::AfterPrevious,
        repeat: 1,
        ground: Ground::Fore,
        action,
    };
    let call = Call {
        method: "list_agents".to_owned(),
        agent: None,
        params: None,
        headers: BTreeMap::new(),
        token: Token::Without,
        expect: None,
        expect_http: None,
        save: [("first".to_owned(), "/agents/0".to_owned())].into(),
    };
    let raw = Raw { bytes: "GET".to_owned(), expect_http: Some(400), expect_body: None };
    let steps = [
        Step {
            name: Some("go".to_owned()),
            repeat: 3,
            ground: Ground::Back,
            ..step(3, Action::Call(call))
        },
        Step {
            client: "bob".to_owned(),
            when: When::After("go".to_owned()),
            ..step(10, Action::Raw(raw))
        },
        Step { when: When::At(time("1s")), ..step(15, Action::Stop(Signal::Term)) },
        step(18, Action::Start { serve: Some(vec![ServeFlag::NoAuth]) }),
    ];
    assert_eq!(Scenario::parse("s.toml", text).unwrap().steps, steps);
}

#[test]
fn the_first_scenario_has_no_problems() {
    assert_eq!(told(&first("greet")), [""; 0]);
    assert_eq!(told(&first("two\nlines = 3")), [""; 0]);
    let line = "# greet: a first scenario. Run it with `nexus3-sim run`; all keys are in \
                `nexus3-sim schema`.";
    assert_eq!(first("greet").lines().next(), Some(line));
}

#[test]
fn models_are_found_where_the_run_has_them() {
    let scenario = Scenario::parse("s.toml", &first("x")).unwrap();
    let sim = |wire: &str, base_url: &str| {
        let provider = json!({
            "type": wire,
            "auth_method": "none",
            "models": { "default": { "id": "default" } },
            "base_url": base_url,
            "allow_insecure_http": true,
            "headers": { "x-nexus-agent": "${agent_id}" },
        });
        json!({ "network": { "allow_private": true }, "providers": { "sim": provider } })
    };
    let root = "http://model:1";
    assert_eq!(scenario.config_json(root), sim("openai", "http://model:1/v1"));
    let scenario = Scenario { wire: Wire::Anthropic, ..scenario };
    assert_eq!(scenario.config_json(root), sim("anthropic", root));
}

fn validator() -> Validator {
    jsonschema::validator_for(&schema()).unwrap()
}

#[test]
fn the_schema_takes_what_the_reader_takes() {
    let validator = validator();
    for text in [EXAMPLE, EXAMPLE, &first("x")] {
        let errors: Vec<_> =
            validator.iter_errors(&json_of(text)).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0]);
    }
}

#[test]
fn schema_and_reader_agree_on_unknown_keys() {
    let validator = validator();
    for (text, path) in [
        ("odd = 1", "odd"),
        ("[files]\n\"/x\" = { dir = true, odd = 1 }", "files.\"/x\".odd"),
        ("[[model]]\nsays = \"x\"\nodd = 1", "model[0].odd"),
        ("[[model]]\nfault = { refuse = true, odd = 1 }", "model[0].fault.odd"),
        ("[[model]]\nasks = [{ tool = \"t\", odd = 1 }]", "model[0].asks[0].odd"),
        (
            "[[model]]\nsays = \"x\"\nusage = { input = 1, output = 1, odd = 1 }",
            "model[0].usage.odd",
        ),
        ("[[program]]\nrun = \"x\"\nodd = 1", "program[0].odd"),
        ("[[step]]\nsleep = \"1s\"\nodd = 1", "step[0].odd"),
        ("[[step]]\nwatch = { odd = 1 }", "step[0].watch.odd"),
        ("[[step]]\nconfirm = { tool = \"t\", decision = \"d\", odd = 1 }", "step[0].confirm.odd"),
        ("[[fault]]\nkind = \"crash\"\nat = \"1s\"\nodd = 1", "fault[0].odd"),
        ("[expect]\nodd = 1", "expect.odd"),
        (
            "[expect]\nignore = [{ invariant = \"once\", reason = \"x\", odd = 1 }]",
            "expect.ignore[0].odd",
        ),
        ("[config]\nodd = 1", "in [config]: odd"),
        ("[config.server]\nodd = 1", "in [config]: server.odd"),
    ] {
        let text = format!("schema = 1\nabout = \"x\"\n{text}");
        assert!(!validator.is_valid(&json_of(&text)), "{text}");
        let problems = Scenario::parse("s.toml", &text).unwrap_err();
        let messages: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
        let unknown = format!("{path}: unknown key");
        assert!(messages.contains(&unknown), "{messages:?} tells of {path}");
        let known = text.lines().filter(|line| *line != "odd = 1").collect::<Vec<_>>().join("\n");
        let known = known.replace(", odd = 1", "").replace("{ odd = 1 }", "{}");
        assert!(validator.is_valid(&json_of(&known)), "{known}");
    }
}

/// Reads a text and checks that whatever is told lies inside it.
fn reads_safely(text: &str) {
    let lines: Vec<_> = text.split('\n').collect();
    for problem in Scenario::parse("s.toml", text).err().unwrap_or_default() {
        let at = problem.position.expect("a file has places");
        let line = lines.get(at.line - 1).expect("the line is in the text");
        assert!((1..=line.chars().count() + 1).contains(&at.column), "{problem}");
        assert!(!problem.message.is_empty() && !problem.hint.is_empty(), "{problem}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "(?s).*") {
        reads_safely(&text);
    }

    #[test]
    fn no_cut_of_a_scenario_breaks_the_reader(
        cut in (0..EXAMPLE.len(), 0..40_usize),
        put in "[a-z\"=\\[\\]{}$. 0-9\n-]{0,6}",
    ) {
        let start = EXAMPLE.floor_char_boundary(cut.0);
        let end = EXAMPLE.floor_char_boundary((start + cut.1).min(EXAMPLE.len()));
        reads_safely(&format!("{}{put}{}", &EXAMPLE[..start], &EXAMPLE[end..]));
    }

    /// Values of the wrong type where the example has others.
    #[test]
    fn no_other_value_breaks_the_reader(
        line in 0..EXAMPLE.lines().count(),
        value in prop::sample::select(vec![
            "1", "-1", "1.5", "true", "false", "\"x\"", "\"re:(\"", "[]", "{}", "[1]", "{ x = 1 }",
            "inf", "1979-05-27", "\"${\"", "[{}]", "\"9999h\"", "[\"server\", \"server\"]",
        ]),
    ) {
        let replaced = EXAMPLE.lines().enumerate().map(|(index, text)| match text.split_once('=') {
            Some((key, _)) if index == line => format!("{key}= {value}\n"),
            Some(_) | None => format!("{text}\n"),
        });
        reads_safely(&replaced.collect::<String>());
    }
}
