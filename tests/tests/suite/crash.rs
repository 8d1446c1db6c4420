//! The records of the crash harness are a session, so that what it finds means something.

use epitome_sessionruntime::journal::{SessionState, replay};
use epitome_tests::crash_workload::{TRIGGER, append_around, record};

#[test]
fn every_prefix_of_whole_appends_is_a_session() {
    let records: Vec<_> = (1..=40).map(|sequence| record(sequence, 10)).collect();
    let state = replay(TRIGGER, (1..).zip(&records)).unwrap();
    assert_eq!(state.commits().len(), 6);
    let mut half = 0;
    let mut state = SessionState::new(TRIGGER);
    for (sequence, record) in (1..).zip(&records) {
        state = state.apply(sequence, record).unwrap();
        let (first, last) = append_around(sequence);
        assert!(first <= sequence && sequence <= last && last - first <= 2);
        half += u64::from(last != sequence);
    }
    assert_eq!(half, 12);
}
