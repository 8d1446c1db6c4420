//! Which response answers which call, where ids are missing on one side or on both.

use std::collections::{HashMap, HashSet, VecDeque};

use super::UNNAMED;
use super::turn::{Data, Speaker, Turn};

/// Where a part stands: the turn, and the part in it.
type Place = (usize, usize);

/// Gives every call and every response an id, so that the two of a pair have the same one.
///
/// A response with an id answers the open call with that id, else the first open call of its name that has no
/// id; a response without one answers the first open call of its name. Calls are open until the model calls
/// again after somebody else spoke. An id is taken from whichever side has one. What stays alone gets an id of
/// its own, and so do pairs without any.
pub(super) fn pair(turns: &mut [Turn<'_>]) {
    let mut open = Open::default();
    let mut unnamed = 0_u64;
    let mut user_spoke = false;
    let mut given = HashSet::new();
    for at in 0..turns.len() {
        let Some(turn) = turns.get(at) else { break };
        let speaker = turn.speaker;
        for part in 0..turn.parts.len() {
            match (speaker, name_and_id(turns, (at, part))) {
                (Speaker::Model, Some((true, name, id))) => {
                    if std::mem::take(&mut user_spoke) {
                        open = Open::default();
                    }
                    open.insert((at, part), name, id);
                }
                (Speaker::User, Some((false, name, id))) => {
                    let call = open.answer(&name, &id);
                    let call_id = call.and_then(|call| name_and_id(turns, call)).map(|(_, _, id)| id);
                    let id = match call_id {
                        Some(call_id) if !call_id.is_empty() => call_id,
                        // A call that got its id from a response is answered by no other one.
                        Some(_) if !id.is_empty() => {
                            given.insert(id.clone());
                            id
                        }
                        None if !id.is_empty() && !given.contains(&id) => id,
                        _ => fresh(&mut unnamed),
                    };
                    if let Some(call) = call {
                        set_id(turns, call, &id);
                    }
                    set_id(turns, (at, part), &id);
                }
                _ => {}
            }
        }
        user_spoke |= speaker == Speaker::User;
    }
    for at in 0..turns.len() {
        for part in 0..turns.get(at).map_or(0, |turn| turn.parts.len()) {
            if name_and_id(turns, (at, part)).is_some_and(|(_, _, id)| id.is_empty()) {
                let id = fresh(&mut unnamed);
                set_id(turns, (at, part), &id);
            }
        }
    }
}

fn fresh(unnamed: &mut u64) -> String {
    *unnamed += 1;
    format!("{UNNAMED}{unnamed}")
}

/// Whether the part is a call, with its name and its id; nothing for what is neither call nor response.
fn name_and_id(turns: &[Turn<'_>], (turn, part): Place) -> Option<(bool, String, String)> {
    match &turns.get(turn)?.parts.get(part)?.data {
        Data::Call { id, name, .. } => Some((true, name.clone(), id.clone())),
        Data::Response(response) => Some((false, response.name.clone(), response.id.clone())),
        _ => None,
    }
}

fn set_id(turns: &mut [Turn<'_>], (turn, part): Place, new: &str) {
    match turns.get_mut(turn).and_then(|turn| turn.parts.get_mut(part)).map(|part| &mut part.data) {
        Some(Data::Call { id, .. }) => new.clone_into(id),
        Some(Data::Response(response)) => new.clone_into(&mut response.id),
        _ => {}
    }
}

/// The calls that wait for an answer.
#[derive(Default)]
struct Open {
    by_id: HashMap<String, VecDeque<Place>>,
    /// Calls of each name, those without an id first looked for.
    without_id: HashMap<String, VecDeque<Place>>,
    with_id: HashMap<String, VecDeque<Place>>,
    answered: HashSet<Place>,
}

impl Open {
    fn insert(&mut self, place: Place, name: String, id: String) {
        if id.is_empty() {
            self.without_id.entry(name).or_default().push_back(place);
        } else {
            self.by_id.entry(id).or_default().push_back(place);
            self.with_id.entry(name).or_default().push_back(place);
        }
    }

    fn answer(&mut self, name: &str, id: &str) -> Option<Place> {
        let answered = &mut self.answered;
        let mut next = |calls: Option<&mut VecDeque<Place>>| {
            let calls = calls?;
            while let Some(place) = calls.pop_front() {
                if answered.insert(place) {
                    return Some(place);
                }
            }
            None
        };
        let by_id = if id.is_empty() { None } else { next(self.by_id.get_mut(id)) };
        let by_name = by_id.or_else(|| next(self.without_id.get_mut(name)));
        by_name.or_else(|| if id.is_empty() { next(self.with_id.get_mut(name)) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Source;

    /// Contents written short: `m` or `u`, then parts as `c:name:id` and `r:name:id`.
    fn ids(contents: &[(&str, &[&str])]) -> Vec<String> {
        let content = |(role, parts): &(&str, &[&str])| {
            let part = |short: &&str| {
                let fields: Vec<&str> = short.split(':').collect();
                let kind = if fields[0] == "c" { "functionCall" } else { "functionResponse" };
                let id =
                    if fields[2].is_empty() { String::new() } else { format!(",\"id\":\"{}\"", fields[2]) };
                format!("{{\"{kind}\":{{\"name\":\"{}\"{id}}}}}", fields[1])
            };
            let parts: Vec<String> = parts.iter().map(part).collect();
            let role = if *role == "m" { "model" } else { "user" };
            format!("{{\"role\":\"{role}\",\"parts\":[{}]}}", parts.join(","))
        };
        let json = format!("[{}]", contents.iter().map(content).collect::<Vec<_>>().join(","));
        let source = Source::small(json.as_bytes());
        let mut turns: Vec<Turn<'_>> =
            source.whole().elements().map(|element| Turn::of_content(element, 0).unwrap()).collect();
        pair(&mut turns);
        let places =
            turns.iter().enumerate().flat_map(|(at, turn)| (0..turn.parts.len()).map(move |part| (at, part)));
        places.map(|place| name_and_id(&turns, place).unwrap().2).collect()
    }

    #[test]
    fn ids_are_taken_from_whichever_side_has_one() {
        let both: &[&str] = &["c:f:a", "c:f:b"];
        assert_eq!(ids(&[("m", both), ("u", &["r:f:b", "r:f:a"])]), ["a", "b", "b", "a"]);
        assert_eq!(ids(&[("m", both), ("u", &["r:f:", "r:f:"])]), ["a", "b", "a", "b"]);
        assert_eq!(ids(&[("m", &["c:f:", "c:g:"]), ("u", &["r:g:y", "r:f:x"])]), ["x", "y", "y", "x"]);
        let numbered = ["unnamed_call_1", "unnamed_call_2", "unnamed_call_1", "unnamed_call_2"];
        assert_eq!(ids(&[("m", &["c:f:", "c:f:"]), ("u", &["r:f:", "r:f:"])]), numbered);
    }

    #[test]
    fn neighbors_of_one_role_belong_to_one_exchange() {
        let found = ids(&[("m", &["c:f:"]), ("m", &["c:g:"]), ("u", &["r:g:"]), ("u", &["r:f:"])]);
        assert_eq!(found[0], found[3]);
        assert_eq!(found[1], found[2]);
        assert_ne!(found[0], found[1]);
    }

    #[test]
    fn a_later_call_closes_earlier_ones_and_orphans_stay_alone() {
        let found = ids(&[("m", &["c:f:"]), ("u", &[]), ("m", &["c:f:"]), ("u", &["r:f:", "r:f:", "r:h:z"])]);
        assert_eq!(found[1], found[2], "the nearest call is answered");
        assert!(found[3] != found[0] && found[3] != found[1], "{found:?}");
        assert_eq!(found[4], "z");
        // Words in between close nothing.
        let found = ids(&[("m", &["c:f:"]), ("u", &[]), ("m", &[]), ("u", &["r:f:"])]);
        assert_eq!(found[0], found[1]);
    }
}
