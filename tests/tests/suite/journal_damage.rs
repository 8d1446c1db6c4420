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

/// A damaged page of media takes the media alone: the records of the session are read, and what it means for them is
/// theirs to say.
#[test]
fn a_damaged_page_of_media_is_a_medium_that_is_not_there() {
    use epitome_journals::SqliteJournal;
    use epitome_sessionruntime::journal::{Blob, EncodedRecord, Journal, JournalError, PageLimit};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let session = epitome_loop::SessionId::from_bytes([3; 16]);
    let medium: Vec<u8> = (0..40_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let blob = Blob::new(medium.clone().into());
    let digest = blob.digest();
    {
        let journal = SqliteJournal::open(&path).unwrap();
        let lease = epitome_tests::wait(journal.open(session)).unwrap();
        let id = epitome_loop::EventId::from_bytes([4; 16]);
        let record = EncodedRecord { id, body: b"{}".to_vec().into(), blobs: vec![blob] };
        epitome_tests::wait(journal.append(&lease, vec![record])).unwrap();
    }
    // The pages that hold its bytes are a chain; its links are made to lead nowhere.
    let mut file = std::fs::read(&path).unwrap();
    let mut cut = 0;
    for page in file.chunks_mut(4_096) {
        let (link, inside) = page.split_at_mut(4);
        if medium.windows(64).step_by(1_000).any(|part| inside.windows(64).any(|bytes| bytes == part)) {
            link.copy_from_slice(&[0xff; 4]);
            cut += 1;
        }
    }
    assert!(cut > 2);
    std::fs::write(&path, file).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    let read = epitome_tests::wait(journal.blobs(session, vec![digest]));
    assert_eq!(read, Err(JournalError::MissingBlob));
    let page = epitome_tests::wait(journal.read(session, 1, PageLimit::default())).unwrap();
    assert_eq!(page.records.len(), 1);
}
