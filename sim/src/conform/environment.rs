//! What an environment keeps: the three views of it agree. Never says what has to be in it.

use nexus3::world::World;

pub async fn environment(world: &World) {
    let environment = &world.environment;
    let vars = environment.vars();
    for pair in vars.windows(2) {
        assert!(pair[0].0 < pair[1].0, "variables are sorted by name, each once: {pair:?}");
    }
    for (name, value) in &vars {
        assert_eq!(environment.var(name).as_ref(), Some(value), "`{name}` is the same alone");
    }
    let unset = "NEXUS3_A_NAME_THAT_NOBODY_SETS";
    assert_eq!(environment.var(unset), None, "an unset variable is none");

    let directory = environment.current_dir().expect("the working directory exists");
    assert!(directory.is_absolute(), "the working directory {} is absolute", directory.display());
    if let Some(home) = environment.home_dir() {
        assert!(home.is_absolute(), "the home directory {} is absolute", home.display());
    }
    assert_ne!(environment.process_id(), 0, "a process has a number");
    assert_eq!(environment.process_id(), environment.process_id(), "the number stays");
}
