//! What chance keeps: nothing repeats, within a use or across uses. Never judges how random it is.

use std::collections::BTreeSet;

use nexus3::world::{Use, World};

const USES: [Use; 6] =
    [Use::AgentId, Use::RequestId, Use::Token, Use::ErrorId, Use::Jitter, Use::TempName];

pub async fn chance(world: &World) {
    nothing_repeats(world);
    hex_has_the_asked_length(world);
    fractions_fill_their_range(world);
}

fn nothing_repeats(world: &World) {
    let mut seen = BTreeSet::new();
    for round in 0..100 {
        for what_for in USES {
            let mut bytes = [0; 16];
            world.chance.fill(what_for, &mut bytes);
            assert!(seen.insert(bytes), "{what_for:?} repeats a number in round {round}");
        }
    }
    world.chance.fill(Use::Token, &mut []);
}

fn hex_has_the_asked_length(world: &World) {
    for digits in [0, 1, 2, 7, 8, 16, 63, 64] {
        let text = world.chance.hex(Use::Token, digits);
        assert_eq!(text.len(), digits, "`{text}` has the asked number of digits");
        let plain = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        assert!(text.chars().all(plain), "`{text}` is lower-case hexadecimal");
    }
}

fn fractions_fill_their_range(world: &World) {
    let fractions: Vec<f64> = (0..1000).map(|_| world.chance.fraction(Use::Jitter)).collect();
    for fraction in &fractions {
        assert!((0.0..1.0).contains(fraction), "{fraction} lies in 0.0..1.0");
    }
    // A true source misses one tenth of the range in a thousand draws once in 10^45 runs.
    for tenth in 0..10_u8 {
        let from = f64::from(tenth) / 10.0;
        let hit = fractions.iter().any(|fraction| (from..from + 0.1).contains(fraction));
        assert!(hit, "a thousand fractions reach the tenth from {from}");
    }
}
