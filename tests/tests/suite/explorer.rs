//! The decision core keeps its promises in every interleaving, and a core with a bug is found out.

use epitome_tests::explorer::{Bug, explore, wander};

#[test]
fn every_interleaving_of_a_few_steps_keeps_the_promises() {
    let walk = explore(5, None);
    assert!(walk.broken.is_none(), "{:?}", walk.broken);
    assert!(walk.steps > 50_000, "{}", walk.steps);
}

#[test]
fn long_walks_keep_the_promises() {
    let walk = wander(200, 400, None);
    assert!(walk.broken.is_none(), "{:?}", walk.broken);
}

#[test]
fn every_planted_bug_is_found() {
    for bug in Bug::ALL {
        let found = explore(5, Some(bug)).broken.or_else(|| wander(5_000, 200, Some(bug)).broken);
        assert_eq!(found.map(|(broken, _)| broken), Some(bug.breaks()), "{bug:?}");
    }
}
