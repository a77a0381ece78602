//! What holds for every page: it needs nothing else, whatever models say stays text, and it is bounded.

use std::sync::LazyLock;

use super::*;
use crate::play;
use crate::scenario::Scenario;

const HOSTILE: &str = r#"
schema = 1
about  = "</title><script>alert(1)</script> A model says what a page must not believe."
[[model]]
says = "</script><img src=x onerror=alert(2)><!--"
asks = [{ tool = "echo", args = { message = "<svg onload=alert(3)>" } }]
[[model]]
says = "Done & <b>done</b>."
[[step]]
call   = "create_agent"
params = { agent_id = "scout" }
[[step]]
client = "alice"
watch  = { agent = "scout" }
[[step]]
call   = "send"
agent  = "scout"
params = { content = "<iframe src='x'></iframe>" }
"#;

/// Played once: there is one simulation at a time in a process.
static PAGE: LazyLock<(Report, String)> = LazyLock::new(|| {
    let scenario = Scenario::parse("x.toml", HOSTILE).unwrap();
    let played = play::play_recorded(&scenario, 0, None);
    assert_eq!(played.failures, [""; 0]);
    let run = Run { about: scenario.about, ..Run::of(&played, &[]) };
    let report = Report { title: "<b>".to_owned(), runs: vec![run], ..Report::default() };
    let text = html(&report);
    (report, text)
});

/// The JSON in a page.
fn data(page: &str) -> &str {
    let (_, rest) = page.split_once("id=\"report\">").unwrap();
    rest.split_once("</script>").unwrap().0
}

#[test]
fn what_models_say_is_data_and_ends_no_element() {
    let (report, text) = &*PAGE;
    let data = data(text);
    assert!(!data.contains(['<', '>', '&']));
    let read: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(read, serde_json::to_value(report).unwrap(), "the data is all there");
    for said in ["onerror=alert(2)", "onload=alert(3)", "<iframe src='x'>", "<b>done</b>"] {
        assert!(read.to_string().contains(said), "{said} is told");
    }
    let markup = text.replace(data, "");
    for sign in ["onerror", "onload", "<img", "<iframe", "alert", "<b>"] {
        assert!(!markup.contains(sign), "{sign} is no markup");
    }
    assert_eq!(text.matches("<script").count(), 2, "the data and the page's own");
}

#[test]
fn a_page_needs_nothing_else() {
    let (_, text) = &*PAGE;
    let markup = text.replace(data(text), "").to_lowercase();
    for sign in
        ["http:", "https:", "//www", "src=", "href=\"", "<link", "@import", "url(", "fetch("]
    {
        assert!(!markup.contains(sign), "{sign} leads elsewhere");
    }
    let policy = "default-src 'none'; style-src 'sha256-";
    assert!(markup.contains(policy), "and may load nothing");
}

#[test]
fn the_script_puts_text_in_as_text() {
    let (_, text) = &*PAGE;
    let markup = text.replace(data(text), "");
    let ways = ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("];
    for way in ways.into_iter().chain(["setTimeout(", "setAttribute('style'", "setAttribute('on"]) {
        assert!(!markup.contains(way), "{way} could make markup of it");
    }
}

#[test]
fn a_lane_tells_what_its_owner_did() {
    let (report, _) = &*PAGE;
    let run = &report.runs[0];
    let names: Vec<&str> = run.lanes.iter().map(|lane| lane.name.as_str()).collect();
    assert_eq!(names, ["client", "alice", "server", "scout", "model", "machine"]);
    let told = |lane: usize| -> Vec<String> {
        let items = run.items.iter().filter(|item| item.lane == lane && item.kind != Kind::Live);
        let ends = |item: &Item| if item.end.is_some() { " … " } else { "" };
        items.map(|item| format!("{:?} {}{}", item.kind, item.title, ends(item))).collect()
    };
    let turn = "Turn <iframe src='x'></iframe> … ";
    let expected = [
        "Agent created",
        turn,
        "Model “</script><img src=x onerror=alert(2)><!--” calls echo … ",
        "Batch batch_started",
        "Tool echo … ",
        "Batch batch_completed",
        "Model “Done & <b>done</b>.” … ",
    ];
    assert_eq!(told(3), expected);
    assert_eq!(told(0), ["Call create_agent … ", "Call send … "]);
    assert_eq!(told(4), ["Model scout: entry 1", "Model scout: entry 2"]);
    let tool = run.items.iter().find(|item| item.kind == Kind::Tool).unwrap();
    assert_eq!((tool.to, tool.bad), (Some(5), false));
}

#[test]
fn what_failed_comes_first_and_a_page_is_bounded() {
    let (report, _) = &*PAGE;
    let [good] = &report.runs[..] else { panic!("one run was played") };
    let bytes = serde_json::to_string(good).unwrap().len();
    let failed = Run { good: false, failures: vec!["no".to_owned()], ..good.clone() };
    let runs = vec![good.clone(), good.clone(), failed];
    let bounded = Report { runs, ..Report::default() }.bounded_to(bytes * 5 / 2);
    let told: Vec<(bool, bool)> =
        bounded.runs.iter().map(|run| (run.good, run.items.is_empty())).collect();
    assert_eq!(told, [(false, false), (true, false), (true, true)]);
    assert_eq!(bounded.runs[2].items_left_out, good.items.len());
    assert_eq!(bounded.left_out.len(), 1, "and says so");
}
