//! Reads GBNF and matches text by it: as much of the notation as our grammar uses, and nothing that it does not allow.

use std::collections::{BTreeMap, BTreeSet};

enum Part {
    Literal(String),
    Class { negated: bool, ranges: Vec<(char, char)> },
    Rule(String),
    Group(Vec<Vec<Part>>),
    Repeated { part: Box<Part>, least: usize, most: usize },
}

pub(super) struct Grammar(BTreeMap<String, Vec<Vec<Part>>>);

struct Reader<'t> {
    rest: &'t str,
}

impl Grammar {
    pub(super) fn read(text: &str) -> Self {
        let mut rules = BTreeMap::new();
        for line in text.lines() {
            let (name, body) = line.split_once(" ::= ").unwrap();
            assert!(name.chars().all(|part| part.is_ascii_lowercase() || part == '-'), "{name}");
            let mut reader = Reader { rest: body };
            let choices = reader.choices();
            assert_eq!(reader.rest, "", "{line}");
            assert!(rules.insert(name.to_owned(), choices).is_none(), "{name} twice");
        }
        Self(rules)
    }

    pub(super) fn admits(&self, text: &str) -> bool {
        self.ends(&Part::Rule("root".into()), text, 0).contains(&text.len())
    }

    /// The longest text that the grammar admits, in characters.
    pub(super) fn longest(&self) -> usize {
        self.length(&Part::Rule("root".into()))
    }

    fn length(&self, part: &Part) -> usize {
        let of = |choices: &Vec<Vec<Part>>| {
            choices.iter().map(|parts| parts.iter().map(|part| self.length(part)).sum()).max().unwrap()
        };
        match part {
            Part::Literal(text) => text.chars().count(),
            Part::Class { .. } => 1,
            Part::Rule(name) => of(&self.0[name]),
            Part::Group(choices) => of(choices),
            Part::Repeated { part, most, .. } => self.length(part) * most,
        }
    }

    fn ends(&self, part: &Part, text: &str, at: usize) -> BTreeSet<usize> {
        match part {
            Part::Literal(literal) => {
                text.split_at(at).1.starts_with(literal).then_some(at + literal.len()).into_iter().collect()
            }
            Part::Class { negated, ranges } => {
                let next = text.split_at(at).1.chars().next();
                let is_in = |next: char| ranges.iter().any(|(first, last)| (*first..=*last).contains(&next));
                let next = next.filter(|next| is_in(*next) != *negated);
                next.map(|next| at + next.len_utf8()).into_iter().collect()
            }
            Part::Rule(name) => self.any(&self.0[name], text, at),
            Part::Group(choices) => self.any(choices, text, at),
            Part::Repeated { part, least, most } => {
                let mut here = BTreeSet::from([at]);
                let mut found = if *least == 0 { here.clone() } else { BTreeSet::new() };
                for times in 1..=*most {
                    here = here.iter().flat_map(|at| self.ends(part, text, *at)).collect();
                    if here.is_empty() {
                        break;
                    }
                    if times >= *least {
                        found.extend(&here);
                    }
                }
                found
            }
        }
    }

    fn any(&self, choices: &[Vec<Part>], text: &str, at: usize) -> BTreeSet<usize> {
        let one = |parts: &Vec<Part>| {
            parts.iter().fold(BTreeSet::from([at]), |here, part| {
                here.into_iter().flat_map(|at| self.ends(part, text, at)).collect()
            })
        };
        choices.iter().flat_map(one).collect()
    }
}

impl Reader<'_> {
    fn choices(&mut self) -> Vec<Vec<Part>> {
        let mut choices = vec![Vec::new()];
        loop {
            self.rest = self.rest.trim_start();
            match self.rest.chars().next() {
                None | Some(')') => return choices,
                Some('|') => {
                    self.next();
                    choices.push(Vec::new());
                }
                Some(_) => {
                    let part = self.part();
                    choices.last_mut().unwrap().push(part);
                }
            }
        }
    }

    fn part(&mut self) -> Part {
        let part = match self.next() {
            '"' => {
                let mut text = String::new();
                while !self.rest.starts_with('"') {
                    text.push(self.character());
                }
                self.next();
                Part::Literal(text)
            }
            '[' => {
                let negated = self.rest.starts_with('^');
                if negated {
                    self.next();
                }
                let mut ranges = Vec::new();
                while !self.rest.starts_with(']') {
                    let first = self.character();
                    // As llama.cpp reads it: a dash that is not the last makes a range.
                    let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
                    if is_range {
                        self.next();
                    }
                    let last = if is_range { self.character() } else { first };
                    assert!(first <= last);
                    ranges.push((first, last));
                }
                self.next();
                Part::Class { negated, ranges }
            }
            '(' => {
                let choices = self.choices();
                assert_eq!(self.next(), ')');
                Part::Group(choices)
            }
            first => {
                assert!(first.is_ascii_lowercase(), "{first}{}", self.rest);
                let end = self.rest.find(|part: char| !part.is_ascii_lowercase() && part != '-');
                let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                Part::Rule(format!("{first}{name}"))
            }
        };
        if self.rest.starts_with('?') {
            self.next();
            return Part::Repeated { part: Box::new(part), least: 0, most: 1 };
        }
        let Some((bounds, rest)) = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            return part;
        };
        self.rest = rest;
        let (least, most) = bounds.split_once(',').unwrap();
        Part::Repeated { part: Box::new(part), least: least.parse().unwrap(), most: most.parse().unwrap() }
    }

    fn character(&mut self) -> char {
        match self.next() {
            '\\' => {
                let digits = match self.next() {
                    'n' => return '\n',
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    other => panic!("\\{other}"),
                };
                let (code, rest) = self.rest.split_at(digits);
                self.rest = rest;
                char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap()
            }
            plain => plain,
        }
    }

    fn next(&mut self) -> char {
        let mut characters = self.rest.chars();
        let next = characters.next().unwrap();
        self.rest = characters.as_str();
        next
    }
}
