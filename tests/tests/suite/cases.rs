//! Every committed fault case, one test each.

use std::path::Path;

use epitome_tests::cases::{KINDS, LIVE_KINDS, case_files, judge_case, judge_live, read_case};

/// Holds a case, by itself and played through a live session, whatever has a meaning for it.
fn hold(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(file);
    let case = read_case(&path).unwrap();
    let is_live = LIVE_KINDS.contains(&case.kind.as_str());
    assert!(is_live || KINDS.contains(&case.kind.as_str()), "{}", case.kind);
    if !is_live {
        let report = judge_case(&case).unwrap();
        assert!(report.failures.is_empty(), "{}\n{:#?}", report.outcome, report.failures);
    }
    if case.has_content() {
        let report = judge_live(&case).unwrap();
        assert!(report.failures.is_empty(), "{}\n{:#?}", report.outcome, report.failures);
    }
}

macro_rules! cases {
    ($($test:ident: $file:literal,)*) => {
        $(#[test]
        fn $test() {
            hold($file);
        })*

        const TESTED: &[&str] = &[$($file),*];
    };
}

cases! {
    bigreq_agent_cap_on_summarizer: "bigreq-agent-cap-on-summarizer.json",
    bigreq_no_tool_results_to_shed: "bigreq-no-tool-results-to-shed.json",
    bigreq_one_message_over_threshold: "bigreq-one-message-over-threshold.json",
    bytes_not_tokens: "bytes-not-tokens.json",
    chain_entry_mid_pair: "chain-entry-mid-pair.json",
    chain_nested_summary: "chain-nested-summary.json",
    chain_nothing_new_keeps_old_summary: "chain-nothing-new-keeps-old-summary.json",
    chain_pre_boundary_resent: "chain-pre-boundary-resent.json",
    developer_stale: "developer-stale.json",
    dup_completed_and_aborted: "dup-completed-and-aborted.json",
    empty_thinking_only: "empty-thinking-only.json",
    empty_whitespace: "empty-whitespace.json",
    errtext_as_summary: "errtext-as-summary.json",
    fail_wipes_conversation: "fail-wipes-conversation.json",
    gain_inflated: "gain-inflated.json",
    gain_tiny_repeated: "gain-tiny-repeated.json",
    image_base64_as_text: "image-base64-as-text.json",
    image_flat_too_small: "image-flat-too-small.json",
    limits_pending_prompt_ignored: "limits-pending-prompt-ignored.json",
    limits_three_part_sum: "limits-three-part-sum.json",
    limits_unknown_window: "limits-unknown-window.json",
    lone_surrogate_input: "lone-surrogate-input.json",
    loop_folds_one_message: "loop-folds-one-message.json",
    loop_no_cap: "loop-no-cap.json",
    markup_breakout_in_summary: "markup-breakout-in-summary.json",
    markup_unescaped_operators: "markup-unescaped-operators.json",
    noop_must_be_identity: "noop-must-be-identity.json",
    orphan_mixed_parallel: "orphan-mixed-parallel.json",
    orphan_ten_parallel: "orphan-ten-parallel.json",
    orphan_use_in_tail: "orphan-use-in-tail.json",
    pending_confirmation: "pending-confirmation.json",
    pending_dead_call_blocks: "pending-dead-call-blocks.json",
    race_replace_from_snapshot: "race-replace-from-snapshot.json",
    race_two_compactions: "race-two-compactions.json",
    roles_first_must_be_user: "roles-first-must-be-user.json",
    servertool_in_turn_search: "servertool-in-turn-search.json",
    special_token_in_text: "special-token-in-text.json",
    system_dropped: "system-dropped.json",
    tail_sized_with_media_stripped: "tail-sized-with-media-stripped.json",
    tail_two_turns_but_full: "tail-two-turns-but-full.json",
    task_redo_done_work: "task-redo-done-work.json",
    thinking_foreign_model: "thinking-foreign-model.json",
    thinking_signature_not_counted: "thinking-signature-not-counted.json",
    torn_fused_line: "torn-fused-line.json",
    torn_prefix_then_whole: "torn-prefix-then-whole.json",
    torn_two_objects_one_line: "torn-two-objects-one-line.json",
    unknown_role: "unknown-role.json",
    usage_cache_subset: "usage-cache-subset.json",
    usage_resumed_no_count: "usage-resumed-no-count.json",
    usage_trailing_results: "usage-trailing-results.json",
    utf8_cut_inside_emoji: "utf8-cut-inside-emoji.json",
}

#[test]
fn every_case_file_is_tested() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let files = case_files(&folder).unwrap();
    let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, TESTED);
}
