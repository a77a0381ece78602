//! The bookkeeping of agents, rule by rule.

use super::*;

fn id(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

/// boss → (a → (deep), b), and lone beside them.
fn family() -> Registry<&'static str> {
    let mut registry = Registry::default();
    for (name, parent) in [
        ("boss", None),
        ("a", Some("boss")),
        ("deep", Some("a")),
        ("b", Some("boss")),
        ("lone", None),
    ] {
        let parent = parent.map(|parent| registry.find(&id(parent)).unwrap());
        registry.insert(&id(name), parent.as_ref(), || name).unwrap();
    }
    registry
}

fn listed(
    agent: &'static str,
    parent: Option<AgentId>,
    child_count: usize,
) -> Listed<&'static str> {
    Listed { agent, family: Family { parent, child_count } }
}

fn names(listed: &[Listed<&'static str>]) -> Vec<&'static str> {
    listed.iter().map(|listed| listed.agent).collect()
}

#[test]
fn agents_are_listed_in_order_of_creation_with_their_family() {
    let registry = family();
    assert_eq!(names(&registry.list()), ["boss", "a", "deep", "b", "lone"]);
    let boss = listed("boss", None, 2);
    let a = listed("a", Some(id("boss")), 1);
    assert_eq!(registry.list()[..2], [boss, a]);
}

#[test]
fn an_agent_sees_itself_its_descendants_and_its_parent() {
    let registry = family();
    assert_eq!(names(&registry.list_for(&id("a"))), ["boss", "a", "deep"]);
    assert_eq!(names(&registry.list_for(&id("boss"))), ["boss", "a", "deep", "b"]);
    assert_eq!(names(&registry.list_for(&id("lone"))), ["lone"]);
    assert!(registry.is_within(&id("deep"), &id("boss")));
    assert!(!registry.is_within(&id("boss"), &id("deep")));
}

#[test]
fn ids_are_taken_until_their_agent_has_left() {
    let mut registry = family();
    assert_eq!(registry.insert(&id("a"), None, || "a"), Err(Refused::Taken));
    let lone = registry.find(&id("lone")).unwrap();
    registry.start_leaving(&id("lone"), Children::Destroy);
    assert_eq!(registry.get(&id("lone")), None);
    assert_eq!(registry.insert(&id("lone"), None, || "lone"), Err(Refused::Taken));
    assert_eq!(registry.insert(&id("c"), Some(&lone), || "c"), Err(Refused::NoParent));
    registry.remove(&id("lone"));
    assert_eq!(registry.insert(&id("lone"), None, || "lone"), Ok("lone"));
    let refused = registry.insert(&id("c"), Some(&lone), || "c");
    assert_eq!(refused, Err(Refused::NoParent), "the parent that was meant is gone");
}

#[test]
fn the_lowest_free_number_is_the_next_temporary_id() {
    let mut registry = Registry::default();
    for expected in [".1", ".2", ".3"] {
        let next = registry.free_temp_id();
        assert_eq!(next, id(expected));
        registry.insert(&next, None, || ()).unwrap();
    }
    registry.start_leaving(&id(".2"), Children::Destroy);
    registry.remove(&id(".2"));
    assert_eq!(registry.free_temp_id(), id(".2"));
}

#[test]
fn a_cascade_ends_the_agent_and_then_the_deepest_first() {
    let mut registry = family();
    let order = |leaving: Vec<(AgentId, _)>| {
        leaving.into_iter().map(|(id, _)| id.to_string()).collect::<Vec<_>>()
    };
    let leaving = registry.start_leaving(&id("boss"), Children::Destroy);
    assert_eq!(order(leaving), ["boss", "deep", "a", "b"]);
    assert_eq!(order(registry.start_leaving(&id("boss"), Children::Destroy)), [""; 0]);
    for name in ["boss", "deep", "a", "b"] {
        registry.remove(&id(name));
    }
    assert_eq!(names(&registry.list()), ["lone"]);
}

#[test]
fn without_a_cascade_the_children_stay_without_a_parent() {
    let mut registry = family();
    assert_eq!(registry.start_leaving(&id("a"), Children::Keep).len(), 1);
    assert_eq!(registry.parent(&id("deep")), None);
    assert_eq!(registry.list()[0], listed("boss", None, 1));
}

#[test]
fn a_wait_that_closes_a_circle_is_refused_with_its_chain() {
    let mut registry: Registry<()> = Registry::default();
    let [a, b, c] = ["a", "b", "c"].map(id);
    assert_eq!(registry.start_waiting(&a, &b), Ok(()));
    assert_eq!(registry.start_waiting(&b, &c), Ok(()));
    assert_eq!(registry.start_waiting(&b, &c), Ok(()));
    let chain = vec![c.clone(), a.clone(), b.clone(), c.clone()];
    assert_eq!(registry.start_waiting(&c, &a), Err(chain));
    assert_eq!(registry.start_waiting(&a, &a), Err(vec![a.clone(), a.clone()]));
    registry.end_waiting(&b, &c);
    assert!(registry.start_waiting(&c, &a).is_err(), "the second wait still holds");
    registry.end_waiting(&b, &c);
    assert_eq!(registry.start_waiting(&c, &a), Ok(()));
}

#[test]
fn a_stopping_server_takes_no_new_agents() {
    let mut registry = family();
    registry.stop();
    assert_eq!(registry.insert(&id("new"), None, || "new"), Err(Refused::Stopping));
}
