//! Counting tokens: one new message in a long session, a first count, and the estimate.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use epitome_benches::{chat_request, chat_session, new_message, plain_text, recount_chat};
use epitome_counters::{Encoding, HeuristicEstimator, LocalCounter};
use epitome_loop::TextEstimator;

fn new_message_in_a_long_session(criterion: &mut Criterion) {
    let session = chat_session(1_060);
    let counter = LocalCounter::with_encoding(Encoding::O200kBase, false);
    let counted = counter.count_request(&chat_request(session.clone()));
    assert!(counted.is_ok_and(|count| count.input_tokens.get() >= 1_000_000));

    let mut group = criterion.benchmark_group("new message in 1 M tokens");
    group.sample_size(10);
    let mut number = 0;
    let mut grown = || {
        number += 1;
        chat_request(session.iter().cloned().chain([new_message(number)]).collect())
    };
    group.bench_function("ours", |bencher| {
        bencher.iter_batched(&mut grown, |request| counter.count_request(&request), BatchSize::PerIteration);
    });
    group.bench_function("tiktoken-rs recount", |bencher| {
        bencher.iter_batched(&mut grown, |request| recount_chat(&request.messages), BatchSize::PerIteration);
    });
    group.finish();
}

fn text(criterion: &mut Criterion) {
    let text = plain_text(0, 330);
    let bpe = tiktoken_rs::o200k_base_singleton();
    let mut group = criterion.benchmark_group("1 MB of agent text");
    group.sample_size(10).throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("counted again", |bencher| bencher.iter(|| Encoding::O200kBase.count(&text)));
    group.bench_function("tiktoken-rs", |bencher| bencher.iter(|| bpe.count_ordinary(&text)));
    group.bench_function("estimated", |bencher| bencher.iter(|| HeuristicEstimator.estimate(&text)));
    group.finish();
}

criterion_group!(benches, new_message_in_a_long_session, text);
criterion_main!(benches);
