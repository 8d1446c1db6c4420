//! Damaged files of journals.

use epitome_tests::{AfterDamage, DamagedJournal};

const PAGE: usize = 4_096;

/// How often nothing was lost, and how often an error said that something is; anything else is a fault.
#[derive(Default)]
struct Told {
    whole: u32,
    refused: u32,
    wrong: Vec<String>,
}

impl Told {
    fn add(&mut self, place: usize, after: AfterDamage) {
        match after {
            AfterDamage::Whole => self.whole += 1,
            AfterDamage::Refused => self.refused += 1,
            AfterDamage::Wrong(what) => {
                self.wrong.push(format!("page {} byte {}: {what}", place / PAGE, place % PAGE));
            }
        }
    }
}

#[test]
fn a_flipped_bit_never_makes_a_session_another() {
    let journal = DamagedJournal::new().unwrap();
    let mut told = Told::default();
    // Where a tree has its shape, densely, and everywhere else here and there.
    for place in 0..journal.file().len() {
        if place % PAGE < 24 || place % 211 == 0 {
            told.add(place, journal.flip(place, (place / PAGE + place) as u32).unwrap());
        }
        // Where the free part of a page begins: what is written there may take the place of something else.
        if matches!(place % PAGE, 5 | 6) {
            (0..8).for_each(|bit| told.add(place, journal.flip(place, bit).unwrap()));
        }
    }
    assert_eq!(told.wrong, Vec::<String>::new());
    assert!(told.whole > 100 && told.refused > 100, "{} and {}", told.whole, told.refused);
}

#[test]
fn pages_that_are_lost_never_make_a_session_another() {
    let journal = DamagedJournal::new().unwrap();
    let mut told = Told::default();
    let pages = journal.file().len() / PAGE;
    for page in 1..pages {
        let mut file = journal.file().to_vec();
        let head = file[page * PAGE..][..8].to_vec();
        // A page of zeros; one of the same kind without a cell; another one in its place; and no page from there on.
        file[page * PAGE..][..PAGE].fill(0);
        told.add(page * PAGE, journal.judge(&file).unwrap());
        file[page * PAGE..][..8].copy_from_slice(&[head[0], 0, 0, 0, 0, 16, 0, 0]);
        told.add(page * PAGE, journal.judge(&file).unwrap());
        for other in 1..pages {
            let file = [
                &journal.file()[..page * PAGE],
                &journal.file()[other * PAGE..][..PAGE],
                &journal.file()[(page + 1) * PAGE..],
            ];
            told.add(page * PAGE, journal.judge(&file.concat()).unwrap());
        }
        for cut in [page * PAGE, page * PAGE + 777] {
            told.add(cut, journal.judge(&journal.file()[..cut]).unwrap());
        }
    }
    assert_eq!(told.wrong, Vec::<String>::new());
    assert!(told.refused > 100, "{}", told.refused);
}
