use super::*;
use proptest::prelude::*;

fn report(counted: u64, reported: u64) -> CountedReport {
    CountedReport { counted: TokenCount(counted), unseen: TokenCount(0), reported: TokenCount(reported) }
}

fn taken(reports: &[(u64, u64)]) -> Calibration {
    let mut calibration = Calibration::new();
    for &(counted, reported) in reports {
        assert_eq!(calibration.take(report(counted, reported), None), ReportVerdict::Taken);
    }
    calibration
}

fn count(calibration: &Calibration, counted: u64) -> u64 {
    calibration.scale().unwrap().apply(TokenCount(counted), TokenCount(0)).get()
}

#[test]
fn one_report_that_is_higher_tells_of_parts_that_are_not_seen() {
    assert_eq!(Calibration::new().scale(), None);
    let calibration = taken(&[(10, 184_753)]);
    let scale = calibration.scale().unwrap();
    assert_eq!((scale.factor(), scale.beside()), (BasisPoints(10_000), TokenCount(184_743)));
    assert_eq!(count(&calibration, 10), 184_753);
    assert_eq!(count(&calibration, 1_010), 185_753);
    // A smaller request goes out with the same parts beside it.
    assert_eq!(count(&calibration, 0), 184_743);
}

#[test]
fn one_report_that_is_lower_tells_of_tokens_that_hold_more() {
    let calibration = taken(&[(10_000, 8_000)]);
    let scale = calibration.scale().unwrap();
    assert_eq!((scale.factor(), scale.beside()), (BasisPoints(8_000), TokenCount(0)));
    assert_eq!(
        [10_000, 20_000, 1_000, 0].map(|counted| count(&calibration, counted)),
        [8_000, 16_000, 800, 0]
    );
}

#[test]
fn growth_tells_the_factor_from_what_stands_beside() {
    let truth = |counted: u64| 6_000 + counted * 13 / 10;
    let reports: Vec<(u64, u64)> =
        (1..=40).map(|at| at * 4_000).map(|counted| (counted, truth(counted))).collect();
    let calibration = taken(&reports);
    let scale = calibration.scale().unwrap();
    assert!((12_600..=13_000).contains(&scale.factor().get()), "{:?}", scale.factor());
    // A compaction leaves a twentieth of it: one factor alone would be off by a third, no factor by far more.
    let (counted, told) = (8_000, count(&calibration, 8_000));
    assert!(told.abs_diff(truth(counted)) < truth(counted) * 3 / 10, "{told} for {}", truth(counted));
    // The weight of what was known makes the first steps small.
    let early = taken(&reports[..2]).scale().unwrap().factor().get();
    assert!((10_300..10_700).contains(&early), "{early}");
}

#[test]
fn what_was_learned_holds_for_the_next_context_and_is_learned_further() {
    let mut calibration = taken(&[(4_000, 5_000), (104_000, 135_000)]);
    let factor = calibration.scale().unwrap().factor();
    calibration.context_changed();
    assert_eq!(calibration.scale().unwrap().factor(), factor);
    let before = count(&calibration, 10_000);
    // What a smaller context took is the truth about that one; how it grows is looked at from there on.
    assert_eq!(calibration.take(report(10_000, before - 900), None), ReportVerdict::Taken);
    assert_eq!(calibration.scale().unwrap().factor(), factor);
    assert_eq!(count(&calibration, 10_000), before - 900);
    assert_eq!(calibration.take(report(60_000, before - 900 + 50_000), None), ReportVerdict::Taken);
    let now = calibration.scale().unwrap().factor();
    assert!(now < factor && now > BasisPoints(10_000), "{now:?}");
}

#[test]
fn a_sum_over_a_loop_is_doubted_and_a_larger_frame_is_believed_the_second_time() {
    let mut calibration = taken(&[(40_000, 45_000)]);
    let before = calibration.scale();
    // Two requests in one figure.
    assert_eq!(calibration.take(report(41_000, 92_500), None), ReportVerdict::Doubted);
    assert_eq!(calibration.scale(), before);
    assert_eq!(calibration.take(report(42_000, 47_100), None), ReportVerdict::Taken);
    // The one that was doubted does not vouch for a later one.
    assert_eq!(calibration.take(report(43_000, 95_000), None), ReportVerdict::Doubted);
    assert_eq!(calibration.take(report(43_500, 48_700), None), ReportVerdict::Taken);
    // Other tools are sent from now on.
    assert_eq!(calibration.take(report(44_000, 79_000), None), ReportVerdict::Doubted);
    assert_eq!(calibration.take(report(45_000, 80_100), None), ReportVerdict::Taken);
    assert_eq!(count(&calibration, 45_000), 80_100);
    // That the frame grew says nothing about how counts grow.
    assert!(calibration.scale().unwrap().factor() < BasisPoints(10_500));
    assert_eq!(calibration.take(report(46_000, 50_000), None), ReportVerdict::Taken);
    assert_eq!(count(&calibration, 46_000), 50_000);
}

