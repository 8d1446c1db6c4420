//! Every input of the corpus is accepted, or refused for the reason that its folder names, by our parser and by
//! roxmltree alike.

use std::fs;
use std::path::{Path, PathBuf};

use epitome_loop::InvalidSummaryReason;
use epitome_loopruntime::parse_summary;
use epitome_tests::{SecondVerdict, second_judge};

fn inputs(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/summary").join(folder);
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn accepted_inputs_are_kept_byte_for_byte() {
    for (path, bytes) in inputs("accepted") {
        let summary = parse_summary(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(summary.raw().as_bytes(), bytes, "{}", path.display());
        assert!(matches!(second_judge(&bytes), SecondVerdict::Accepted(_)), "{}", path.display());
    }
}

#[test]
fn refused_inputs_are_refused_for_the_reason_of_their_folder() {
    for reason in [
        InvalidSummaryReason::XmlSyntax,
        InvalidSummaryReason::XmlRoot,
        InvalidSummaryReason::XmlStructure,
        InvalidSummaryReason::XmlContent,
    ] {
        for (path, bytes) in inputs(reason.as_str()) {
            let got = parse_summary(&bytes).map(|_| ()).map_err(|error| error.reason);
            assert_eq!(got, Err(reason), "{}", path.display());
            assert_eq!(second_judge(&bytes), SecondVerdict::Refused, "{}", path.display());
        }
    }
}

#[test]
fn the_second_judge_is_not_given_hostile_sizes() {
    let many_attributes = format!("<conversation_summary {}>", "a='' ".repeat(200_000));
    assert_eq!(second_judge(many_attributes.as_bytes()), SecondVerdict::TooLong);
    let (short, _) = many_attributes.split_at(200_000);
    assert_eq!(second_judge(short.as_bytes()), SecondVerdict::Refused);
}
