//! The bookkeeping of agents, rule by rule.

use super::*;

pub(in crate::pool) fn id(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

/// Agents that are there, with their parents, numbered from 1.
pub(in crate::pool) fn registry_of(
    agents: &[(&'static str, Option<&str>)],
) -> Registry<&'static str> {
    let mut registry = Registry::new(Vec::new(), 1);
    for &(name, parent) in agents {
        let parent = parent.map(|parent| registry.find(&id(parent)).unwrap());
        let number = registry.reserve(&id(name), parent.as_ref()).unwrap();
        assert!(registry.arrive(number, name));
    }
    registry
}

/// boss → (a → (deep), b), and lone beside them.
fn family() -> Registry<&'static str> {
    registry_of(&[
        ("boss", None),
        ("a", Some("boss")),
        ("deep", Some("a")),
        ("b", Some("boss")),
        ("lone", None),
    ])
}

fn insert(registry: &mut Registry<&'static str>, name: &'static str) -> Result<(), Refused> {
    let number = registry.reserve(&id(name), None)?;
    assert!(registry.arrive(number, name));
    Ok(())
}

/// Destroys an agent; returns the names in the order in which they ended.
fn destroy(registry: &mut Registry<&'static str>, name: &str, children: Children) -> Vec<String> {
    let leaving = registry.start_leaving(&id(name), children);
    for Leaving { number, .. } in &leaving {
        registry.remove(*number);
    }
    leaving.into_iter().map(|leaving| leaving.id.to_string()).collect()
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
    assert_eq!(insert(&mut registry, "a"), Err(Refused::Taken));
    let lone = registry.find(&id("lone")).unwrap();
    let leaving = registry.start_leaving(&id("lone"), Children::Destroy);
    assert_eq!(registry.get(&id("lone")), None);
    assert_eq!(insert(&mut registry, "lone"), Err(Refused::Taken));
    assert_eq!(registry.reserve(&id("c"), Some(&lone)), Err(Refused::NoParent));
    registry.remove(leaving[0].number);
    assert_eq!(insert(&mut registry, "lone"), Ok(()));
    let refused = registry.reserve(&id("c"), Some(&lone));
    assert_eq!(refused, Err(Refused::NoParent), "the parent that was meant is gone");
}

#[test]
fn the_lowest_free_number_is_the_next_temporary_id() {
    let mut registry = Registry::new(Vec::new(), 1);
    for expected in [".1", ".2", ".3"] {
        assert_eq!(registry.free_temp_id(), id(expected));
        insert(&mut registry, expected).unwrap();
    }
    destroy(&mut registry, ".2", Children::Destroy);
    assert_eq!(registry.free_temp_id(), id(".2"));
}

#[test]
fn a_cascade_ends_the_agent_and_then_the_deepest_first() {
    let mut registry = family();
    let order = destroy(&mut registry, "boss", Children::Destroy);
    assert_eq!(order, ["boss", "deep", "a", "b"]);
    assert_eq!(destroy(&mut registry, "boss", Children::Destroy), [""; 0]);
    assert_eq!(names(&registry.list()), ["lone"]);
}

#[test]
fn without_a_cascade_the_children_stay_without_a_parent() {
    let mut registry = family();
    let leaving = registry.start_leaving(&id("a"), Children::Keep);
    assert_eq!(leaving.len(), 1);
    assert_eq!(registry.parent(&id("deep")), None, "nobody has a parent that is leaving");
    registry.remove(leaving[0].number);
    assert_eq!(registry.parent(&id("deep")), None);
    assert_eq!(registry.list()[0], listed("boss", None, 1));
}

#[test]
fn an_agent_that_could_not_be_destroyed_is_where_it_was() {
    let mut registry = family();
    let before = registry.list();
    for Leaving { number, .. } in registry.start_leaving(&id("boss"), Children::Destroy) {
        registry.stay(number);
    }
    assert_eq!(registry.list(), before);
}

#[test]
fn a_child_that_arrives_after_its_parent_was_destroyed_is_to_go() {
    let mut registry = family();
    let boss = registry.find(&id("boss")).unwrap();
    let late = registry.reserve(&id("late"), Some(&boss)).unwrap();
    assert_eq!(registry.get(&id("late")), None);
    assert_eq!(destroy(&mut registry, "boss", Children::Destroy).len(), 4);
    assert!(!registry.arrive(late, "late"));
    registry.remove(late);
    assert_eq!(names(&registry.list()), ["lone"]);
}

#[test]
fn dormant_agents_keep_their_id_and_family_and_come_back_after_their_ancestors() {
    let resident = |number, name: &str, parent: Option<&str>| Resident {
        number,
        id: id(name),
        parent: parent.map(id),
        depth: 0,
        exported: false,
    };
    let residents = vec![
        resident(3, "boss", None),
        resident(5, "a", Some("boss")),
        resident(6, "deep", Some("a")),
    ];
    let mut registry = Registry::new(residents, 9);
    assert_eq!(registry.list(), []);
    assert_eq!(insert(&mut registry, "a"), Err(Refused::Taken));
    assert_eq!(registry.dormant_line(&id("deep")), [3, 5, 6]);
    assert!(registry.arrive(3, "boss"));
    assert_eq!(registry.dormant_line(&id("deep")), [5, 6]);
    assert_eq!(registry.dormant_line(&id("boss")), [0; 0]);
    assert_eq!(registry.list(), [listed("boss", None, 1)]);
    assert_eq!(registry.parent_agent(5), Some("boss"));
    insert(&mut registry, "new").unwrap();
    assert_eq!(names(&registry.list()), ["boss", "new"]);
    assert_eq!(destroy(&mut registry, "boss", Children::Destroy), ["boss", "deep", "a"]);
}

#[test]
fn a_stopping_server_takes_no_new_agents() {
    let mut registry = family();
    registry.stop();
    assert_eq!(insert(&mut registry, "new"), Err(Refused::Stopping));
}