#[test]
fn the_edge_of_what_needs_no_second_report() {
    let mut calibration = taken(&[(1_000, 2_000)]);
    assert_eq!(calibration.take(report(1_500, 2_000 + 3 * 500 + 4_097), None), ReportVerdict::Doubted);
    let mut calibration = taken(&[(1_000, 2_000)]);
    assert_eq!(calibration.take(report(1_500, 2_000 + 3 * 500 + 4_096), None), ReportVerdict::Taken);
    let mut calibration = taken(&[(1_000, 40_000)]);
    assert_eq!(calibration.take(report(1_000, 50_001), None), ReportVerdict::Doubted);
    assert_eq!(calibration.take(report(1_000, 50_000), None), ReportVerdict::Taken);
}

#[test]
fn what_is_no_size_is_not_believed() {
    let mut calibration = Calibration::new();
    for (counted, reported, window) in [
        (100, 0, None),
        (0, 0, None),
        (100, u64::MAX, None),
        (100, u64::from(u32::MAX) + 1, None),
        (100, 200_001, Some(200_000)),
        // Only what was new was reported.
        (100_000, 49_999, None),
        (u64::MAX, 5, None),
    ] {
        let verdict = calibration.take(report(counted, reported), window.map(TokenCount));
        assert_eq!(verdict, ReportVerdict::Disbelieved, "{counted} {reported}");
        assert_eq!(calibration, Calibration::new());
    }
    assert_eq!(calibration.take(report(100_000, 50_000), Some(TokenCount(50_000))), ReportVerdict::Taken);
}

#[test]
fn what_is_stated_as_unseen_is_not_scaled() {
    let mut calibration = Calibration::new();
    let stated = |unseen| CountedReport { unseen: TokenCount(unseen), ..report(10_000, 8_000) };
    calibration.take(stated(500), None);
    let scale = calibration.scale().unwrap();
    let apply = |counted, unseen| scale.apply(TokenCount(counted), TokenCount(unseen)).get();
    assert_eq!(apply(10_500, 500), 8_000);
    assert_eq!(apply(10_700, 700), 8_200);
    assert_eq!(apply(10_000, 0), 7_500);
    assert_eq!(apply(0, 0), 0);
}

prop_compose! {
    fn any_report()(counted in 0_u64..400_000, unseen in 0_u64..20_000, reported in 0_u64..600_000) -> CountedReport {
        CountedReport { counted: TokenCount(counted), unseen: TokenCount(unseen), reported: TokenCount(reported) }
    }
}

proptest! {
    #[test]
    fn the_report_that_was_taken_is_what_its_request_counts(
        reports in prop::collection::vec((any_report(), any::<bool>()), 1..20),
        more in 0_u64..100_000,
    ) {
        let mut calibration = Calibration::new();
        for (report, is_changed) in reports {
            if is_changed {
                calibration.context_changed();
            }
            let before = calibration.scale();
            let verdict = calibration.take(report, None);
            let CountedReport { counted, unseen, reported } = report;
            let whole = counted.saturating_add(unseen);
            if verdict != ReportVerdict::Taken {
                prop_assert_eq!(calibration.scale(), before);
                continue;
            }
            let scale = calibration.scale().unwrap();
            prop_assert_eq!(scale.apply(whole, unseen), reported);
            // What adds to the request never makes it smaller, nor grows out of all proportion.
            let grown = scale.apply(whole.saturating_add(TokenCount(more)), unseen).get() - reported.get();
            prop_assert!(grown.abs_diff(more * u64::from(scale.factor().get()) / 10_000) <= 2 + more / 10_000);
            prop_assert!((5_000..=30_000).contains(&scale.factor().get()));
            // The report is whole in two parts, and none of them is less than nothing.
            prop_assert!(scale.beside() <= reported);
        }
    }

    #[test]
    fn a_scale_never_turns_sizes_around(report in any_report(), one in 0_u64..500_000, other in 0_u64..500_000) {
        let mut calibration = Calibration::new();
        calibration.take(report, None);
        if let Some(scale) = calibration.scale() {
            let apply = |counted| scale.apply(TokenCount(counted), TokenCount(0));
            prop_assert_eq!(apply(one.max(other)), apply(one).max(apply(other)));
        }
    }

    #[test]
    fn no_number_breaks_it(numbers in prop::collection::vec(any::<(u64, u64, u64)>(), 1..8), counted in any::<u64>(), unseen in any::<u64>()) {
        let mut calibration = Calibration::new();
        for (counted, unseen, reported) in numbers {
            let (counted, unseen, reported) = (TokenCount(counted), TokenCount(unseen), TokenCount(reported >> 33));
            calibration.take(CountedReport { counted, unseen, reported }, None);
            if let Some(scale) = calibration.scale() {
                std::hint::black_box(scale.apply(TokenCount(counted.get()), unseen));
                std::hint::black_box(scale.beside());
            }
        }
        if let Some(scale) = calibration.scale() {
            std::hint::black_box(scale.apply(TokenCount(counted), TokenCount(unseen)));
        }
    }
}
